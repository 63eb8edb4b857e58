"""``run_all.py compare`` and the end of a batch: what has changed between two sets of records by more than noise.

Two figures differ where their medians do by a factor, and their ranges lie that factor apart.
"""

import io
import subprocess
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from math import inf, sqrt
from pathlib import Path

from rosetta import records
from rosetta.errors import RosettaError
from rosetta.figures import Cell, Heading, Sample, Table
from rosetta.files import parse
from rosetta.kinds import KINDS
from rosetta.paths import checkout
from rosetta.records import Record
from rosetta.report.results import current
from rosetta.tasks import PRESETS, UNTIMED
from rosetta.terminal import Console

FACTOR = 1.1
ALONE = 3  # a single run has no range: it must change by that many times as much, 1.3 for 1.1
STANDARD_ERRORS = 3  # of a share that a single run has, either way: its range
SHOWN = 4  # columns of a side with which nothing can be compared
LINES = 12  # at the end of a batch; the rest is counted
WORSE, BETTER, NEW, GONE, OTHER = OUTCOMES = ("worse", "better", "new", "gone", "not comparable")
BADGES = {WORSE: "bad", BETTER: "good"}


@dataclass(frozen=True)
class Change:
    """One line of what changed; ``before`` and ``after`` are as they are to be read."""

    place: tuple[str, str, str]  # machine, task, and column of the task's table
    row: str
    outcome: str
    quantity: str = ""
    before: str = ""
    after: str = ""
    why: str = ""


@dataclass
class Comparison:
    changes: list[Change] = field(default_factory=list)
    rows: int = 0  # that both sides have under the same conditions

    def of(self, *outcomes: str) -> list[Change]:
        return [change for change in self.changes if change.outcome in outcomes]


def compare_names(before: str, after: str, factor: float | None) -> int:
    """Show what changed beyond noise between two folders or revisions; exit code 1 if something became worse."""
    factor = FACTOR if factor is None else factor
    if not factor > 1:
        raise RosettaError(f"--factor {factor:g} is no change for the worse: give a number above 1, such as 1.1")
    (first, earlier), (second, later) = read(before), read(after)
    comparison, console = compare(earlier, later, factor), Console()
    console.say(f"from {first} to {second}")
    if not comparison.rows and not comparison.of(WORSE):
        machines = [sorted({record.machine.name for record in side}) for side in (earlier, later)]
        if machines[0] != machines[1]:
            comparison = compare(earlier, later, factor, across=True)
        if not comparison.rows:
            raise RosettaError(
                f"nothing can be compared: {first} has {_about(earlier)}; {second} has {_about(later)}. "
                "Figures compare only where row, task, preset and what was changed are the same"
            )
        console.say(
            f"no machine is in both ({', '.join(machines[0])}; {', '.join(machines[1])}): times are not compared",
            "yellow",
        )
    _print(comparison.changes, console)
    counts = Counter(change.outcome for change in comparison.changes)
    told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    console.say(f"{told or 'nothing changed beyond noise'}; {comparison.rows} rows compared")
    return int(counts[WORSE] > 0)


def _about(side: list[Record]) -> str:
    """Which columns it has, of which machines: ``cifar10_cnn quick of amd-epyc``."""
    columns = dict.fromkeys(f"{record.task} {record.column} of {record.machine.name}" for record in side)
    shown = ", ".join(list(columns)[:SHOWN])
    return f"{shown} and {len(columns) - SHOWN} more" if len(columns) > SHOWN else shown


def compare(
    before: Iterable[Record], after: Iterable[Record], factor: float = FACTOR, across: bool = False
) -> Comparison:
    """What changed from ``before`` to ``after``, row by row of the same machine, task and column.

    across: rows of any machine, without their times.
    """
    rows, comparison = defaultdict(lambda: ([], [])), Comparison()
    for side, every in enumerate((before, after)):
        for record in every:
            if record.preset in PRESETS:
                place = "all machines" if across else record.machine.name, record.task, record.column
                rows[place, record.name][side].append(record)
    for key, both in sorted(rows.items(), key=lambda item: item[0]):
        one, two = (current(ok) if (ok := [each for each in side if each.status == "ok"]) else [] for side in both)
        lines = list(_status(*both, one, two))
        if one and two:
            if differing := _conditions(one[0], two[0]):
                lines.append((OTHER, "", "", "", differing))
            else:
                comparison.rows += 1
                lines += _figures(one, two, factor, across)
                disturbed = set() if across else {run.disturbed for run in one + two} - {None}
                lines += [(OTHER, "times", "", "", why) for why in sorted(disturbed)]
        comparison.changes += [Change(*key, *line) for line in lines]
    return comparison


def _status(before: list[Record], after: list[Record], one: list[Record], two: list[Record]) -> Iterator[tuple]:
    """A row that came, went, broke or was mended. one, two: the runs that succeeded."""
    earlier, later = ([run for run in side if run.status not in ("ok", "skipped")] for side in (before, after))
    if later and one and not earlier:
        yield WORSE, "status", "ok", later[0].status, later[0].error or ""
    elif earlier and two and not later:
        yield BETTER, "status", earlier[0].status, "ok"
    elif bool(one) != bool(two):
        runs = one or two
        quantity = KINDS[runs[0].kind].main[0]
        figure = quantity.unit.all(quantity.sample(runs))
        reasons = [run.error for run in after if run.status == "skipped" and run.error]
        yield (GONE, quantity.heading, figure, "", *reasons[:1]) if one else (NEW, quantity.heading, "", figure)


def _conditions(before: Record, after: Record) -> str:
    """The parameters in which two experiments differ, so that their figures cannot be compared; "" where they do not.

    A switch that one side does not have was off; any other parameter that it does not have did not exist yet.
    """
    one, two = (side.params | {"kind": side.kind, "threads": side.threads} for side in (before, after))
    differing = []
    for name in [name for name in one | two if name not in KINDS[before.kind].free]:
        earlier, later = one.get(name, False), two.get(name, False)
        if earlier != later and (name in one and name in two or earlier is True or later is True):
            differing.append(f"{name} {earlier} and {later}")
    return ", ".join(differing)


def _figures(before: list[Record], after: list[Record], factor: float, across: bool) -> Iterator[tuple]:
    """What became worse or better. Of a share, which may be near 1, the error is compared: 1 - share."""
    for quantity in KINDS[before[0].kind].quantities:
        one, two = quantity.all(before), quantity.all(after)
        untimed = quantity.timed and (across or before[0].preset == UNTIMED)
        if quantity.better is None or one is None or two is None or untimed:
            continue
        shown = [quantity.unit.all(sample) for sample in (one, two)]
        if quantity.share_of:
            trials = [runs[0].params.get(quantity.share_of, 0) for runs in (before, after)]
            one, two = map(_errors, (one, two), trials)
        if abs(two.median - one.median) >= quantity.least and (why := apart(one, two, factor)):
            times = ratio(one.median, two.median)
            more_is_worse = quantity.better == "less" or quantity.share_of
            outcome = WORSE if (times > 1) == bool(more_is_worse) else BETTER
            yield outcome, quantity.heading, *shown, f"{'error ' * bool(quantity.share_of)}{times:.2f} times; {why}"


def _errors(shares: Sample, trials: int) -> Sample:
    """1 - share of each run. A single run has the range that so many trials leave open; other seeds scatter more."""
    errors = tuple(1 - share for share in shares.values)
    if len(errors) > 1:
        return Sample(errors)
    p = (errors[0] * trials + 1) / (trials + 2)  # so that 0 and 1 have a range, too
    margin = STANDARD_ERRORS * sqrt(p * (1 - p) / (trials + 2))
    return Sample((errors[0] - margin, errors[0], errors[0] + margin))


def apart(one: Sample, two: Sample, factor: float) -> str | None:
    """Why two samples differ by more than noise, in a few words; None if they do not."""
    change, single = ratio(one.median, two.median), min(len(one), len(two)) == 1
    if 1 / factor <= change <= factor:
        return None
    needed = 1 + ALONE * (factor - 1) if single else factor
    gap = ratio(one.high, two.low) if change > 1 else ratio(two.high, one.low)
    if gap <= needed:
        return None
    return f"n = 1: more than {needed:.2f} times" if single else f"ranges {gap:.2f} times apart"


def ratio(before: float, after: float) -> float:
    return after / before if before else (1.0 if after == before else inf)


def read(name: str) -> tuple[str, list[Record]]:
    """Title and records of a folder, or of ``results/`` at a git revision. Raises RosettaError for neither, and for no records."""
    if (folder := Path(name)).is_dir():
        title, every = str(folder), [record for _, record in records.read_all(folder)]
    else:
        title, every = _revision(name)
    if not every:
        raise RosettaError(f"there is no record in {title}: a results folder holds MACHINE/TASK/PRESET/ROW.json")
    return title, every


def _revision(name: str) -> tuple[str, list[Record]]:
    def git(*arguments: str) -> bytes:
        return subprocess.run([*checkout.git, *arguments], capture_output=True, check=True).stdout

    try:
        commit = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
    except (OSError, subprocess.CalledProcessError):
        raise RosettaError(f"{name} is neither a folder nor a git revision of this repository") from None
    title, below = f"{name} ({commit[:7]})", checkout.results.relative_to(checkout.root).as_posix()
    try:
        packed = git("archive", "--format=tar", commit, "--", f":(glob){below}/{records.RECORDS}")
    except subprocess.CalledProcessError:  # git's answer where nothing matches
        return title, []
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        texts = {file.name: archive.extractfile(file).read() for file in archive if file.isfile()}
    return title, [parse(Record, text.decode(errors="replace"), f"{file} of {name}") for file, text in texts.items()]


def show_batch(comparison: Comparison, console: Console) -> None:
    """Print what became worse or better, after a batch; nothing where there was nothing to compare with."""
    changes, since = comparison.of(WORSE, BETTER), "beyond noise since the earlier records of this machine"
    if changes:
        console.say(f"changed {since}:")
        _print(changes[:LINES], console)
        if len(changes) > LINES:
            console.say(f"  and {len(changes) - LINES} more")
    elif comparison.rows:
        console.say(f"nothing changed {since} ({comparison.rows} rows compared)")


def _print(changes: list[Change], console: Console) -> None:
    """A table for each column in which something changed."""
    for place, in_column in groupby(changes, key=lambda change: change.place):
        console.say(", ".join(place), "bold")
        rows = []
        for change in sorted(in_column, key=lambda change: OUTCOMES.index(change.outcome)):
            texts = (change.row, change.quantity, change.before, change.after, change.why)
            rows.append([Cell(change.outcome, badge=BADGES.get(change.outcome)), *map(Cell, texts)])
        console.table(Table([*map(Heading, ("", "row", "", "before", "after", "why"))], rows))
