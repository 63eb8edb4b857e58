"""What a soak must have left in the end, and nothing else."""

from collections.abc import Iterable
from pathlib import Path

from rosetta import lock, records
from rosetta.batch import journal
from rosetta.records import Record
from tests.soak_faults import Met, RunName, below

# What the row ``odd`` does instead, by the rest of its seed: a cell of the stand-in, and its status
ON_PURPOSE = {0: ("raises", "failed"), 1: ("segfault", "crashed"), 2: ("exits", "crashed"), 3: ("diverges", "diverged")}
PERIOD = 12
UNKNOWN_S = 30.0  # that a run may have taken which says nothing of it
AROUND_S = 10.0  # what comes before a run's process is started, and after it has ended


def wanted(run: RunName) -> str:
    """The status of a run that no fault meets."""
    row, seed = run
    return ON_PURPOSE.get(seed % PERIOD, ("", "ok"))[1] if row == "odd" else "ok"


def by_run(out: Path) -> dict[RunName, Record]:
    """The records of a results folder; of a run with two the one that failed."""
    return {(record.framework, record.seed or 0): record for _, record in records.read_all(out)}


def is_complete(out: Path, runs: Iterable[RunName]) -> bool:
    found = by_run(out)
    return all(run in found and found[run].status == wanted(run) for run in runs)


def unexplained(out: Path, since: float, met: list[Met]) -> list[str]:
    """Runs since a time of files that failed neither on purpose nor of a fault, one line each."""
    lines = []
    for run, record in by_run(out).items():
        ended = records.path(record, out).stat().st_mtime
        if record.status not in ("ok", wanted(run)) and ended >= since and not _explained(run, record, ended, met):
            lines.append(f"{run}: {record.status}: {record.error}")
    return lines


def _explained(run: RunName, record: Record, ended: float, met: list[Met]) -> bool:
    """Whether a signal was for one of the run's processes, or a fault met every run meanwhile. The clock explains nothing."""
    began = ended - (record.metrics.wall_s or UNKNOWN_S) - AROUND_S
    for one in met:
        kind, stopped = one.fault.kind, one.fault.kind == "stop" and one.fault.hits[0].role == "runner"
        meets = one.run == run or kind == "disk" or stopped or kind == "environment" and run[0] == "tiny"
        if meets and one.began <= ended and one.ended >= began:
            return True
    return False


def end_state(
    folder: Path, temp: Path, root: Path, outs: list[Path], runs: list[RunName]
) -> list[tuple[str, str, bool]]:
    """What is looked at, what was found, and whether it is as it must be."""
    valid = [len(records.read_all(out)) for out in outs]  # strict: raises for any that is not
    whole = sum(is_complete(out, runs) for out in outs)
    ill = [record for out in outs for record in by_run(out).values() if not sound(record)]
    lists = {
        "records that say no reason, or seconds that cannot be": [record.stem for record in ill],
        "processes left": [str(process) for process in below(folder)],
        "sockets left": open_sockets(folder),
        "locks held": [str(file) for file in locks(root, outs) if lock.is_held(file)],
        "lock files left in checkout and results": [
            str(file) for place in (root, *outs) for name in (lock.LOCK, lock.OWNER) if (file := place / name).exists()
        ],
        "temporary files left": [str(file) for file in temporary(temp, outs)],
        "files beside the records that are of none": [str(file) for out in outs for file in strays(out)],
    }
    return [
        ("records, of as many runs", f"{sum(valid)} of {len(runs) * len(outs)}", valid == [len(runs)] * len(outs)),
        ("batches in which every run ended as it should", f"{whole} of {len(outs)}", whole == len(outs)),
        *((what, "; ".join(found[:5]) or "0", not found) for what, found in lists.items()),
    ]


def sound(record: Record) -> bool:
    """A reason of one line where it failed; no seconds that a clock which was set would give."""
    if record.status != "ok":
        return bool(record.error) and len(record.error.splitlines()) == 1
    metrics = record.metrics
    return 0 < metrics.train_s <= metrics.wall_s < 1000 and 0 <= metrics.start_s <= metrics.wall_s


def locks(root: Path, outs: list[Path]) -> list[Path]:
    return [
        root / lock.LOCK,
        *(out / lock.LOCK for out in outs),
        *(f for out in outs for f in out.glob(".batches/*/lock")),
    ]


def temporary(temp: Path, outs: list[Path]) -> list[Path]:
    """All below the folder for temporary files; of results the runs' folders, files half written, and the place set aside."""
    patterns = (f"{journal.FOLDER}/*/rosetta-*", "**/*.tmp", f"{journal.FOLDER}/*/reserve")
    return [*temp.iterdir(), *(file for out in outs for pattern in patterns for file in out.glob(pattern))]


def strays(out: Path) -> list[Path]:
    """Notebooks and logs beside the records that no record names."""
    named = set()
    for file, record in records.read_all(out):
        named |= {file, *(file.with_name(name) for name in (record.notebook.executed, record.notebook.log) if name)}
    return [file for file in out.glob("[!.]*/*/*/*") if file not in named]


def open_sockets(folder: Path) -> list[str]:
    """The sockets of the system that lie below a folder."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return [path for line in lines if str(folder) in (path := line.rpartition(" ")[2])]
