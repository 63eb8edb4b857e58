"""What a run takes until its first training step is done, in parts."""

from pydantic import BaseModel, ConfigDict

from rosetta.records import Machine, Record

NAME = "startup"
# In the order in which they happen
PARTS = {
    "start_s": "process, kernel",
    "import_s": "imports",
    "data_s": "data",
    "build_s": "building",
    "first_step_s": "first step",
    "second_step_s": "second step",
    "total_s": "to first step",
}


class Start(BaseModel):
    """Seconds of one run, of one step an epoch. ``total_s`` reaches from the start of its process to the end of the first step."""

    model_config = ConfigDict(extra="forbid")

    start_s: float
    import_s: float
    data_s: float
    build_s: float
    first_step_s: float
    second_step_s: float

    @property
    def total_s(self) -> float:
        return self.start_s + self.import_s + self.data_s + self.build_s + self.first_step_s


class RowStart(BaseModel):
    model_config = ConfigDict(extra="forbid")

    row: str
    title: str
    starts: list[Start]


class Startup(BaseModel):
    """What was measured on one machine. commands: seconds of whole processes."""

    model_config = ConfigDict(extra="forbid")

    machine: Machine | None = None
    commands: dict[str, list[float]] = {}
    rows: list[RowStart] = []

    def add(self, new: RowStart) -> None:
        self.rows = [old for old in self.rows if old.row != new.row] + [new]


def of(record: Record) -> Start:
    """The parts of a run whose epochs are single steps."""
    metrics = record.metrics
    return Start(
        start_s=metrics.start_s,
        import_s=metrics.setup_s,
        data_s=metrics.data_s,
        build_s=metrics.build_s,
        first_step_s=metrics.epoch_s[0],
        second_step_s=metrics.epoch_s[1],
    )
