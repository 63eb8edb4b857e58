"""How fast are our loops beside what people ran in 2017 and 2018? Each row trains by turns with the notebook of DeepLearningFrameworks
for the same framework and network, in the same environment; TensorFlow 1 with its own tf_cnn_benchmarks, too.

Run ``uv run python -m studies.peers --out results`` for all, or name rows. It fetches both by their commit; none of their code is
here. What a CPU needs changed in the notebooks stands in notebook.py, the benchmarks' flags in tf_cnn.py. The answer is in
results/speed.md, *Against the programs of 2017 and 2018*; its records are ``results/*/*/peers``.

They get the same data, in memory that is contiguous, and the variables of our environment, but for those that a program of then did
not set: threads, how they wait, and when memory goes back to the system.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from rosetta import lock
from rosetta.cli import count, where
from rosetta.measure import commands
from rosetta.measure.rows import Measuring
from rosetta.paths import checkout
from rosetta.plan import Plan
from rosetta.run.scripts import Script
from rosetta.where import Where

NOTEBOOKS_OF, BENCHMARKS_OF = "ilkarman/DeepLearningFrameworks", "tensorflow/benchmarks"
COMMITS = {NOTEBOOKS_OF: "671e2a0", BENCHMARKS_OF: "8fb7907"}
OURS_ALONE = {"OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"}
# CNTK's own GRU is missing, because its Adam takes no sparse gradients on a CPU; so is CNTK_CNN_highAPI, whose training cell
# trains once only
NOTEBOOKS = {
    "cifar10_cnn/pytorch": "PyTorch_CNN",
    "cifar10_cnn/pytorch[torch1]": "PyTorch_CNN",
    "cifar10_cnn/tensorflow1": "Tensorflow_CNN",
    "cifar10_cnn/keras2[tensorflow]": "Keras_TF_CNN",
    "cifar10_cnn/keras2[cntk]": "Keras_CNTK_CNN",
    "cifar10_cnn/keras2[theano]": "Keras_Theano_CNN",
    "cifar10_cnn/cntk": "CNTK_CNN",
    "cifar10_cnn/mxnet_gluon": "Gluon_CNN",
    "cifar10_cnn/mxnet_module": "MXNet_CNN_highAPI",
    "cifar10_cnn/caffe2": "Caffe2_CNN",
    "cifar10_cnn/lasagne": "Theano_Lasagne_CNN",
    "cifar10_cnn/chainer": "Chainer_CNN",
    "imdb_gru/pytorch": "PyTorch_RNN",
    "imdb_gru/pytorch[torch1]": "PyTorch_RNN",
    "imdb_gru/tensorflow1": "Tensorflow_RNN",
    "imdb_gru/keras2[tensorflow]": "Keras_TF_RNN",
    "imdb_gru/keras2[cntk]": "Keras_CNTK_RNN",
    "imdb_gru/mxnet_gluon": "Gluon_RNN",
    "imdb_gru/mxnet_module": "MXNet_RNN",
}
# Theirs by our names, in batches that a CPU finishes. Their AlexNet has fewer channels; their VGG-16 has dropout
MODELS = {
    "alexnet": ("alexnet", 16),
    "resnet50": ("resnet50_v1.5", 8),
    "inception_v3": ("inception3", 8),
    "vgg16": ("vgg16", 8),
}
SETS = {name: [{}] for name in NOTEBOOKS} | {
    "networks/tensorflow1": [{"NETWORK": ours, "BATCHSIZE": size} for ours, (_, size) in MODELS.items()]
}
SCRIPT = "from studies.peers.{module} import play\n\nplay(*{arguments!r})\n"


@click.command()
@where("names python out")
@click.option("--source", default="https://github.com/{}", show_default=True, help="Where a repository is cloned from.")
@count("--steps", "Of a turn.", default=50)
@count("--epochs", "Or repeats. The first is not counted.", default=4, least=2)
def main(where: Where, source: str, steps: int, epochs: int) -> None:
    def measure() -> int:
        bench = Measuring(where, "this study", "turns")
        with TemporaryDirectory(prefix="rosetta-") as clones:
            for repository, commit in COMMITS.items():
                clone = str(Path(clones, repository))
                fetched = ["clone", "--no-checkout", source.format(repository), clone]
                for command in (fetched, ["-C", clone, "checkout", commit]):
                    subprocess.run(["git", *command, "--quiet"], check=True)

            def both(planned: Plan, folder: str) -> list[Script]:
                file, size = Path(folder, "theirs.py"), planned.constants
                if planned.row.full_name in NOTEBOOKS:
                    notebook = Path(clones, NOTEBOOKS_OF, "notebooks", f"{NOTEBOOKS[planned.row.full_name]}.ipynb")
                    module, arguments = "notebook", (str(notebook), size["N_TRAIN"], epochs)
                else:
                    benchmarks = Path(clones, BENCHMARKS_OF, "scripts", "tf_cnn_benchmarks")
                    model, batch_size = MODELS[size["NETWORK"]]
                    module = "tf_cnn"
                    arguments = (str(benchmarks), model, batch_size, size["WARMUP"], size["STEPS"], size["REPEATS"])
                file.write_text(SCRIPT.format(module=module, arguments=arguments))
                ours = bench.script(planned, planned.row.code, folder)
                variables = {name: value for name, value in ours.variables.items() if name not in OURS_ALONE}
                return [ours, Script(file, ours.python, variables, checkout.root)]

            return commands.against(bench, "peers", bench.compared(steps, epochs, SETS), epochs, both, {})

    sys.exit(lock.alone("studies.peers", measure, where.results))


if __name__ == "__main__":
    main()
