"""The command line of ``measure`` and ``sweep``. The module that does the work is imported when its command is called."""

from typing import Annotated

import typer

from rosetta import lock
from rosetta.options import (
    BuildOption,
    DataOption,
    GpusOption,
    Names,
    OutOption,
    PythonOption,
    SyntheticOption,
    TaskOption,
    results_folder,
)

app = typer.Typer(help="Measure how fast rows and this machine are; docs/performance.md says what was found.")


@app.command()
def fastest(
    names: Names = None,
    task: TaskOption = None,
    gpus: GpusOption = None,
    synthetic: SyntheticOption = False,
    data_dir: DataOption = None,
    python: PythonOption = None,
    build: BuildOption = None,
    out: OutOption = None,
    steps: Annotated[
        int, typer.Option(min=1, help="Of an epoch, a pass or a repeat; a tenth of it where a step takes seconds.")
    ] = 50,
    epochs: Annotated[
        int, typer.Option(min=2, help="Epochs, or passes where nothing is trained; the first is not counted.")
    ] = 6,
) -> None:
    """Every notebook's loop against the fastest idiomatic one of its framework, an epoch, a pass or a repeat each by turns."""

    def work() -> int:
        from rosetta.measure import commands
        from rosetta.measure.rows import RowOptions

        options = RowOptions(names, task, gpus, synthetic, data_dir, python, build, out)
        return commands.fastest(options, steps, epochs)

    raise typer.Exit(lock.alone("fastest", work, results_folder(out)))


@app.command()
def floor(
    size: Annotated[int, typer.Option(min=1, help="Rows and columns of the matrices that are multiplied.")] = 2048,
    repeats: Annotated[int, typer.Option(min=1, help="How often.")] = 10,
    out: OutOption = None,
) -> None:
    """The arithmetic of a training step, and how fast this processor does as much in NumPy's matrix product."""

    def work() -> int:
        from rosetta.measure import commands

        return commands.floor(size, repeats, out)

    raise typer.Exit(lock.alone("floor", work, results_folder(out)))


def sweep(
    names: Names = None,
    task: TaskOption = None,
    gpus: GpusOption = None,
    synthetic: SyntheticOption = False,
    data_dir: DataOption = None,
    python: PythonOption = None,
    build: BuildOption = None,
    out: OutOption = None,
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

    def work() -> int:
        from rosetta.measure import commands
        from rosetta.measure.rows import RowOptions

        options = RowOptions(names, task, gpus, synthetic, data_dir, python, build, out)
        return commands.sweep(options, threads, axis, steps, repeats, plot, protocol, minutes)

    raise typer.Exit(lock.alone("sweep", work, results_folder(out)))
