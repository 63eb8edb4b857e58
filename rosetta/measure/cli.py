"""The command line of ``measure`` and ``sweep``. The module that does the work is imported when its command is called."""

import importlib
import inspect
from collections.abc import Callable
from typing import Annotated

import typer

from rosetta import lock
from rosetta.measure.options import RowOptions
from rosetta.options import DataOption, OutOption, results_folder

app = typer.Typer(help="Measure how fast rows and this machine are; docs/performance.md says what was found.")

Steps = Annotated[
    int, typer.Option(min=1, help="Of an epoch, a pass or a repeat; a tenth of it where a step takes seconds.")
]
Epochs = Annotated[
    int, typer.Option(min=2, help="Epochs, or passes where nothing is trained; the first is not counted.")
]
Repeats = Annotated[int, typer.Option(min=1, help="How often.")]


def _command(module: str, rows: bool = True) -> Callable[[Callable], Callable]:
    """The command whose options a function declares: the function of its name in ``rosetta.measure.<module>``, alone at work.

    rows: it takes the options of ``RowOptions``, too, and hands them on as such.
    """
    shared = inspect.signature(RowOptions).parameters if rows else {}

    def decorate(declared: Callable) -> Callable:
        name = declared.__name__

        def command(**given) -> None:
            def work() -> int:
                function = getattr(importlib.import_module(f"rosetta.measure.{module}"), name)
                options = [RowOptions(**{option: given.pop(option) for option in shared})] if rows else []
                return function(*options, **given)

            raise typer.Exit(lock.alone(name, work, results_folder(given["out"])))

        parameters = [*shared.values(), *inspect.signature(declared).parameters.values()]
        keyword = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
        command.__signature__ = inspect.Signature(keyword)
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword}
        command.__name__, command.__doc__ = name, declared.__doc__
        return command

    return decorate


@app.command()
@_command("pairs")
def fastest(steps: Steps = 50, epochs: Epochs = 6) -> None:
    """Every notebook's loop against the fastest idiomatic one of its framework, an epoch, a pass or a repeat each by turns."""


@app.command()
@_command("pairs")
def settings(
    variables: Annotated[
        list[str],
        typer.Option(
            "--set", metavar="NAME=VALUE", help="An environment variable; NAME= goes without it. May be repeated."
        ),
    ],
    steps: Steps = 50,
    epochs: Epochs = 6,
) -> None:
    """Every notebook against itself with environment variables."""


@app.command()
@_command("startup")
def startup(repeats: Repeats = 3) -> None:
    """The commands' own start-up; imports, building, compiling and first step of every row."""


@app.command()
@_command("startup")
def overhead(repeats: Repeats = 5) -> None:
    """Seconds that the harness adds: a notebook's code as a plain script against the same notebook through run_all.py."""


@app.command()
@_command("lessons")
def lessons(seeds: Annotated[int, typer.Option(min=1, help="Runs of each lesson about accuracy.")] = 2) -> None:
    """What old lessons are worth: accuracy or time of a notebook as it is, and with a line changed (lessons.toml of the task)."""


@app.command()
@_command("machine", rows=False)
def floor(
    size: Annotated[int, typer.Option(min=1, help="Rows and columns of the matrices that are multiplied.")] = 2048,
    repeats: Repeats = 10,
    out: OutOption = None,
) -> None:
    """The arithmetic of a training step, and how fast this processor does as much in NumPy's matrix product."""


@app.command()
@_command("machine", rows=False)
def loading(repeats: Repeats = 5, data_dir: DataOption = None, out: OutOption = None) -> None:
    """Loading every task's data from a warm file cache."""


@app.command()
@_command("cluster", rows=False)
def cluster(
    workers: Annotated[str, typer.Option(metavar="1,2,...", help="Numbers of workers on this machine.")] = "1,2,4,8",
    runs: Annotated[int, typer.Option(min=1, help="Runs of the batch.")] = 32,
    seconds: Annotated[float, typer.Option(min=0, help="That each run sleeps.")] = 30,
    out: OutOption = None,
) -> None:
    """A batch of sleeping runs on the workers of a Dask cluster: time, efficiency, overhead a run."""


@_command("sweep")
def sweep(
    threads: Annotated[
        str | None,
        typer.Option(metavar="1,2,...", help="Numbers of processors; 1, 2, 4 ... up to all when not given."),
    ] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,...", help="Values of a parameter instead of the task's, e.g. BATCHSIZE=16,64."
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps that are timed at once; 100 or the protocol's when not given.")
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="How often: the mean and the spread of so many; 5 or the protocol's when not given."),
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Draw the picture, too.")] = False,
    protocol: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Repeat a published benchmark; its task's task.toml says its points."),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.1, help="Of a protocol: the cheapest points that fit into so much time."),
    ] = None,
) -> None:
    """Time forward, forward and backward, and the whole training step for numbers of threads and along the task's axes.

    Of a task that trains nothing, passes; of a task of networks, a published protocol."""
