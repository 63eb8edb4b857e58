"""The command line. Modules that take long to import are imported by the command that needs them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from rosetta.errors import RosettaError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="The same network in every deep-learning framework: run the notebooks, collect the table. Without a command: run.",
)

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FRAMEWORK | FRAMEWORK[VARIANT]]...",
        help="Rows to run, e.g. pytorch 'keras[jax]' 'pytorch[*]'; all when none is named.",
    ),
]
TaskOption = Annotated[str | None, typer.Option(help="Task to run; the catalog's first when not given.")]
PythonOption = Annotated[
    list[str] | None,
    typer.Option(
        "--python",
        metavar="ENV=PATH",
        help="Use this interpreter for an environment (or all=PATH) and install nothing.",
    ),
]
OutOption = Annotated[
    Path | None, typer.Option(help="Folder for records, executed notebooks and results.md, instead of results/.")
]
DataOption = Annotated[
    Path | None, typer.Option(help="Folder with the extracted data set, instead of ROSETTA_DATA or the cache.")
]
SyntheticOption = Annotated[
    bool, typer.Option("--synthetic", help="Use generated stand-in data; marked so everywhere.")
]
Count = typer.Option(min=1)


@app.callback(invoke_without_command=True)
def default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        run()


@app.command()
def run(
    names: Names = None,
    task: TaskOption = None,
    preset: Annotated[
        str | None, typer.Option(help="smoke, quick or full; full where there is a GPU, quick where there is none.")
    ] = None,
    epochs: Annotated[int | None, Count] = None,
    train_size: Annotated[int | None, Count] = None,
    test_size: Annotated[int | None, Count] = None,
    batch_size: Annotated[int | None, Count] = None,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    data_dir: DataOption = None,
    synthetic: SyntheticOption = False,
    out: OutOption = None,
    timeout: Annotated[float | None, typer.Option(min=1, help="Seconds after which a run is stopped.")] = None,
    python: PythonOption = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Processors a run may use; all when not given.")] = None,
) -> None:
    """Run notebooks, one child process each, and write results.md."""
    from rosetta import commands

    given = {"EPOCHS": epochs, "N_TRAIN": train_size, "N_TEST": test_size, "BATCHSIZE": batch_size, "SEED": seed}
    overrides = {name: value for name, value in given.items() if value is not None}
    options = commands.RunOptions(
        task=task,
        preset=preset,
        overrides=overrides,
        data_dir=data_dir,
        synthetic=synthetic,
        out=out,
        timeout_s=timeout,
        python=python or [],
        threads=threads,
    )
    raise typer.Exit(_interruptible(lambda: commands.run(names or [], options)))


JobsOption = Annotated[
    int | None,
    typer.Option(min=1, help="Runs at a time, each with its share of the processors; one a processor when not given."),
]


@app.command()
def verify(
    names: Names = None,
    task: TaskOption = None,
    data_dir: DataOption = None,
    synthetic: SyntheticOption = False,
    out: OutOption = None,
    python: PythonOption = None,
    jobs: JobsOption = None,
) -> None:
    """Prove that notebooks are the same network: five levels against the reference in NumPy; writes conformance.md."""
    from rosetta.verify import command

    options = command.Options(task, data_dir, synthetic, out, python or [], jobs)
    raise typer.Exit(_interruptible(lambda: command.verify(names or [], options)))


@app.command()
def crossload(
    names: Names = None,
    task: TaskOption = None,
    data_dir: DataOption = None,
    synthetic: SyntheticOption = False,
    train_size: Annotated[int | None, Count] = None,
    test_size: Annotated[int | None, Count] = None,
    out: OutOption = None,
    python: PythonOption = None,
    jobs: JobsOption = None,
) -> None:
    """Let rows evaluate each other's trained weights, all by all; writes conformance.md."""
    from rosetta.verify import command

    options = command.Options(task, data_dir, synthetic, out, python or [], jobs)
    raise typer.Exit(
        _interruptible(lambda: command.crossload(names or [], {"N_TRAIN": train_size, "N_TEST": test_size}, options))
    )


@app.command("list")
def list_rows(task: TaskOption = None, python: PythonOption = None) -> None:
    """List the rows, their environments, and their state on this machine."""
    from rosetta import commands

    commands.list_rows(task, python or [])


@app.command()
def doctor(python: PythonOption = None) -> None:
    """Tell what this machine has: Pythons, disk, GPU, data, environments."""
    from rosetta import doctor as checks

    raise typer.Exit(checks.main(python or []))


@app.command()
def report(out: OutOption = None) -> None:
    """Write results.md and conformance.md from what earlier commands have found."""
    from rosetta import commands

    commands.write_report(out)


def _interruptible(work: Callable[[], int]) -> int:
    """The exit code of the work. Here, because Typer would end without a word at Ctrl-C."""
    try:
        return work()
    except KeyboardInterrupt:
        print("run_all.py: interrupted; finished runs are kept", file=sys.stderr)
        return 130


def main() -> None:
    """Run the command line; what the user can mend is one line on standard error and exit code 2."""
    try:
        app()
    except RosettaError as error:
        print(f"run_all.py: {error}", file=sys.stderr)
        sys.exit(2)
