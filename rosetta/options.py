"""Options that several commands of the command line share."""

import ast
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from rosetta.errors import RosettaError
from rosetta.paths import DATA, RESULTS, RUNS, SYNTHETIC

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ROW]...",
        help="Rows: FRAMEWORK, FRAMEWORK[VARIANT] or FRAMEWORK[*], with TASK/ in front where several tasks have it; "
        "all when none is named.",
    ),
]
RunNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ROW]...",
        help="Rows: FRAMEWORK, FRAMEWORK[VARIANT] or FRAMEWORK[*]. They are of the main task, unless --task, --all-tasks or TASK/ in "
        "front says otherwise. All rows of the task when none is named.",
    ),
]
EnvironmentNames = Annotated[
    list[str], typer.Argument(metavar="ENV...", help="Environments: the folders below environments/.")
]
AgainOption = Annotated[
    bool, typer.Option("--again", help="Make them anew, also if they are ready, from files that are fetched anew.")
]
LockOption = Annotated[
    bool,
    typer.Option(
        "--lock", help="First write the lock of their requirements; afterwards import what their frameworks import."
    ),
]
BatchName = Annotated[str, typer.Argument(metavar="[BATCH]", help="The batch; the latest when none is named.")]
LAST = "last"  # the latest batch
TaskOption = Annotated[str | None, typer.Option(metavar="TASK", help="Rows of this task alone.")]
PythonOption = Annotated[
    list[str] | None,
    typer.Option(
        "--python",
        metavar="ENV=PATH",
        help="Use this interpreter for an environment (or all=PATH) and install nothing.",
    ),
]
BuildOption = Annotated[
    list[str] | None,
    typer.Option(
        "--build",
        metavar="ENV=NAME",
        help="Use this build of an environment instead of the newest that fits the GPU; may be repeated.",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder for records, executed notebooks and tables; runs, which git ignores, when not given. "
        "results renews the committed ones.",
    ),
]
ShownOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder of the records; results, the committed ones, when not given."),
]
DataOption = Annotated[
    Path | None, typer.Option(help="Folder with the extracted data set, instead of ROSETTA_DATA or the cache.")
]
SyntheticOption = Annotated[
    bool,
    typer.Option(
        "--synthetic",
        callback=lambda given: given or os.environ.get(DATA) == SYNTHETIC,
        help="Use generated stand-in data, as ROSETTA_DATA=synthetic does; marked so everywhere.",
    ),
]
TasksOption = Annotated[
    list[str] | None,
    typer.Option("--task", metavar="TASK", help="Rows of this task, instead of the main one; may be repeated."),
]
RealOption = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="real",
        help="Stop where a data set cannot be downloaded. Otherwise its rows compute on generated data, marked SYNTHETIC.",
    ),
]
RepositoryOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The checkout's home on the web, for links to it; git's origin when not given."),
]
BranchOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="GitHub's branch that the site is published from: notebooks of it open in Colab."
    ),
]
GpusOption = Annotated[
    str | None,
    typer.Option(metavar="0,2|all|none", help="GPUs to use, as nvidia-smi numbers them; all when not given."),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Runs at a time, each with its share of the processors; one a GPU, or one a processor, when not given.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any constant of the task, such as LR=0.1; may be repeated."),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(min=1, help="Seconds after which a run is stopped; ten times its estimate when not given."),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS|FILE",
        help="Let the workers of a Dask cluster do the runs: its scheduler's address (tcp://host:8786) or file (.json).",
    ),
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="smoke, quick, epoch or full; full where there is a GPU, quick where there is none."
    ),
]
EpochsOption = Annotated[int | None, typer.Option(min=1, help="Training epochs, instead of the preset's.")]
TrainOption = Annotated[int | None, typer.Option(min=1, help="Training examples, instead of the preset's.")]
TestOption = Annotated[int | None, typer.Option(min=1, help="Test examples, instead of the preset's.")]
BatchOption = Annotated[int | None, typer.Option(min=1, help="Examples a step, instead of the task's.")]
SeedOption = Annotated[int | None, typer.Option(min=0, help="Instead of the task's: weights, order and dropout.")]


def results_folder(out: Path | None) -> Path:
    """The folder into which a command writes: the one that ``--out`` names, or ``runs``."""
    return (out or RUNS).absolute()


def about(folder: Path) -> str:
    """What is to be known of a folder that a command has written into, in brackets; nothing of one that the user named."""
    return f" (git ignores {RUNS.name}/; --out {RESULTS.name} renews what is committed)" if folder == RUNS else ""


def shown_folder(out: Path | None) -> Path:
    """The folder whose records a command shows: the one that ``--out`` names, or the committed ``results``."""
    return (out or RESULTS).absolute()


def assignments(option: str, texts: list[str], form: str = "NAME=VALUE") -> dict[str, str]:
    """``["A=1", "B="]`` -> {"A": "1", "B": ""}. Raises RosettaError for anything else, with the form that is wanted."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise RosettaError(f"{option} takes {form}, not {text}")
        pairs[name] = value
    return pairs


def constants(texts: list[str]) -> dict[str, Any]:
    """``["LR=0.1", "NETWORK=vgg16"]`` -> {"LR": 0.1, "NETWORK": "vgg16"}."""
    return {name: _value(text) for name, text in assignments("--set", texts).items()}


def axes(texts: list[str]) -> dict[str, list]:
    """``["BATCHSIZE=16,64"]`` -> {"BATCHSIZE": [16, 64]}."""
    return {name: [_value(part) for part in text.split(",")] for name, text in assignments("--axis", texts).items()}


def numbers(option: str, text: str) -> list[int]:
    """``"16,64"`` -> [16, 64]. Raises RosettaError for anything but numbers above 0."""
    values = [_value(part.strip()) for part in text.split(",")]
    if not all(isinstance(value, int) and value > 0 for value in values):
        raise RosettaError(f"{option} takes whole numbers above 0 such as 1,2, not {text}")
    return list(dict.fromkeys(values))


def _value(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # whatever it is, it is no number
        return text
    return value if isinstance(value, int | float) else text
