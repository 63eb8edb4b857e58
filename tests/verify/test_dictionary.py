"""Wrong answers, planted in the dictionaries of three frameworks: each is told, by the id of its entry."""

import os
import random
from itertools import zip_longest

import pytest

from rosetta import catalog
from rosetta.run import devices
from rosetta.run.devices import Workers
from rosetta.run.kernels import Kernels
from rosetta.verify import entries
from rosetta.verify.proof import Bench
from tests.verify.copies import copied, edited

KNOWN = catalog.load()
TASK = "dictionary"
FRAMEWORKS = ("pytorch", "flax", "mlx")
# The mistake, its entry, and in each framework what stands there and what is put there
MISTAKES = {
    "rows and columns exchanged": (
        "layout",
        ("permute(0, 2, 3, 1)", "permute(0, 3, 2, 1)"),
        ("(0, 2, 3, 1)", "(0, 3, 2, 1)"),
        ("(0, 2, 3, 1)", "(0, 3, 2, 1)"),
    ),
    "rows counted from one": ("gather", ("[rows]", "[rows - 1]"), ("[rows]", "[rows - 1]"), ("(rows)", "(rows - 1)")),
    "added once at an index that is named twice": (
        "scatter",
        (".index_add_(0, index, values)", ".index_put_((index,), values)"),
        (".add(values)", ".set(values)"),
        (".add(values)", ".maximum(values)"),
    ),
    "the mask inverted": ("where", ("v > 0", "v < 0"), ("v > 0", "v < 0"), ("v > 0", "v < 0")),
    "joined along the wrong axis": ("concatenate", ("dim=1", "dim=0"), ("axis=1", "axis=0"), ("axis=1", "axis=0")),
    "another seed is the same": ("random-seed", ("SEED + 1", "SEED"), ("SEED + 1", "SEED"), ("SEED + 1", "SEED")),
    "the weight in the other layout": (
        "dense",
        ("torch.tensor(weight)", "torch.tensor(weight.T.reshape(2, 3))"),
        ("weight.T", "weight.reshape(3, 2)"),
        ("mx.array(weight)", "mx.array(weight.T.reshape(2, 3))"),
    ),
    "a kernel with its rows and columns exchanged": (
        "convolution",
        ("torch.tensor(kernel)", "torch.tensor(kernel).transpose(2, 3)"),
        ("transpose(2, 3, 1, 0)", "transpose(3, 2, 1, 0)"),
        (".transpose(0, 2, 3, 1)  # OIHW", ".transpose(0, 3, 2, 1)  # OIHW"),
    ),
    "a pooling padded with zeros": (
        "max-pool",
        ("torch.tensor(images), kernel_size=3, stride=2, padding=1", "F.pad(torch.tensor(images), (1,) * 4), 3, 2"),
        ("padding=((1, 1), (1, 1))", "padding='SAME'"),
        ("padding=1", "padding=0"),
    ),
    "momentum counted the other way": (
        "batch-norm",
        ("momentum=0.1", "momentum=0.9"),
        ("momentum=0.9", "momentum=0.1"),
        ("momentum=0.1", "momentum=0.9"),
    ),
    "another epsilon": (
        "layer-norm",
        ("normalized_shape=3", "normalized_shape=3, eps=1e-3"),
        ("epsilon=1e-5", "epsilon=1e-3"),
        ("dims=3", "dims=3, eps=1e-3"),
    ),
    "the variance of a sample": (
        "layer-norm",
        ("norm(torch.tensor(x))", "norm(torch.tensor(x)) * (2 / 3) ** 0.5"),
        ("norm(x)", "norm(x) * (2 / 3) ** 0.5"),
        ("norm(mx.array(x))", "norm(mx.array(x)) * (2 / 3) ** 0.5"),
    ),
    "a padding that learns": (
        "embedding",
        (", padding_idx=0", ""),
        ("tokens != 0", "tokens >= 0"),
        ("!= 0", ">= 0"),
    ),
    "the share that is kept": (
        "dropout",
        ("p=0.2", "p=0.8"),
        ("rate=0.2", "rate=0.8"),
        ("p=0.2", "p=0.8"),
    ),
    "kept numbers are not scaled": (
        "dropout",
        ("training=True)", "training=True).clip(max=1)"),
        ("dropout(ones)", "dropout(ones).clip(max=1)"),
        ("dropout(mx.array(ones))", "mx.minimum(dropout(mx.array(ones)), 1)"),
    ),
    "the approximation by tanh": (
        "gelu",
        ("torch.tensor(x)", "torch.tensor(x), approximate='tanh'"),
        ("approximate=False", "approximate=True"),
        ("nn.gelu(", "nn.gelu_approx("),
    ),
    "softmax over the last axis": ("softmax", ("dim=1", "dim=-1"), ("axis=1", "axis=-1"), ("axis=1", "axis=-1")),
    "words see those behind them": (
        "attention",
        ("is_causal=True", "is_causal=False"),
        ("is_causal=True", "is_causal=False"),
        ('mask="causal"', "mask=None"),
    ),
    "running statistics counted as trained": (
        "count-parameters",
        ("model.parameters() if parameter.requires_grad", "model.state_dict().values()"),
        ("nnx.state(model, nnx.Param)", "nnx.state(model)"),
        ("trainable_parameters", "parameters"),
    ),
    "evaluation forgotten": (
        "train-eval",
        ("model.eval()", "model.train()"),
        ("model.eval()", "model.train()"),
        ("model.eval()", "model.train()"),
    ),
    "a gradient that is not stopped": (
        "stop-gradient",
        ("v.detach()", "v"),
        ("jax.lax.stop_gradient(v)", "v"),
        ("mx.stop_gradient(v)", "v"),
    ),
    "cleared between the two": (
        "clear-accumulate",
        ("    (v", "    v.grad = None\n    (v"),
        ("total, gradient(x)", "0 * total, gradient(x)"),
        ("total + grad(v)", "grad(v)"),
    ),
    "each gradient clipped by its own norm": (
        "clip-norm",
        ("clip_grad_norm_(parameters, max_norm=1.0)", "clip_grad_norm_(parameters[:1], max_norm=1.0)"),
        ("optax.clip_by_global_norm(max_norm=1.0)", "optax.clip(1.0)"),
        ("optim.clip_grad_norm(grads, max_norm=1.0)", "[optim.clip_grad_norm([g], 1.0)[0][0] for g in grads], None"),
    ),
    "a Jacobian turned over": (
        "jacobian",
        ("(torch.tensor(x[0]))", "(torch.tensor(x[0])).T"),
        ("(x[0])", "(x[0]).T"),
        ("mx.vmap(row)(mx.eye(3))", "mx.vmap(row)(mx.eye(3)).T"),
    ),
    "a frozen layer that moves": (
        "freeze",
        ("requires_grad_(False)", "requires_grad_(True)"),
        ("nnx.PathContains(1)", "nnx.Param"),
        ("body.freeze()", "body.unfreeze()"),
    ),
    "softmax twice": (
        "cross-entropy",
        ("torch.tensor(logits)", "torch.tensor(logits).softmax(1)"),
        ("(logits, labels)", "(nnx.softmax(logits), labels)"),
        ("mx.array(logits)", "mx.softmax(mx.array(logits), axis=1)"),
    ),
    "a sum for a mean": (
        "cross-entropy",
        ("torch.tensor(labels))", "torch.tensor(labels), reduction='sum')"),
        (".mean()", ".sum()"),
        ('reduction="mean"', 'reduction="sum"'),
    ),
    "a share spread over the other classes": (
        "label-smoothing",
        ("label_smoothing=0.1", "label_smoothing=0.125"),
        ("alpha=0.1", "alpha=0.125"),
        ("label_smoothing=0.1", "label_smoothing=0.125"),
    ),
    "divided by another number": (
        "class-weights",
        ("weight=torch.tensor(class_weights)", "weight=torch.tensor(class_weights), reduction='sum'"),
        ("jnp.average(losses, weights=class_weights[labels])", "(losses * class_weights[labels]).mean()"),
        ('reduction="mean"', 'reduction="sum"'),
    ),
    "padding counts": (
        "masked-loss",
        ("torch.where(torch.tensor(kept), torch.tensor(labels), -100)", "torch.tensor(labels)"),
        ("where=kept", ""),
        ("/ mask.sum()", "/ 4"),
    ),
    "a sigmoid twice": (
        "binary-cross-entropy",
        ("torch.tensor(scores)", "torch.tensor(scores).sigmoid()"),
        ("(scores, hits)", "(nnx.sigmoid(scores), hits)"),
        ("mx.array(scores)", "mx.sigmoid(mx.array(scores))"),
    ),
    "Nesterov's momentum": (
        "sgd-momentum",
        ("momentum=0.9", "momentum=0.9, nesterov=True"),
        ("momentum=0.9", "momentum=0.9, nesterov=True"),
        ("momentum=0.9", "momentum=0.9, nesterov=True"),
    ),
    "epsilon inside the root": (
        "adam",
        ("eps=0.01", "eps=0.0001"),
        ("eps=0.01", "eps=0.0, eps_root=0.01"),
        ("eps=0.01", "eps=0.0001"),
    ),
    "no correction of the means": (
        "adam",
        ("    optimizer.step()", "    optimizer.state[w] = {}\n    optimizer.step()"),
        ("adam = optax.adam(", "adam = optax.adamax("),
        ("bias_correction=True", "bias_correction=False"),
    ),
    "L2 in the place of decay": (
        "weight-decay",
        ("torch.optim.AdamW", "torch.optim.Adam"),
        (
            "optax.adamw(learning_rate=0.1, weight_decay=0.1)",
            "optax.chain(optax.add_decayed_weights(0.1), optax.adam(0.1))",
        ),
        ("optim.AdamW(learning_rate=0.1, weight_decay=0.1,", "optim.Adam(learning_rate=0.1,"),
    ),
    "what was read is not used": (
        "save-load",
        ("fresh.load_state_dict(torch.load(path))", "torch.load(path)"),
        (
            "nnx.update(fresh, checkpointer.restore(path, nnx.state(fresh)))",
            "checkpointer.restore(path, nnx.state(fresh))",
        ),
        ("fresh.load_weights(path)", "nn.Linear(3, 2).load_weights(path)"),
    ),
    "the gates in another order": (
        "lstm",
        ("torch.tensor(lstm_input)", "torch.tensor(lstm_input[[0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11]])"),
        ("lstm_input.T", "lstm_input[[0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11]].T"),
        ("mx.array(lstm_input)", "mx.array(lstm_input[[0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11]])"),
    ),
    "the update gate as the share of the new state": (
        "gru",
        ("torch.tensor(gru_input)", "torch.tensor(gru_input) * torch.tensor([1, 1, 1, -1, -1, -1, 1, 1, 1])[:, None]"),
        ("gru_input.T", "(gru_input * np.repeat([1, -1, 1], 3)[:, None]).T"),
        ("mx.array(gru_input)", "mx.array(gru_input) * mx.array([1, 1, 1, -1, -1, -1, 1, 1, 1])[:, None]"),
    ),
    "a state that goes on over the padding": (
        "variable-lengths",
        ("gru(packed)", "gru(w)"),
        (", seq_lengths=lengths", ""),
        ("mx.array(lengths) - 1", "mx.array([4, 4])"),
    ),
    "columns in the order of the other layout": (
        "port-flatten",
        ("torch.tensor(maps).flatten", "torch.tensor(maps).permute(0, 2, 3, 1).flatten"),
        ("four_axes.transpose(2, 3, 1, 0).reshape(36, 2)", "flat_weight.T"),
        ("columns.transpose(0, 2, 3, 1).flatten(start_axis=1)", "mx.array(flat_weight)"),
    ),
    "corners aligned": (
        "resize",
        ("align_corners=False", "align_corners=True"),
        ('method="bilinear"', 'method="nearest"'),
        ("align_corners=False", "align_corners=True"),
    ),
    "one kernel for all channels": (
        "grouped-convolution",
        ("torch.tensor(depthwise)", "torch.tensor(depthwise[[0, 0, 0]])"),
        ("depthwise.transpose", "depthwise[[0, 0, 0]].transpose"),
        ("mx.array(depthwise)", "mx.array(depthwise[[0, 0, 0]])"),
    ),
    "each part counts alike": (
        "micro-batches",
        ("loss * len(x[part]) / len(x)", "loss / 2"),
        (".sum() / len(x)", ".mean() / 2"),
        ('reduction="sum") / len(x)', 'reduction="mean") / 2'),
    ),
    "a rate that begins a step later": (
        "warm-up",
        ("min(t / 5, 2 - t / 5)", "min(max(t - 1, 0) / 5, 2 - t / 5)"),
        ("jnp.arange(11)", "jnp.arange(11) - 1"),
        ("schedule(step)", "schedule(max(step - 1, 0))"),
    ),
    "the share of the new weights as that of the old": (
        "averaged-weights",
        ("decay=0.9", "decay=0.1"),
        ("decay=0.9", "decay=0.1"),
        ("0.9 * a + 0.1 * w", "0.1 * a + 0.9 * w"),
    ),
    "biases that decay": (
        "decay-not-on-biases",
        ('{"params": [layer.bias]}', '{"params": [layer.bias], "weight_decay": 0.1}'),
        ("param.ndim > 1", "True"),
        ("gradient.ndim > 1", "True"),
    ),
    "batches in the old order": (
        "batches",
        ("shuffle=True", "shuffle=False"),
        (".shuffle(seed=SEED)", ""),
        ("mx.random.permutation(len(data))", "mx.arange(len(data))"),
    ),
    "the short last batch left out": (
        "batches",
        ("shuffle=True", "shuffle=True, drop_last=True"),
        ("batch_size=4", "batch_size=4, drop_remainder=True"),
        ("len(data), 4)]", "len(data) - 3, 4)]"),
    ),
    "one draw for the whole batch": (
        "flip",
        ("torch.stack([flip(image) for image in torch.tensor(pictures)])", "flip(torch.tensor(pictures))"),
        ("rng.random() < 0.5", "SEED < 0.5"),
        ("shape=(len(v), 1, 1, 1)", "shape=(1, 1, 1, 1)"),
    ),
    "the mean of the batches' means": (
        "accuracy",
        ("right / seen", "torch.tensor(5 / 6)"),
        ("metric.compute()", "sum((logits[p].argmax(1) == labels[p]).mean() for p in (slice(3), slice(3, 4))) / 2"),
        ("right.item() / seen", "5 / 6"),
    ),
    "an epoch too many": (
        "early-stopping",
        ("waited == 2", "waited == 3"),
        ("patience=1", "patience=2"),
        ("waited == 2", "waited == 3"),
    ),
    "momentum that begins anew": (
        "resume",
        ("after.load_state_dict(torch.load(path))", "torch.load(path)"),
        ("nnx.update(after, checkpointer.restore(", "(checkpointer.restore("),
        ("after.state = tree_unflatten(mx.load(path))", "mx.load(path)"),
    ),
    "weights in 16 bits": (
        "mixed-precision",
        ("str(layer.weight.dtype)", "str(layer.bfloat16().weight.dtype)"),
        ("dtype=jnp.bfloat16", "dtype=jnp.bfloat16, param_dtype=jnp.bfloat16"),
        ('params["weight"].dtype', "layer.weight.dtype"),
    ),
    "a step with the sum of the losses": (
        "training-step",
        ("torch.tensor(classes))", 'torch.tensor(classes), reduction="sum")'),
        (".mean()", ".sum()"),
        ('reduction="mean"', 'reduction="sum"'),
    ),
    "a state that is left over": (
        "loop",
        ("torch.zeros(2, 4)", "torch.ones(2, 4)"),
        ("jnp.zeros((2, 4))", "jnp.ones((2, 4))"),
        ("mx.zeros((2, 4))", "mx.ones((2, 4))"),
    ),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory, pytestconfig) -> dict[tuple[str, str], str]:
    """What is said of each mistake, in a framework that is drawn, with ``--fresh`` in each. A notebook has one mistake of each entry:
    the others come in the next."""
    chance, fresh = random.Random(int(os.environ["ROSETTA_SEED"])), pytestconfig.getoption("--fresh")
    chosen = FRAMEWORKS if fresh else [chance.choice(FRAMEWORKS)]
    bench, said = Bench(Kernels(), Workers(devices.shared(gpus=None, jobs=None))), {}
    of_entry: dict[str, list[str]] = {}
    for mistake, (entry, *_) in MISTAKES.items():
        of_entry.setdefault(entry, []).append(mistake)
    turns = [[mistake for mistake in turn if mistake] for turn in zip_longest(*of_entry.values())]
    for framework in chosen:
        place = 1 + FRAMEWORKS.index(framework)
        (row,) = KNOWN.select([framework], TASK)[:1]
        for turn in turns:
            edits = [(MISTAKES[mistake][0], *MISTAKES[mistake][place]) for mistake in turn]
            mutant = copied(row, edited(row.code, edits), tmp_path_factory.mktemp("mutant"))
            reference = entries.Reference(KNOWN.task(TASK), row.facts.flavour)
            (_, second), outputs = entries.judge(mutant, bench.prober(mutant, reference), reference, gpu=False)
            assert not outputs.error, outputs.error
            said |= {(framework, mistake): second.reason or "" for mistake in turn}
    return said


@pytest.mark.rows
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_answer_is_told(told, mistake):
    entry = MISTAKES[mistake][0]
    silent = [
        framework
        for framework in {framework for framework, _ in told}
        if not any(one.startswith(f"{entry} ") for one in told[framework, mistake].split("; "))
    ]
    assert not silent
