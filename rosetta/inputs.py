"""The commands that make what runs may be given: weights that others publish, and folders of pictures."""

from pathlib import Path
from typing import Annotated

import typer

from rosetta import lock
from rosetta.options import BuildOption, DataOption, PythonOption, SyntheticOption

app = typer.Typer(help="Make data of one's own for tasks that take it.")


@app.command()
def images(
    to: Annotated[Path, typer.Argument(metavar="DEST", help="A new or empty folder.")],
    n: Annotated[int, typer.Option("--n", min=1, max=10_000, help="How many.")] = 2000,
    size: Annotated[int, typer.Option(min=1, help="Pixels a side.")] = 256,
    by_class: Annotated[bool, typer.Option("--by-class", help="In a folder for each class.")] = False,
    data_dir: DataOption = None,
    synthetic: SyntheticOption = False,
) -> None:
    """Write test images of CIFAR-10, enlarged, as JPEG files."""
    from common.data import pictures  # here, because it brings NumPy
    from common.data.errors import DataError
    from rosetta.errors import RosettaError

    try:
        pictures.write(str(to), n, size, data_dir, synthetic or None, by_class)
    except DataError as error:
        raise RosettaError(str(error)) from None
    print(
        f"{to}: {n:,} pictures{' of SYNTHETIC data' if synthetic else ''}. A run takes them by --set IMAGES={to.absolute()}"
    )


def weights(
    task: Annotated[str, typer.Argument(metavar="TASK")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As its publisher has it.")],
    source: Annotated[str, typer.Option("--from", metavar="NAME", help="Who publishes it.")],
    to: Annotated[Path, typer.Option(metavar="FILE.npz", help="Where to write.")] = Path("weights.npz"),
    python: PythonOption = None,
    build: BuildOption = None,
) -> None:
    """Make canonical weights, which every notebook of a task takes, from a published file."""
    from rosetta import published_weights
    from rosetta.run import kernels

    given = kernels.chosen(python or [], build or [])
    raise typer.Exit(lock.alone("weights", lambda: published_weights.convert(task, source, file, to, given)))
