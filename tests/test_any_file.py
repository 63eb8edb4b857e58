"""Files that anybody may have changed: each is refused in one line that names file and field, or it is shown like any other."""

import io
import json
import sys
import tomllib
from contextlib import contextmanager, redirect_stdout
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rosetta import catalog, cli, plan, records, tasks
from rosetta import compare as comparing
from rosetta.batch import journal, watching
from rosetta.batch.journal import Line, Order, Status
from rosetta.errors import RosettaError
from rosetta.kinds import KINDS
from rosetta.measure import rows, tables
from rosetta.measure.rows import MachineSession
from rosetta.paths import CATALOG
from rosetta.records import Point, Telemetry
from rosetta.report import pages, results
from rosetta.terminal import Console
from tests.fault_table import seen
from tests.standin import TASK, StandIn, one_line
from tests.test_report import HERE, make

KNOWN = catalog.load()
NOW = datetime(2026, 11, 21, tzinfo=UTC)
HUGE, DEEP = 10**400, json.loads("[" * 300 + "]" * 300)
NASTY = [
    None,
    True,
    0,
    -1,
    1,
    7,
    99,
    HUGE,
    2**62,
    1e308,
    -1e308,
    1e-300,
    float("nan"),
    float("inf"),
    [],
    {},
    [None],
    DEEP,
]
NASTY += [
    "",
    "..",
    "../../etc/passwd",
    "a\0b",
    "[/x] $y$ <b> |",
    "2026-01-01T00:00:00",
    "ok",
    "failed",
    "smoke",
    "x" * 300,
]
ANYTHING = st.sampled_from(NASTY) | st.integers() | st.floats() | st.text(max_size=20)


def tries(number: int):
    """The same ones each time, so that a failure is found again by everybody."""
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    return settings(max_examples=number, derandomize=True, database=None, deadline=None, suppress_health_check=checks)


def places(document, way=()):
    """The way to each value of a document."""
    yield way
    if isinstance(document, dict | list):
        for key, value in document.items() if isinstance(document, dict) else enumerate(document):
            yield from places(value, (*way, key))


def mutated(document: dict):
    """The document with one or two of its values replaced, renamed or taken away, and the names that the change concerns."""

    @st.composite
    def draw_one(draw):
        changed, names = deepcopy(document), set()
        for _ in range(draw(st.integers(1, 2))):
            *way, last = draw(st.sampled_from([way for way in places(changed) if way]))
            holder = changed
            for step in way:
                holder = holder[step]
            names |= {str(step) for step in (*way, last)}
            action = draw(st.sampled_from(["replace", "replace", "replace", "rename", "remove"]))
            if action == "replace":
                value = draw(ANYTHING)
                holder[last] = json.loads(json.dumps(value)) if isinstance(value, list | dict) else value
            elif action == "rename" and isinstance(holder, dict):
                holder[last[:-2] + "x"] = holder.pop(last)
                names.add(last[:-2] + "x")
            else:
                del holder[last]
        return changed, names

    return draw_one()


def refused(read, file: str, names: set[str] = frozenset()) -> bool:
    """Whether it was refused: in one line, with the file and, where the text as such can be read, a field that was changed."""
    try:
        read()
    except RosettaError as error:
        line = one_line(str(error))
        unread = "Invalid JSON" in line or " (at " in line or "nested too deeply" in line
        assert file in line and len(line) < 2000, line
        assert unread or not names or any(name and name in line for name in names), line
        return True
    return False


def toml(value) -> str:
    """A value as TOML; what TOML has not, as a text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value) if isinstance(value, float) else json.dumps(value if value is not None else "none")


def toml_file(document: dict) -> str:
    return "".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in document.items())


def good(**more) -> dict:
    """A record as it is on disk, with a value in every field."""
    metrics = KINDS["train"].metrics(
        accuracy=0.25, loss=[2.0, 1.5, 1.2], epoch_s=[7.0, 5.3, 5.2], epoch_accuracy=[0.1, 0.2, 0.25], train_s=17.5,
        target_s=7.0, first_epoch_s=7.0, steady_epoch_s=5.2, examples_per_s=943.4, evaluate_s=1.0, peak_rss=2**30,
        examples_per_j=3.0, wall_s=20.0, cpu_s=40.0, energy_j=1e4, parameters=7, start_s=1.0, peak_gpu_memory=2**30,
    )  # fmt: skip
    params = {"EPOCHS": 3, "BATCHSIZE": 64, "LR": 0.1, "N_TRAIN": 5000, "N_TEST": 1000, "SEED": 0}
    made = make(
        metrics=metrics,
        params=params | {"TARGET_ACCURACY": 0.2, "TEST_EACH_EPOCH": True},
        changed={"BATCHSIZE": 64},
        telemetry=Telemetry(power_w=100.0),
        threads=2,
        **more,
    )
    return json.loads(made.model_dump_json(by_alias=True))


def put(document, folder: Path, place: dict | None = None) -> Path:
    """Write a record where the good one belongs."""
    file = records.path(make(changed={"BATCHSIZE": 64}, **(place or {})), folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return file


def show(after: list) -> None:
    """Every way in which a command shows records."""
    before = records.Record.model_validate(good())
    for pair in ((before, *after), (before,)), (after, (before,)), ((before,), after):
        comparing.show(comparing.compare(*pair), Console())


def test_record(tmp_path):
    from rosetta.site import build

    accepted = []

    @tries(180)
    @given(mutated(good()))
    def each(change):
        document, names = change
        file = put(document, tmp_path / "out")
        if refused(lambda: accepted.append((document, records.read_all(tmp_path / "out"))), file.name, names):
            return
        (_, record), *_ = accepted[-1][1]
        if not refused(lambda: pages.make(KNOWN, tmp_path / "out"), file.name, names):
            show([record])

    each()
    assert len(accepted) > 10
    for number, (document, _) in enumerate(accepted[:: len(accepted) // 6]):
        document["machine"]["name"] = name = f"m{number}"
        put(document, tmp_path / "all", {"machine": HERE.model_copy(update={"name": name})})
    build.write(tmp_path / "site", tmp_path / "all", None)


@tries(60)
@given(
    st.text()
    | st.sampled_from(
        ["{", "[]", "[" * 9999, '{"a":' * 9999, "1" * 5000, "null", "a = " + "[" * 9999, "a = " + "1" * 5000]
    )
)
def test_text_in_the_place_of_any_file(tmp_path_factory, text):
    folder = tmp_path_factory.getbasetemp() / "texts"
    for name, read in {
        "pytorch.json": lambda: records.read_all(folder / "out"),
        "order.json": lambda: journal.read_order(folder),
        "status.json": lambda: journal.read_status(folder),
        "x.toml": lambda: results.published("x", folder),
        "catalog.toml": lambda: catalog.load(folder / "catalog.toml"),
        "task.toml": lambda: tasks.load(folder),
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", errors="replace")
        if name == "pytorch.json":
            put(text.encode("utf-8", "replace").decode(), folder / "out")
        assert refused(read, name), name


TOLD = {  # by a part of the message: a fault of the table
    "pytorch.json was written by a newer": ("a record of a newer version", "`schema` 99 in a record"),
    "LR cannot be nan": ("NaN in a record", "`LR` is NaN"),
    "peak_rss: Input": ("a huge number in a record", "10^400 bytes of memory"),
    "recursion limit": ("a record nested too deeply", "300 lists, one in the other, in a record"),
    "notebook.executed": ("a record leads elsewhere", "`../../etc/passwd` for the executed notebook"),
    "catalog.toml was written by a newer": ("a catalog of a newer version", "`schema` 99 in `catalog.toml`"),
    "SECOND; did": ("a typo in a variant", "`SECOND` for `SECONDS` in `catalog.toml`"),
    "EPOSCH; did": ("a typo in a preset", "`EPOSCH` for `EPOCHS` in `task.toml`"),
    "EPOCHS is 10 by": ("a preset that cannot be", "`EPOCHS = 0` in `task.toml`"),
}


def told(message: str, line: str, kept: str) -> None:
    for part in TOLD:
        if part in message:
            seen(*TOLD[part], line, kept)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"schema": 99}, "pytorch.json was written by a newer version: its schema is 99, and this one reads 2; update"),
        ({"schema": 1}, "pytorch.json is not valid: schema: Input should be 2; mend or delete it"),
        ({"params": {"N_TRAIN": None}}, "params: N_TRAIN cannot be None"),
        ({"params": {"N_TRAIN": HUGE}}, "params: N_TRAIN cannot be 1000000"),
        ({"params": {"LR": float("nan")}}, "params: LR cannot be nan"),
        ({"params": {"x": DEEP}}, "Invalid JSON: recursion limit exceeded"),
        ({"notebook": {"path": "x", "sha256": "0", "executed": "../../etc/passwd"}}, "notebook.executed: String should"),
        ({"metrics": {"accuracy": 1.5}}, "metrics.accuracy: Input should be less than or equal to 1"),
        ({"metrics": {"loss": [1, "x"]}}, "metrics.loss.1: Input should be a valid number"),
        ({"metrics": {"peak_rss": HUGE}}, "metrics.peak_rss: Input should be less than"),
        ({"metrics": {"accuarcy": 1}}, "metrics.accuarcy: Extra inputs are not permitted"),
        ({"devcie": "cpu"}, "devcie: Extra inputs are not permitted; did you mean device?"),
        ({"started": "2026-11-21T00:00:00"}, "started: Input should have timezone info"),
        ({"machine": good()["machine"] | {"name": ".."}}, "by its machine.name it belongs at "),
        ({"task": "another"}, "by its task it belongs at 'another', not "),
        ({"seed": 3}, "by its framework, variant, seed, session or status it belongs at 'pytorch.seed-3.json', not 'pytorch.json'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)  # fmt: skip
def test_record_that_is_refused(tmp_path, monkeypatch, capsys, change, message):
    file = put(good() | change, tmp_path)
    text = file.read_text()
    monkeypatch.setattr(sys, "argv", ["run_all.py", "report", "--out", str(tmp_path)])
    monkeypatch.setattr(cli.streams, "keep_on", lambda: None)  # the streams are the test's
    with pytest.raises(SystemExit) as ended:
        cli.main()
    line = one_line(capsys.readouterr().err)
    assert ended.value.code == 2 and message in line and file.read_text() == text
    told(message, line, "the file; nothing is overwritten")


def test_record_of_another_kind(tmp_path):
    document = good() | {"kind": "infer", "metrics": {}, "params": {}}
    put(document, tmp_path)
    with pytest.raises(RosettaError, match="pytorch.json: kind: infer, but .* is of kind train"):
        pages.make(KNOWN, tmp_path)
    other, one = (records.Record.model_validate(each) for each in (document, good()))
    (change,) = comparing.compare([one], [other]).changes
    assert "kind train and infer" in change.why


def test_executed_copy_that_is_none(tmp_path):
    """What lies there is no notebook; ``test_record`` has records whose copy is gone."""
    from rosetta.site import build

    file = put(good(), tmp_path / "out")
    file.with_name("pytorch.ipynb").write_text("[]")
    with pytest.raises(RosettaError, match="pytorch.ipynb is not a notebook"):
        build.write(tmp_path / "site", tmp_path / "out", None)


AT = {"threads": 2, "BATCHSIZE": 64, "phase": "step", "steps": 5}
POINTS = {
    "sweep": [AT | {"phase": phase} for phase in ("forward", "backward", "step")],
    "fastest": [{"program": "notebook"} | AT, {"program": "fastest"} | AT],
}


@pytest.mark.parametrize("what", POINTS)
def test_measurement_of_a_row(tmp_path, what):
    points = [Point(at=at, values=[1.0, 2.0]) for at in POINTS[what]]
    document = json.loads(make(preset=what, points=points).model_dump_json(by_alias=True))
    folder = tmp_path / "out"
    made = make(preset=what)

    def text():
        return tables.text(KNOWN, [record for _, record in records.read_all(folder)], folder)

    records.write(records.Record.model_validate(document), folder)
    assert "2026-11-21" in text()

    @tries(40)
    @given(mutated({"points": document["points"]}))
    def each(change):
        points, names = change
        records.path(made, folder).write_text(json.dumps(document | {"points": []} | points))
        refused(text, what, names | {"points"})

    each()


def test_measurement_of_a_machine(tmp_path):
    points = [Point(at={"size": 8}, values=[1e12], unit="FLOP/s")]
    session = MachineSession(what="floor", machine=HERE, measured=NOW, points=points)
    document = json.loads(session.model_dump_json(by_alias=True))
    file = tmp_path / HERE.name / rows.FOLDER / "floor.20261121-000000.json"
    file.parent.mkdir(parents=True)
    swept = make(preset="sweep", points=[Point(at=at, values=[1.0]) for at in POINTS["sweep"]])

    @tries(40)
    @given(mutated(document))
    def each(change):
        file.write_text(json.dumps(change[0]))
        refused(lambda: tables.by_name(KNOWN, [swept], tmp_path)["limits"](), "", change[1] | {"points"})

    each()


ORDER = Order(rows=[f"{TASK}/pytorch"], preset="smoke", overrides={"EPOCHS": 2, "SEED": 1}, timeout_s=60, threads=1)
STATUS = Status(
    id="20261121-000000",
    host="elsewhere",
    pid=7,
    started=NOW,
    slots=2,
    lines=[
        Line(row="pytorch", estimate_s=9, started=NOW, where="GPU 0", part="epoch 1/2", note="loss 1"),
        Line(row="flax", estimate_s=9, state="failed", started=NOW, ended=NOW, result="x", error="RuntimeError"),
    ],
)


@tries(150)
@given(mutated(json.loads(ORDER.model_dump_json(by_alias=True))))
def test_order_of_a_batch(tmp_path_factory, change):
    folder, (document, names) = tmp_path_factory.getbasetemp(), change
    (folder / "order.json").write_text(json.dumps(document))
    orders = []
    if refused(lambda: orders.append(journal.read_order(folder)), "order.json", names):
        return
    (order,) = orders

    def planned():
        rows, seeds = KNOWN.select(order.rows), min(order.seeds, 3)
        plans = plan.make(KNOWN, rows[:3], order.preset or "smoke", order.overrides, gpu=False, seeds=seeds)
        return [one.kind.size(one.constants) for one, _ in plan.soonest_first(plans, [], lambda _: 0.0, [*KNOWN.tasks])]

    refused(planned, "")


@tries(150)
@given(mutated(json.loads(STATUS.model_dump_json(by_alias=True))))
def test_status_of_a_batch(tmp_path_factory, change):
    out, (document, names) = tmp_path_factory.getbasetemp() / "watched", change
    folder = out / journal.FOLDER / STATUS.id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "order.json").touch()
    document["ended"] = document.get("ended") or str(NOW)  # so that no terminal is waited at
    (folder / "status.json").write_text(json.dumps(document))
    with redirect_stdout(io.StringIO()):
        refused(lambda: watching.watch("last", out), "status.json", names | {"ended"})


SOURCE = KNOWN.task(TASK).published[0]
FIGURES = tomllib.loads((results.RESULTS / "published" / f"{SOURCE}.toml").read_text())


@tries(100)
@given(mutated(FIGURES))
def test_published_figures(tmp_path_factory, change):
    folder, (document, names) = tmp_path_factory.getbasetemp(), change
    (folder / f"{SOURCE}.toml").write_text(toml_file(document))
    sources = []
    if not refused(lambda: sources.append(results.published(SOURCE, folder)), f"{SOURCE}.toml", names):
        unit = KNOWN.task(TASK).kind.clocked.unit
        assert all(unit.one(value) for column in sources[0].columns.values() for value in column.values())


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> StandIn:
    return StandIn(tmp_path_factory.mktemp("files") / "checkout")


@pytest.fixture
def checkout(made, monkeypatch) -> StandIn:
    """A stand-in whose catalog and tasks are read in-process."""
    for module in (catalog, tasks):
        monkeypatch.setattr(module, "NOTEBOOKS", made.root / "notebooks")
    monkeypatch.setattr(catalog, "ENVIRONMENTS", made.root / "environments")
    return made


def load_and_plan(checkout: StandIn) -> None:
    known = catalog.load(checkout.root / "catalog.toml")
    plans = plan.make(known, known.rows(), "smoke", {}, gpu=False)
    assert all(one.kind.size(one.constants) for one, _ in plan.soonest_first(plans, [], lambda _: 0.0, [*known.tasks]))
    pages.make(known, checkout.root / "results")


@contextmanager
def holding(file: Path, text: str):
    """A context in which a file has another text."""
    old = file.read_text()
    file.write_text(text)
    try:
        yield
    finally:
        file.write_text(old)


def test_catalog(checkout):
    file = checkout.root / "catalog.toml"

    @tries(120)
    @given(mutated(tomllib.loads(file.read_text())))
    def each(change):
        with holding(file, toml_file(change[0])):
            refused(lambda: load_and_plan(checkout), "", change[1] | {"framework", "row"})

    each()


def test_task_file(checkout):
    file = checkout.path("task").with_suffix(".toml")
    document = tomllib.loads(file.read_text())
    document |= {"sweep": {"BATCHSIZE": [1, 2]}, "without_chance": {"LR": 0.5}, "tolerances": {"loss": 0.1}}
    document |= {"check": {"parameters": {"EPOCHS": 1}, "least": {"accuracy": 0.1}}}

    @tries(200)
    @given(mutated(document))
    def each(change):
        with holding(file, toml_file(change[0])):
            refused(lambda: load_and_plan(checkout), ".toml", change[1])

    each()


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("[frameworks.good]", "[frameworks.good]\nreleesed = 1", "releesed: Extra inputs are not permitted; did you mean"),
        ("schema = 2", "schema = 99", "catalog.toml was written by a newer version: its schema is 99, and this one reads"),
        ("SECONDS = 30", "SECOND = 30", "variants.slow.parameters of catalog.toml, for .*: SECOND; did you mean SECONDS?"),
        ("SECONDS = 30", "SECONDS = true", "SECONDS is 0.05 by itself; it cannot be True"),
        ("SECONDS = 30", "EPOCHS = 0", "EPOCHS is 2 by itself; it cannot be 0"),
    ],
)  # fmt: skip
def test_catalog_with_a_typo(checkout, old, new, message):
    file = checkout.root / "catalog.toml"
    assert old in file.read_text()
    with holding(file, file.read_text().replace(old, new)), pytest.raises(RosettaError) as error:
        catalog.load(file)
    line = one_line(str(error.value))
    assert all(part in line for part in message.split(".*"))
    told(message, line, "everything; nothing was started")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("smoke = { EPOCHS", "smoke = { EPOSCH", f"presets.smoke of notebooks/{TASK}/task.toml: EPOSCH; did you mean EPOCHS?"),
        ("EPOCHS = 1", "EPOCHS = 0", f"presets.smoke of notebooks/{TASK}/task.toml: EPOCHS is 10 by itself; it cannot be 0"),
        ("N_TEST = 100 }\n[", "N_TEST = 10001 }\n[", "presets.smoke of .*: N_TEST is 10001, but there are only 10000"),
        ("N_TEST = 100 }\n[", "MOMENTUM = 0.5 }\n[", "presets.smoke sets MOMENTUM, which the parameters cell of .* does not bind"),
        ("item_ms = 0.1", "item_ms = -1", "cost.item_ms: Input should be greater than or equal to 0"),
        ("start_s = 1,", "start_s = inf,", "cost.start_s: Input should be a finite number"),
        ('data = "cifar10"', 'data = "cifar01"', "data: there is no common/data/cifar01.py"),
        ('data = "cifar10"', 'data = "../cifar10"', "data: String should match pattern"),
    ],
)  # fmt: skip
def test_task_with_a_typo(checkout, old, new, message):
    file = checkout.path("task").with_suffix(".toml")
    assert old in file.read_text()
    with holding(file, file.read_text().replace(old, new)), pytest.raises(RosettaError) as error:
        catalog.load(checkout.root / "catalog.toml")
    line = one_line(str(error.value))
    assert all(part in line for part in message.split(".*"))
    told(message, line, "everything; nothing was started")


@pytest.mark.parametrize("parameter", ["COMPIL = true", "PRECISION = 32"])
def test_variant_of_the_real_catalog_with_a_typo(tmp_path, parameter):
    """The row would run, and be what its title does not say."""
    text = CATALOG.read_text().replace('COMPILE = "default"', parameter)
    (tmp_path / "catalog.toml").write_text(text)
    with pytest.raises(RosettaError, match=f"variants.compiled.*catalog.toml.*{parameter.split()[0]}"):
        catalog.load(tmp_path / "catalog.toml")
