"""The options that every measurement of rows takes."""

from dataclasses import dataclass

from rosetta.options import (
    BuildOption,
    DataOption,
    GpusOption,
    Names,
    OutOption,
    PythonOption,
    SyntheticOption,
    TaskOption,
)


@dataclass(frozen=True)
class RowOptions:
    """names: of rows; none asks for all that can be measured so and gain something on this machine."""

    names: Names = None
    task: TaskOption = None
    gpus: GpusOption = None
    synthetic: SyntheticOption = False
    data_dir: DataOption = None
    python: PythonOption = None
    build: BuildOption = None
    out: OutOption = None
