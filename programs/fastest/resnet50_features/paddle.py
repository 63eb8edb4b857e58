"""PaddlePaddle: Paddle Inference, its engine for serving, which folds batch norm into convolutions and takes oneDNN on a CPU."""

# %% after weights
from tempfile import mkdtemp

from paddle import inference

prefix = os.path.join(mkdtemp(), "resnet50")
network.eval()
paddle.jit.save(network, prefix, [paddle.static.InputSpec([None, 3, 224, 224], "float32")])
config = inference.Config(prefix + ".json", prefix + ".pdiparams")
if device.startswith("gpu"):
    config.enable_use_gpu(1000, 0)
else:
    config.enable_mkldnn()
    config.set_cpu_math_library_num_threads(len(os.sched_getaffinity(0)))
predictor = inference.create_predictor(config)


# %% predict
def extract(batch):
    [features] = predictor.run([paddle.to_tensor(batch)])
    return features.numpy().squeeze((2, 3))


def predict():
    starts = range(0, len(x), BATCHSIZE)
    return np.concatenate([extract(x[start : start + BATCHSIZE]) for start in starts])


log = PassLog()
for _ in range(2):
    log.done(predict())
log.latency(lambda: extract(x[:1]))
