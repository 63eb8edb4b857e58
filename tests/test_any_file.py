"""Files that anybody may have changed: each is refused in one line that names file and field, or it is shown like any other."""

import errno
import io
import json
import os
import tomllib
from collections.abc import Callable
from contextlib import redirect_stdout
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rosetta import catalog, cli, files, journal, plan, records
from rosetta.compare import compare, show_batch
from rosetta.errors import RosettaError
from rosetta.journal import Line, Order, Status
from rosetta.kinds import KINDS
from rosetta.measure import rows, tables
from rosetta.measure.rows import MachineSession
from rosetta.paths import checkout
from rosetta.records import Point, Telemetry
from rosetta.report import pages, results
from rosetta.terminal import Console
from tests.fault_table import seen
from tests.standin import TASK, StandIn, one_line
from tests.test_report import make

KNOWN = catalog.load()
NOW = datetime(2026, 11, 21, tzinfo=UTC)
HUGE, DEEP = 10**400, json.loads("[" * 300 + "]" * 300)
NASTY = [
    None, True, 0, -1, 1, 7, 99, HUGE, 2**62, 1e308, -1e308, 1e-300, float("nan"), float("inf"), [], {}, [None], DEEP,
    "", "..", "../../etc/passwd", "a\0b", "[/x] $y$ <b> |", "2026-01-01T00:00:00", "ok", "failed", "smoke", "x" * 300,
]  # fmt: skip
ANYTHING = st.sampled_from(NASTY) | st.integers() | st.floats() | st.text(max_size=20)
TEXTS = ["{", "[]", "[" * 9999, '{"a":' * 9999, "1" * 5000, "null", "a = " + "[" * 9999, "a = " + "1" * 5000]


def places(document, way=()):
    """The way to each value of a document."""
    yield way
    if isinstance(document, dict | list):
        for key, value in document.items() if isinstance(document, dict) else enumerate(document):
            yield from places(value, (*way, key))


@st.composite
def mutated(draw, document):
    """The document with one or two of its values replaced, renamed or taken away, and the names that the change concerns."""
    changed, names = deepcopy(document), set()
    for _ in range(draw(st.integers(1, 2))):
        *way, last = draw(st.sampled_from([way for way in places(changed) if way]))
        holder = changed
        for step in way:
            holder = holder[step]
        names |= {str(step) for step in (*way, last)}
        action = draw(st.sampled_from(["replace", "replace", "replace", "rename", "remove"]))
        if action == "replace":
            holder[last] = deepcopy(draw(ANYTHING))
        elif action == "rename" and isinstance(holder, dict):
            holder[f"{last[:-2]}x"] = holder.pop(last)
            names.add(f"{last[:-2]}x")
        else:
            del holder[last]
    return changed, names


def refusal(use: Callable[[], Any]) -> str | None:
    """The line of a refusal, if there is one; nothing else may be raised."""
    try:
        with redirect_stdout(io.StringIO()):
            use()
    except RosettaError as error:
        return one_line(str(error))
    return None


def toml(value) -> str:
    """A value as TOML; what TOML has not, as a text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value) if isinstance(value, float) else json.dumps(value if value is not None else "none")


def write(file: Path, document: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".toml":
        file.write_text("".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in document.items()))
    else:
        file.write_text(json.dumps(document))


def as_written(model) -> dict:
    return json.loads(model.model_dump_json(by_alias=True))


class Case(NamedTuple):
    """A kind of file: a good document, where it lies, what a command does with it."""

    document: dict
    file: str
    use: Callable[[Path], Any]
    place: str = ""  # what a refusal names: a part of the file's path
    names: set[str] = set()  # or of these instead of a field that was changed


RECORD = make(
    metrics=KINDS["train"].metrics(
        accuracy=0.25, loss=[2.0, 1.5, 1.2], epoch_s=[7.0, 5.3, 5.2], epoch_accuracy=[0.1, 0.2, 0.25], train_s=17.5,
        target_s=7.0, first_epoch_s=7.0, steady_epoch_s=5.2, examples_per_s=943.4, evaluate_s=1.0, peak_rss=2**30,
        examples_per_j=3.0, wall_s=20.0, cpu_s=40.0, energy_j=1e4, parameters=7, start_s=1.0, peak_gpu_memory=2**30,
    ),
    params={"EPOCHS": 3, "BATCHSIZE": 64, "LR": 0.1, "N_TRAIN": 5000, "N_TEST": 1000, "SEED": 0, "TARGET_ACCURACY": 0.2},
    changed={"BATCHSIZE": 64}, telemetry=Telemetry(power_w=100.0), threads=2,
)  # fmt: skip
STATUS = Status(id="20261121-000000", host="elsewhere", pid=7, started=NOW, ended=NOW, slots=2)
STATUS.lines = [
    Line(row="pytorch", estimate_s=9, started=NOW, where="GPU 0", part="epoch 1/2", note="loss 1"),
    Line(row="flax", estimate_s=9, state="failed", started=NOW, ended=NOW, result="x", error="RuntimeError"),
]
ORDER = Order(rows=[f"{TASK}/pytorch"], preset="smoke", overrides={"EPOCHS": 2, "SEED": 1}, timeout_s=60, threads=1)
BATCH = f"{journal.FOLDER}/{STATUS.id}"
SOURCE = KNOWN.task(TASK).published[0]
POINTS = {
    "sweep": [{"threads": 2, "BATCHSIZE": 64, "steps": 5, "phase": phase} for phase in ("forward", "backward", "step")],
    "fastest": [{"program": program, "BATCHSIZE": 64, "steps": 5} for program in ("notebook", "fastest")],
}
FLOOR = MachineSession(
    what="floor", machine=RECORD.machine, measured=NOW, points=[Point(at={"size": 8}, values=[1e12], unit="FLOP/s")]
)


def use_record(folder: Path) -> None:
    ((_, record),) = records.read_all(folder)
    pages.make(KNOWN, folder)
    for pair in ((RECORD, record), (RECORD,)), ((record,), (RECORD,)), ((RECORD,), (record,)):
        show_batch(compare(*pair), Console())


def use_order(folder: Path) -> None:
    order = files.load(Order, folder / BATCH / "order.json")
    plans = plan.make(KNOWN, KNOWN.select(order.rows)[:3], order.preset or "smoke", order.overrides, gpu=False)
    plan.soonest_first(plans, [], lambda _: 0.0, [*KNOWN.tasks])


def use_status(folder: Path) -> None:
    (folder / BATCH / "order.json").touch()
    journal.watch("last", folder)


def use_figures(folder: Path) -> None:
    for column in results.published(SOURCE).columns.values():
        assert all(map(KNOWN.task(TASK).kind.clocked.unit.one, column.values()))


def use_tables(folder: Path) -> None:
    tables.text(KNOWN, [record for _, record in records.read_all(folder)], folder)


def use_floor(folder: Path) -> None:
    swept = make(preset="sweep", points=[Point(at=at, values=[1.0]) for at in POINTS["sweep"]])
    tables.by_name(KNOWN, [swept], folder)["limits"]()


def use_checkout(root: Path) -> None:
    there = catalog.load()
    plans = plan.make(there, there.rows(), "smoke", {}, gpu=False)
    plan.soonest_first(plans, [], lambda _: 0.0, [*there.tasks])
    pages.make(there, root / "results")


def place(record: records.Record) -> str:
    return records.path(record, Path()).as_posix()


CASES = {
    "record": Case(as_written(RECORD), place(RECORD), use_record, ".json"),
    "order": Case(as_written(ORDER), f"{BATCH}/order.json", use_order, names={""}),  # as the command line, where it is planned
    "status": Case(as_written(STATUS), f"{BATCH}/status.json", use_status, ".json"),
    "published": Case(tomllib.loads((checkout.results / f"published/{SOURCE}.toml").read_text()), f"results/published/{SOURCE}.toml", use_figures, ".toml"),
    "floor": Case(as_written(FLOOR), f"{FLOOR.machine.name}/{rows.FOLDER}/floor.20261121-000000.json", use_floor, names={"points"}),
    "catalog": Case({}, "catalog.toml", use_checkout, names={"framework", "row"}),  # the document is the stand-in's
    "task": Case({}, f"notebooks/{TASK}/task.toml", use_checkout, ".toml"),
}  # fmt: skip
for what, points in POINTS.items():
    one = make(preset=what, points=[Point(at=at, values=[1.0, 2.0]) for at in points])
    CASES[what] = Case(as_written(one), place(one), use_tables, what, {"points"})


@pytest.fixture
def begin(monkeypatch, tmp_path):
    """Finds the folder and the good document of a case; the stand-in's catalog and tasks are read in this process."""

    def find(name: str) -> tuple[Case, Path, dict]:
        case = CASES[name]
        root = tmp_path if case.document else StandIn(tmp_path / "checkout").root
        if case.use in (use_figures, use_checkout):
            monkeypatch.setattr(checkout, "root", root)
        return case, root, case.document or tomllib.loads((root / case.file).read_text())

    return find


@pytest.mark.parametrize("name", CASES)
def test_any_change_is_refused_or_shown(begin, name):
    case, folder, good = begin(name)
    file = folder / case.file
    write(file, good)
    case.use(folder)
    accepted = 0

    # The same tries each time, so that a failure is found again by everybody
    @settings(
        max_examples=100, derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(mutated(good) | st.text() | st.sampled_from(TEXTS))
    def each(change):
        nonlocal accepted
        if isinstance(change, str):  # in the place of the whole file
            file.write_text(change, encoding="utf-8", errors="replace")
            line = refusal(lambda: case.use(folder))
            assert line and file.name in line
            return
        write(file, change[0])
        line = refusal(lambda: case.use(folder))
        if line is None:
            accepted += 1
            return
        unread = "Invalid JSON" in line or " (at " in line or "nested too deeply" in line
        assert len(line) < 2000 and case.place in line, line
        assert unread or any(word in line for word in change[1] - {""} | case.names), line

    each()
    assert accepted


NEWER = "was written by a newer version: its schema is 99, and this one reads 2; update the checkout"
REFUSED = [  # file, the way to a value, what stands there, what is said, and the fault of the table
    ("record", "schema", 99, f"pytorch.json {NEWER}", ("a record of a newer version", "`schema` 99 in a record")),
    ("record", "schema", 1, "pytorch.json is not valid: schema: Input should be 2; mend or delete it", None),
    ("record", "params LR", float("nan"), "params: LR cannot be nan", ("NaN in a record", "`LR` is NaN")),
    ("record", "params N_TRAIN", HUGE, "params: N_TRAIN cannot be 1000000", None),
    ("record", "params x", DEEP, "Invalid JSON: recursion limit exceeded", ("a record nested too deeply", "300 lists, one in the other, in a record")),
    ("record", "notebook executed", "../../etc/passwd", "notebook.executed: String should", ("a record leads elsewhere", "`../../etc/passwd` for the executed notebook")),
    ("record", "metrics peak_rss", HUGE, "metrics.peak_rss: Input should be less than", ("a huge number in a record", "10^400 bytes of memory")),
    ("record", "devcie", "cpu", "devcie: Extra inputs are not permitted; did you mean device?", None),
    ("record", "started", "2026-11-21T00:00:00", "started: Input should have timezone info", None),
    ("record", "machine name", "..", "by its machine.name it belongs at ", None),
    ("record", "seed", 3, "by its framework, variant, seed, session or status it belongs at 'pytorch.seed-3.json', not 'pytorch.json'", None),
    ("record", "kind", "infer", "kind: infer, but", None),
    ("catalog", "frameworks good reelesed", 1, "reelesed: Extra inputs are not permitted; did you mean", None),
    ("catalog", "frameworks good imports", ["numpy; import os"], "imports", None),
    ("catalog", "schema", 99, f"catalog.toml {NEWER}", ("a catalog of a newer version", "`schema` 99 in `catalog.toml`")),
    ("catalog", "frameworks good variants slow parameters", {"SECOND": 30}, "SECOND; did you mean SECONDS?", ("a typo in a variant", "`SECOND` for `SECONDS` in `catalog.toml`")),
    ("catalog", "frameworks good variants slow parameters", {}, "it takes programs/variants/good-slow.py, and", ("a variant without its program", "`[frameworks.good.variants.slow]` without a line")),
    ("catalog", "frameworks good variants slow parameters", {"SECONDS": True}, "SECONDS is 0.05 by itself; it cannot be True", None),
    ("task", "presets smoke EPOSCH", 1, f"presets.smoke of notebooks/{TASK}/task.toml: EPOSCH; did you mean EPOCHS?", ("a typo in a preset", "`EPOSCH` for `EPOCHS` in `task.toml`")),
    ("task", "presets smoke EPOCHS", 0, "EPOCHS is 10 by itself; it cannot be 0", ("a preset that cannot be", "`EPOCHS = 0` in `task.toml`")),
    ("task", "presets smoke N_TEST", 10001, "N_TEST is 10001, but there are only 10000", None),
    ("task", "presets smoke MOMENTUM", 0.5, "presets.smoke sets MOMENTUM, which the parameters cell of", None),
    ("task", "kind", "trian", "kind: Input should be 'train', 'infer', '", None),
    ("task", "presets", {"full": {}}, "a task has the presets smoke, quick, ", None),
    ("task", "rows good[*] cots", 1, "task.toml is not valid: rows.good[*].cots: Extra inputs are not permitted", None),
    ("task", "data", "cifar01", "data: there is no common/data/cifar01.py", None),
    ("task", "data", "../cifar10", "data: String should match pattern", None),
]  # fmt: skip


@pytest.mark.parametrize("name", ["record", "catalog", "task"])
def test_refusal(begin, name):
    case, folder, good = begin(name)
    for way, value, message, told in (refused for file, *refused in REFUSED if file == name):
        document = holder = deepcopy(good)
        *steps, last = way.split()
        for step in steps:
            holder = holder[step]
        holder[last] = value
        if way == "kind" and name == "record":
            document |= {"metrics": {}, "params": {}}
        write(folder / case.file, document)
        line = refusal(lambda: case.use(folder))
        assert line and message in line, way
        if told:
            kept = "the file; nothing is overwritten" if name == "record" else "everything; nothing was started"
            seen(*told, line, kept)


# ---- What is no file


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_one_line_at_once(tmp_path, make):
    """A pipe would never answer, and a device never end."""
    make(tmp_path / "record.json")
    with pytest.raises(RosettaError, match="record.json cannot be read: "):
        files.text(tmp_path / "record.json")


@pytest.mark.parametrize("method", ["glob", "open"])
def test_a_disk_that_fails_is_one_line(monkeypatch, tmp_path, capsys, method):
    def fail(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(tmp_path))

    monkeypatch.setattr(Path, method, fail)
    monkeypatch.setattr("sys.argv", ["run_all.py", "report", "--out", str(tmp_path)])
    monkeypatch.setattr("rosetta.streams.keep_on", lambda: None)
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert "Input/output error" in one_line(capsys.readouterr().err)
