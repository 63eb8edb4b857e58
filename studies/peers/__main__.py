"""How fast are our loops beside the notebooks that people ran in 2018? Each row trains by turns with the notebook of
DeepLearningFrameworks for the same framework and network, in the same environment.

Run ``uv run python -m studies.peers --out results`` for all, or name rows. It fetches those notebooks by their commit; none of their
code is here. What a CPU needs changed in them stands in notebook.py. The answer is in results/speed.md, *Against the notebooks
of 2018*; its records are ``results/*/*/peers``.

They get the same data, in memory that is contiguous, and the variables of our environment, but for those that a notebook of 2018 did
not set: threads, how they wait, and when memory goes back to the system.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from rosetta import lock
from rosetta.cli import count, where
from rosetta.measure import commands
from rosetta.measure.rows import Measuring
from rosetta.notebook import by_role
from rosetta.paths import checkout
from rosetta.plan import Plan
from rosetta.run.scripts import Script
from rosetta.where import Where

SOURCE, COMMIT = "https://github.com/ilkarman/DeepLearningFrameworks", "671e2a0"
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
SCRIPT = "from studies.peers.notebook import play\n\nplay({notebook!r}, {examples}, {epochs})\n"


@click.command()
@where("names python out")
@click.option("--source", default=SOURCE, show_default=True, help="Their repository, or a clone of it.")
@count("--steps", "Of an epoch.", default=50)
@count("--epochs", "The first is not counted.", default=4, least=2)
def main(where: Where, source: str, steps: int, epochs: int) -> None:
    def measure() -> int:
        bench = Measuring(where, "this study", "turns")
        bench.rows = [row for row in bench.rows if row.full_name in NOTEBOOKS]
        with tempfile.TemporaryDirectory(prefix="rosetta-") as folder:
            for command in (["clone", "--no-checkout", source, folder], ["-C", folder, "checkout", COMMIT]):
                subprocess.run(["git", *command, "--quiet"], check=True)

            @contextmanager
            def both(planned: Plan) -> Iterator[list[Script]]:
                notebook = Path(folder, "notebooks", f"{NOTEBOOKS[planned.row.full_name]}.ipynb")
                file, examples = Path(folder, "theirs.py"), planned.constants["N_TRAIN"]
                file.write_text(SCRIPT.format(notebook=str(notebook), examples=examples, epochs=epochs))
                with bench.scripts(planned, by_role(planned.row.notebook)) as (ours,):
                    variables = {name: value for name, value in ours.variables.items() if name not in OURS_ALONE}
                    yield [ours, Script(file, ours.python, variables, checkout.root)]

            return commands.against(bench, "peers", steps, epochs, both, {})

    sys.exit(lock.alone("studies.peers", measure, where.results))


if __name__ == "__main__":
    main()
