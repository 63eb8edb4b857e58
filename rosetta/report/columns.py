"""The columns of the table: what ran on one machine with one preset, row by row."""

from collections.abc import Iterable
from dataclasses import dataclass

from rosetta.catalog import PRESETS
from rosetta.plan import CUSTOM
from rosetta.records import Machine, Record
from rosetta.report import samples
from rosetta.report.figures import SECONDS


@dataclass(frozen=True)
class Column:
    """Records of one machine, preset and kind of data."""

    machine: Machine
    preset: str
    synthetic: bool
    runs: dict[str, list[Record]]  # by row name: its current experiment, one record a seed; only those that succeeded

    @property
    def title(self) -> str:
        return f"{self.machine.name}, {self.preset}{', SYNTHETIC data' if self.synthetic else ''}"

    @property
    def records(self) -> list[Record]:
        return [record for runs in self.runs.values() for record in runs]

    def about(self) -> str:
        """What was run, and on what."""
        machine, some = self.machine, self.records[0]
        gpus = ", ".join(f"{gpu.name} ({gpu.memory / 2**30:.0f} GiB, driver {gpu.driver})" for gpu in machine.gpus)
        size, data = some.params, some.dataset
        days = sorted({record.started.date().isoformat() for record in self.records})
        return (
            f"{machine.cpu}, {machine.cores} cores, {machine.memory / 2**30:.0f} GiB; {gpus or 'no GPU'}; {machine.os}. "
            f"{_epochs(size)} of {data.n_train:,} images ({'synthetic stand-in data' if data.synthetic else data.name}), "
            f"batch {size.get('BATCHSIZE')}, tested on {data.n_test:,}; "
            f"run on {' to '.join(dict.fromkeys((days[0], days[-1])))}."
        )


def columns(found: Iterable[Record]) -> list[Column]:
    """The columns of one task's records: real data before synthetic, longer presets before shorter."""
    order = {preset: place for place, preset in enumerate((*reversed(PRESETS), CUSTOM))}
    groups: dict[tuple, dict[str, list[Record]]] = {}
    for record in found:
        if record.status == "ok":
            key = (record.dataset.synthetic, record.machine.name, order.get(record.preset, len(order)), record.preset)
            groups.setdefault(key, {}).setdefault(record.name, []).append(record)
    made = []
    for (synthetic, _, _, preset), rows in sorted(groups.items(), key=lambda item: item[0]):
        runs = {name: samples.current(records) for name, records in rows.items()}
        made.append(Column(next(iter(runs.values()))[0].machine, preset, synthetic, runs))
    return made


def train_time(runs: list[Record]) -> str:
    """Seconds of training, marked where a GPU was there and not used."""
    text = SECONDS.all(samples.sample(runs, lambda record: record.metrics.train_s))
    return text + (", on cpu" if text and samples.on_cpu_despite_gpu(runs[0]) else "")


def _epochs(size: dict) -> str:
    return "1 epoch" if size.get("EPOCHS") == 1 else f"{size.get('EPOCHS')} epochs"
