"""The commands that prove. What takes long to import is imported by the command that needs it."""

from typing import Annotated

import typer

from rosetta import lock
from rosetta.options import (
    BuildOption,
    DataOption,
    GpusOption,
    JobsOption,
    Names,
    OutOption,
    PythonOption,
    SetOption,
    SyntheticOption,
    TaskOption,
    TestOption,
    TrainOption,
    constants,
    results_folder,
)


def verify(
    names: Names = None,
    task: TaskOption = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also rows that have not changed since they were verified.")
    ] = False,
    drawn: Annotated[
        int,
        typer.Option(
            min=0, help="So many unchanged rows, drawn at random, too; fewer where their proofs took over 10 minutes."
        ),
    ] = 0,
    data_dir: DataOption = None,
    synthetic: SyntheticOption = False,
    out: OutOption = None,
    python: PythonOption = None,
    build: BuildOption = None,
    gpus: GpusOption = None,
    jobs: JobsOption = None,
) -> None:
    """Prove that notebooks are the same network: level by level against the reference in NumPy."""
    from rosetta.verify import command

    options = command.Options(task, data_dir, synthetic, out, python or [], build or [], gpus, jobs)
    raise typer.Exit(
        lock.alone("verify", lambda: command.verify(names or [], options, every, drawn), results_folder(out))
    )


def crossload(
    names: Names = None,
    task: TaskOption = None,
    data_dir: DataOption = None,
    synthetic: SyntheticOption = False,
    train_size: TrainOption = None,
    test_size: TestOption = None,
    set_: SetOption = None,
    out: OutOption = None,
    python: PythonOption = None,
    build: BuildOption = None,
    gpus: GpusOption = None,
    jobs: JobsOption = None,
) -> None:
    """Let rows of a task compute with the same weights, and compare: those that train evaluate each other's, all by all."""
    from rosetta.verify import command

    options = command.Options(task, data_dir, synthetic, out, python or [], build or [], gpus, jobs)
    sizes = {"N_TRAIN": train_size, "N_TEST": test_size}
    changed = {name: size for name, size in sizes.items() if size is not None} | constants(set_ or [])
    raise typer.Exit(
        lock.alone("crossload", lambda: command.crossload(names or [], changed, options), results_folder(out))
    )
