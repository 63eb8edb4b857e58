"""MXNet Module: the symbol's executor without the module, its inputs written once and the loss taken of the last step alone."""

# %% step
kept = {name: "null" if name in ("data", "softmax_label") else "write" for name in loss.list_arguments()}
executor = loss.simple_bind(device, kept, data=x.shape, softmax_label=y.shape)
executor.copy_params_from(*model.get_params())
executor.arg_dict["data"][:], executor.arg_dict["softmax_label"][:] = x, y
trained = [name for name in names if name in executor.arg_dict]
weights, grads = ([arrays[name] for name in trained] for arrays in (executor.arg_dict, executor.grad_dict))
update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=LR, momentum=MOMENTUM))
log = StepLog(REPEATS)
for steps in [WARMUP] + [STEPS] * REPEATS:
    for _ in range(steps):
        executor.forward(is_train=True)
        executor.backward()
        if NETWORK == "lstm":
            mx.gluon.utils.clip_global_norm(grads, CLIP, check_isfinite=False)
        update(list(range(len(trained))), grads, weights)
    mx.nd.waitall()
    log.done(steps, -executor.outputs[0].pick(y).log().mean().asnumpy())
model.set_params(executor.arg_dict, executor.aux_dict, allow_extra=True)
