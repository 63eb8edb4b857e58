"""A batch of runs whose figures are known beforehand: what it says, keeps and returns, and what resume makes of it."""

import pytest

from rosetta import batch, data, files, journal, records
from rosetta.errors import RosettaError, Unavailable
from rosetta.journal import Order
from rosetta.report import pages
from rosetta.run import kernels, machine
from rosetta.terminal import Console
from tests.test_known_run import GIVEN, Interpreter, play

ORDER = Order(rows=["cifar10_cnn/pytorch"], named=True, preset="quick", overrides=GIVEN, seeds=2, gpus="1", threads=4)
ROW, TITLE = "cifar10_cnn/pytorch", "pytorch"  # the row, and its title in a batch of one task
COLUMN = "quick,batchsize=50,epochs=3,n_train=5000,target_accuracy=0.5,threads=4"
RUNS = [
    f"[{number}/2] {row}: {step}  (0 s)"
    for number, row in ((1, TITLE), (2, f"{TITLE} seed 1"))
    for step in ("starting", "ok  learns")
]
RESULTS = "results: {}/results.md, from the first run's end on"
ANNOUNCED = [
    "2 runs, about 1:25 min",
    "the processor, 8 cores, GPU 1: NVIDIA H200; results as nvidia-h200",
    f"  {ROW}, 2 seeds quick  3 epochs of 5,000, batch 50, tested on 10,000, about 42 s each",
]


@pytest.fixture
def known(monkeypatch):
    """Every run goes as in ``test_known_run``, and the clock of the screen stands still."""
    play(monkeypatch)
    interpreter = Interpreter()
    monkeypatch.setattr(kernels, "chosen", lambda python, build: interpreter)
    monkeypatch.setattr(machine, "cpu", lambda: "the processor")
    monkeypatch.setattr(data, "locate", lambda dataset, folder=None, fetch=True: None)
    monkeypatch.setattr(journal.Line, "elapsed_s", 0.0)
    return interpreter


@pytest.fixture
def said(capsys):
    """The runner's lines since the last time, without those of the notebooks."""
    return lambda: [line for line in capsys.readouterr().out.splitlines() if not line.startswith(("epoch ", "  test "))]


def raising(error: Exception):
    def function(*_, **__):
        raise error

    return function


def test_batch_and_what_resume_makes_of_it(known, said, tmp_path, monkeypatch):
    assert batch.run(ORDER, tmp_path) == 0
    first, *lines = said()
    assert first == RESULTS.format(tmp_path)
    assert lines[3:] == [*RUNS, f"2 of 2 runs ok; table: {tmp_path}/results.md"]
    (folder,) = (tmp_path / ".batches").iterdir()
    assert files.load(Order, folder / "order.json") == ORDER
    assert {file.name for file in folder.iterdir()} == {"lock", "order.json", "status.json"}
    status = files.load(journal.Status, folder / "status.json")
    assert (status.id, status.slots, status.done, status.remaining_s) == (folder.name, 1, 2, 0.0) and status.ended
    assert {(line.where, line.note, line.took_s, line.error) for line in status.lines} == {("GPU 1", "", 0.0, None)}
    Console(width=200).print(journal.table(status, 40))
    assert [line.rstrip() for line in said()] == [
        "row             state         at  result  elapsed  of",
        f"{TITLE}         ok     epoch 3/3  learns      0 s",
        f"{TITLE} seed 1  ok     epoch 3/3  learns      0 s",
        f"batch {folder.name}: 2 of 2 done",
    ]
    kept = dict(records.read_all(tmp_path))
    place = tmp_path / "nvidia-h200" / "cifar10_cnn" / COLUMN
    assert [*kept] == [place / "pytorch.json", place / "pytorch.seed-1.json"]
    assert [(one.seed, one.params["SEED"]) for one in kept.values()] == [(None, 0), (1, 1)]
    assert {(one.batch, one.beside, one.attempts) for one in kept.values()} == {(folder.name, 0, 1)}
    assert [one.notebook.executed for one in kept.values()] == ["pytorch.ipynb", "pytorch.seed-1.ipynb"]
    assert len({one.key for one in kept.values()}) == 2 and (tmp_path / "cifar10_cnn.md").exists()

    assert batch.resume("last", tmp_path, fresh=False) == 0
    assert said() == [f"batch {folder.name}: all 2 runs are finished; --fresh runs them again"]
    (place / "pytorch.json").unlink()
    assert batch.resume(folder.name, tmp_path, fresh=False) == 0
    row = ANNOUNCED[2].replace(", 2 seeds", " ").replace(" each", "")
    one = [first, "1 run, about 42 s", ANNOUNCED[1], row, *RUNS[: len(RUNS) // 2]]
    sums = [f"{runs} of {runs} runs ok; table: {tmp_path}/results.md" for runs in (1, 2)]
    assert said() == [f"batch {folder.name}: 1 of 2 runs are finished", *one, sums[0]]
    known.pins = "others"
    nothing = "nothing changed beyond noise since the earlier records of this machine (1 rows compared)"
    both = [f"batch {folder.name}: 0 of 2 runs are finished", first, *ANNOUNCED, *RUNS, sums[1], nothing]
    for anew in (False, True):
        assert batch.resume("last", tmp_path, fresh=anew) == 0
        assert said() == both
    monkeypatch.setenv("ROSETTA_MACHINE", "another box")
    assert batch.resume("last", tmp_path, fresh=False) == 0
    assert said()[0] == f"batch {folder.name}: 0 of 2 runs are finished"
    assert [file.parts[-4] for file, _ in records.read_all(tmp_path)] == ["another-box"] * 2 + ["nvidia-h200"] * 2


def test_whatever_went_wrong_is_in_the_exit_code(known, said, tmp_path, monkeypatch):
    one = ORDER.model_copy(update={"seeds": 1})
    with monkeypatch.context() as broken:
        broken.setattr(pages, "write", raising(RosettaError("no room")))
        assert batch.run(one, tmp_path) == 1
        assert said()[-2:] == ["the table could not be renewed: no room", "1 of 1 runs ok"]
    with monkeypatch.context() as broken:
        write = files.write_atomically
        full = raising(OSError("no room"))
        broken.setattr(
            files, "write_atomically", lambda to, text: (full if to.name == "pytorch.ipynb" else write)(to, text)
        )
        assert batch.run(one, tmp_path / "new") == 1
        end = f"1 of 1 runs ok; table: {tmp_path}/new/results.md"
        assert said()[-2:] == [f"{ROW}: only its record could be kept: no room", end]
        ((_, record),) = records.read_all(tmp_path / "new")
        assert (record.status, record.notebook.executed, record.notebook.log) == ("ok", None, None)
        broken.setattr(records, "write", raising(OSError("none at all")))
        assert batch.run(one, tmp_path / "new") == 1
        assert f"{ROW}: ok, but not kept: none at all" in said()
    monkeypatch.setattr(known, "get", raising(Unavailable("no wheel")))
    for named in (True, False):
        assert batch.run(one.model_copy(update={"named": named}), tmp_path / "skipped") == named
        assert said()[-2:] == [f"{ROW}: skipped: no wheel", f"0 of 1 runs ok; table: {tmp_path}/skipped/results.md"]
    monkeypatch.setattr(known, "get", raising(RosettaError("no disk")))
    assert batch.run(one.model_copy(update={"named": False}), tmp_path / "failed") == 1
    assert said()[-2:] == [f"{ROW}: failed: no disk", f"0 of 1 runs ok; table: {tmp_path}/failed/results.md"]


def test_a_batch_whose_data_cannot_be_had_computes_on_generated_data(known, said, tmp_path, monkeypatch):
    """It says so once, and resume takes the real data when they are there."""
    one = ORDER.model_copy(update={"seeds": 1})
    with monkeypatch.context() as offline:
        offline.setattr(data, "locate", raising(data.Unreachable("cannot download it")))
        with pytest.raises(RosettaError, match="^cannot download it$"):
            batch.run(one.model_copy(update={"data": "real"}), tmp_path)
        assert not (tmp_path / ".batches").exists() and said()
        assert batch.run(one, tmp_path) == 0
        assert [line for line in said() if "download it" in line or "SYNTHETIC" in line] == [
            "data: cannot download it",
            "cannot download it",
            "So 1 run computes on generated data, marked SYNTHETIC wherever a figure appears. run_all.py resume takes the real "
            "data once they are there; --data real stops here instead.",
        ]
        ((_, record),) = records.read_all(tmp_path)
        assert record.params["SYNTHETIC"]
        assert batch.resume("last", tmp_path, fresh=False) == 0
        assert "all 1 runs are finished" in said()[-1]
    assert batch.resume("last", tmp_path, fresh=False) == 0
    assert "0 of 1 runs are finished" in said()[0]
    found = [record for _, record in records.read_all(tmp_path)]
    assert sorted(record.dataset.synthetic for record in found) == [False, True], "each in a folder of its own"


def test_a_gpu_makes_full_the_default(known, said, tmp_path):
    for gpus, preset in (("1", "full"), ("none", "quick")):
        order = ORDER.model_copy(update={"preset": None, "gpus": gpus})
        assert batch.show_plan(order, tmp_path, rows=True) == 0 and f"  {ROW}, 2 seeds {preset} " in said()[-1]


@pytest.mark.parametrize(
    "changed, message",
    [
        (
            {"cluster": "tcp://x", "jobs": 2},
            "--gpus, --threads and --jobs share out this machine; with --cluster each ",
        ),
        (
            {"jobs": 2},
            "--jobs 2 would let timed runs share a device .1 here., and their times would mean nothing: leave ",
        ),
        ({"jobs": 2, "preset": "smoke"}, "--jobs shares the processors out by itself: leave out --threads"),
    ],
)
def test_what_would_spoil_the_times_is_refused(known, tmp_path, changed, message):
    with pytest.raises(RosettaError, match=f"^{message}"):
        batch.run(ORDER.model_copy(update=changed), tmp_path)
