"""The commands that add a framework. What takes long to import is imported by the command that needs it."""

from typing import Annotated

import typer

from rosetta import lock
from rosetta.options import BuildOption, DataOption, GpusOption, PythonOption, SyntheticOption, TaskOption


def new(
    framework: Annotated[
        str, typer.Argument(metavar="FRAMEWORK", help="The name of its notebook and catalog entry, as in my_framework.")
    ],
    task: TaskOption = None,
    like: Annotated[
        str | None,
        typer.Option(metavar="ROW", help="The row whose notebook is copied; the first of the catalog's `compared`."),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The folder below environments/; the framework's name when not given. Share one that exists if the "
            "framework computes through a package that is there: a copy of it may take gigabytes.",
        ),
    ] = None,
) -> None:
    """Add a framework: write its notebook, its environment and its catalog entry, and tell what is left to do."""
    from rosetta.adding import scaffold

    raise typer.Exit(lock.alone("new", lambda: scaffold.new(framework, task, like, environment)))


def check(
    row: Annotated[str, typer.Argument(metavar="ROW", help="The row, as run names it.")],
    task: TaskOption = None,
    data_dir: DataOption = None,
    synthetic: SyntheticOption = False,
    python: PythonOption = None,
    build: BuildOption = None,
    gpus: GpusOption = None,
) -> None:
    """Check a new row: its notebook, its concepts, a smoke run, all levels of verify; write down what it costs.

    It stops at the first mistake and explains it, with exit code 1. The results folder stays as it is.
    """
    from rosetta.adding import check as checking
    from rosetta.verify import command

    options = command.Options(task, data_dir, synthetic, None, python or [], build or [], gpus, jobs=1)
    raise typer.Exit(lock.alone("check", lambda: checking.check(row, options)))
