"""Equinox: flat lists of arrays, as its page of tricks has them. They are donated, so that new ones may take their memory."""

# %% step
from functools import partial

optimizer = optax.sgd(LR, momentum=MOMENTUM)
if NETWORK == "lstm":
    optimizer = optax.chain(optax.clip_by_global_norm(CLIP), optimizer)
params, static = eqx.partition(model, eqx.is_inexact_array)
leaves, structure = jax.tree.flatten((params, state, optimizer.init(params)))


def loss_fn(params, state, x, y):
    batched = jax.vmap(eqx.combine(params, static), (0, None), (0, None), axis_name="batch")
    logits, state = batched(x, state)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), state


@partial(jax.jit, donate_argnums=0)
def step(leaves, x, y):
    params, state, opt_state = jax.tree.unflatten(structure, leaves)
    (loss, state), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, state, x, y)
    updates, opt_state = optimizer.update(grads, opt_state)
    return jax.tree.leaves((eqx.apply_updates(params, updates), state, opt_state)), loss


log = StepLog(REPEATS)
for steps in [WARMUP] + [STEPS] * REPEATS:
    for _ in range(steps):
        leaves, result = step(leaves, x, y)
    log.done(steps, np.asarray(result))
params, state, _ = jax.tree.unflatten(structure, leaves)
model = eqx.combine(params, static)
