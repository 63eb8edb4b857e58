"""What the lessons of 2017 are worth today: a notebook as it is, against copies of it with one line changed.

    uv run benchmarks/lessons.py [--row pytorch] [--lessons accuracy|time] [--seeds N]

Lessons about accuracy train 3 epochs of 5,000 images, N times with other seeds, and test on 10,000; lessons about time train
2 epochs of 1,280 images three times, one variant after the other, and show the median of the second epochs.
The text behind the figures: docs/lessons.md.
"""

import argparse
import re
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common.record import EPOCH_PATTERN
from rosetta import catalog, plan
from rosetta.run.kernels import Kernels
from rosetta.speed import scripts

TIMED = 1280  # images of an epoch
AS_IT_IS = "as it is"
ACCURACY = {
    AS_IT_IS: (),
    "softmax in the network and in the loss": (
        ("model", "nn.Linear(512, 10),", "nn.Linear(512, 10), nn.Softmax(dim=1),"),
    ),
    "PyTorch's own initial weights": (
        ("model", "nn.init.xavier_uniform_(layer.weight)", "pass"),
        ("model", "nn.init.zeros_(layer.bias)", "pass"),
    ),
    "unit-gain momentum": (("optimizer", "momentum=MOMENTUM", "momentum=MOMENTUM, dampening=MOMENTUM"),),
    "dropout in the test": (("model", "model.eval()", "model.train()"),),
}
TIME = {
    AS_IT_IS: (),
    "channels first in memory": (("model", "torch.channels_last", "torch.contiguous_format"),),
    "gradient to the images": (("train", "forward(x_train[batch])", "forward(x_train[batch].requires_grad_())"),),
    "ReLU before pooling": (("model", "nn.MaxPool2d(2), nn.ReLU()", "nn.ReLU(), nn.MaxPool2d(2)"),),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--row", default="pytorch", help="pytorch or pytorch[torch1]: the edits fit its notebook")
    parser.add_argument("--lessons", choices=("accuracy", "time"))
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    known = catalog.load()
    rows = known.select(next(iter(known.tasks)), [options.row])

    def planned(**overrides) -> plan.Plan:
        return plan.make(known, rows, "quick", overrides, gpu=False)[0]

    if options.lessons != "time":
        for name, edits in ACCURACY.items():
            runs = [planned(EPOCHS=3, N_TRAIN=5000, SEED=seed) for seed in range(options.seeds)]
            found = [_accuracy(_output(run, edits)) for run in runs]
            print(f"{options.row}, {name:<40} {' '.join(f'{value:.2f} %' for value in found)}", flush=True)
    if options.lessons != "accuracy":
        seconds: dict[str, list[float]] = {name: [] for name in TIME}
        for _ in range(3):
            for name, edits in TIME.items():
                output = _output(planned(EPOCHS=2, N_TRAIN=TIMED, N_TEST=500), edits)
                seconds[name].append([float(match["seconds"]) for match in EPOCH_PATTERN.finditer(output)][1])
        for name, found in seconds.items():
            milliseconds = sorted(1000 * value / (TIMED / 64) for value in found)
            text = f"{statistics.median(milliseconds):.1f} ({milliseconds[0]:.1f} - {milliseconds[-1]:.1f}) ms a step"
            print(f"{options.row}, {name:<40} {text}", flush=True)


def _output(planned: plan.Plan, edits) -> str:
    with tempfile.TemporaryDirectory() as folder:
        code = scripts.edited(scripts.cells(planned.row.notebook), edits)
        return scripts.write(planned, code, Path(folder) / "script.py", Kernels()).run()


def _accuracy(output: str) -> float:
    return float(re.search(r"accuracy ([\d.]+) %", output)[1])


if __name__ == "__main__":
    main()
