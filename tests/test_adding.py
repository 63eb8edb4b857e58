"""What adds a framework, piece by piece; ``test_toys.py`` adds one to a checkout."""

import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from rosetta import adding, catalog, tasks
from rosetta.errors import RosettaError
from rosetta.kinds import TrainMetrics
from rosetta.paths import checkout
from rosetta.run import environments, processes
from rosetta.run.environments import events
from rosetta.tasks import Cost
from tests.standin import ROOT, one_line

KNOWN = catalog.load()
TASK = KNOWN.task("cifar10_cnn")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("Torch", TASK.key), "Torch cannot be a framework's name: use small letters, digits and _"),
        (("class", TASK.key), "class cannot be a framework's name"),
        (("../x", TASK.key), "../x cannot be a framework's name"),
        (("pytorch", TASK.key), f"the name pytorch is taken: there is notebooks/{TASK.key}/pytorch.ipynb"),
        (("one", "nonesuch"), "unknown task nonesuch; there are: "),
        (("one", None, "pytorch"), f"there are the tasks {', '.join(KNOWN.tasks)}: say with --task"),
        (("one", None, "pytroch"), "unknown framework pytroch; did you mean pytorch?"),
        (("one", None, "pytorch[fast]"), "unknown variant pytorch[fast]; "),
        (("one", TASK.key, None, "../elsewhere"), "--environment ../elsewhere is no name of a folder below"),
        (("good", None, None, None, "train"), "--kind is of a new task: name it with --task"),
        (("good", "tiny", None, None, "trian"), "unknown kind trian; did you mean train?"),
        (("good", "Tiny", None, None, "train"), "Tiny cannot be a task's name"),
        (("good", "networks", None, None, "speed"), "the name networks is taken: there is common/params/networks.py"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(arguments, said):
    def there():
        places = "environments/*/environment.toml", "notebooks/*/*.ipynb", "common/params/*.py", "catalog.toml"
        return {file: file.stat().st_mtime_ns for place in places for file in checkout.root.glob(place)}

    before = there()
    with pytest.raises(RosettaError) as error:
        adding.new(*arguments, *[None] * (5 - len(arguments)))
    assert one_line(str(error.value)).startswith(said) and there() == before


def test_environment_that_is_there_is_shared(inside):
    folder = inside.root / "environments" / "test"
    before = {file.name: file.read_text() for file in folder.iterdir()}
    done = inside.call("new", "one", "--like", "good", "--environment", "test", own_python=False)
    assert done.returncode == 0 and "environments/test/: shared with the rows that it has" in done.stdout, done.stderr
    before["requirements.in"] = f"{before['requirements.in'].rstrip()}\none  # for one\n".lstrip()
    assert {file.name: file.read_text() for file in folder.iterdir()} == before
    assert inside.path("one").read_text() == inside.path("good").read_text().replace('"# good"', '"# one"', 1)
    assert [
        line for line in done.stdout.splitlines() if line.startswith("  5. python3 run_all.py check cifar10_cnn/one: ")
    ]
    assert "the same versions" not in done.stdout
    again = inside.call("new", "one", own_python=False)
    assert again.returncode == 2 and "the name one is taken" in one_line(again.stderr)


@pytest.mark.parametrize("kind", ["train", "infer", "speed", "entries"])
def test_new_task_passes_all_steps_before_it_is_rewritten(inside, kind):
    shutil.copytree(ROOT / adding.EXAMPLES, inside.root / adding.EXAMPLES)
    task = f"tiny_{kind}"  # its modules stay in this process
    arguments = ("new", "good", "--task", task, "--kind", kind)
    done = inside.call(*arguments, own_python=False)
    assert done.returncode == 0 and f"notebooks/{task}/good.ipynb: the example of its kind" in done.stdout, done.stderr
    assert f"1. common/params/{task}.py: " in done.stdout and "Level 3 of the proof asks for 1,510" in done.stdout
    entry, recipe = inside.root / "catalog.toml", inside.root / "environments" / "test" / "environment.toml"
    entry.write_text(entry.read_text().replace("example.org", "example.com"))
    recipe.write_text(recipe.read_text() + '[without_gpu]\nnumpy = "it has none"\n')
    checked = inside.call("check", f"{task}/good", "--synthetic")
    assert checked.returncode == 0 and "FAILED" not in checked.stdout, checked.stdout + checked.stderr
    again = inside.call(*arguments, own_python=False)
    assert again.returncode == 2 and f"the name {task} is taken: there is common/params/{task}.py" in one_line(
        again.stderr
    )


def test_environment_of_its_own_is_told_what_to_take_from_that_of_its_model(inside):
    done = inside.call("new", "apart", "--like", "good", own_python=False)
    (step,) = re.findall(r"  1\. environments/apart/requirements.in: .*", done.stdout)
    assert "packages that environments/test has, ask for the same versions" in step


def files_of(standin):
    """The texts of the environment ``tiny``: what it asks for, its lock, its recipe."""
    names = "requirements.in", "requirements.txt", "environment.toml"
    return [(standin.root / "environments" / "tiny" / name).read_text() for name in names]


def test_packages_are_locked_installed_and_imported(standin):
    """From the package index."""
    standin.environment("tiny", "3.11", "# why\nsix   # small\n", "# Not locked yet\n")
    standin.catalog(standin.entry("good", "tiny").replace('["numpy"]', '["six", "six.moves"]'))
    done = standin.call("env", "tiny", "--lock", own_python=False)
    assert done.returncode == 0, done.stderr
    asked, locked, recipe = files_of(standin)
    assert re.fullmatch(r"# why\nsix==[\d.]+   # small\n", asked)
    assert re.match(r"six==[\d.]+ \\\n    --hash=sha256:", locked) and "://" not in locked
    assert recipe.startswith('python = "3.11"\n') and "\ndisk_gb = 0.0" in recipe and "\ndownload_gb = " in recipe
    standin.environment("tiny", "3.11", "six\nno-such-package-of-ours\n", locked)
    done = standin.call("env", "tiny", "--lock", own_python=False)
    assert done.returncode == 1 and "tiny cannot be locked: " in one_line(done.stderr)
    assert files_of(standin)[1] == locked


PYLOCK = """\
lock-version = "1.0"
created-by = "uv"
[[packages]]
name = "six"
version = "1.17.0"
wheels = [{ name = "six-1.17.0-py2.py3-none-any.whl", path = "x", size = 1234567890, hashes = { sha256 = "0" } }]
"""


@pytest.fixture
def uv(inside, monkeypatch):
    """Plays uv, and the installation that it makes; holds the options and the input of its calls."""
    calls = []

    def compiled(command, cwd, env, input, **_):
        calls.append((command[command.index("compile") + 2 : -2], input))
        assert (cwd / "requirements.in").is_file() and "UV_FIND_LINKS" not in env
        lock = Path(command[-1])
        if lock.name == "requirements.txt":
            assert lock.read_text().startswith("# Not"), "what was locked stays while it fits"
            lock.write_text("# Not new\nsix==1.17.0 \\\n    --hash=sha256:0\n")
        else:
            lock.write_text(PYLOCK)
        return subprocess.CompletedProcess(command, 0, "", "")

    def provision(environment, log, tell, again):
        file = environment.venv / "lib" / "six.py"
        file.parent.mkdir(parents=True)
        file.write_bytes(bytes(5_000_000))

    monkeypatch.setenv("UV_FIND_LINKS", "a folder")
    monkeypatch.setattr(environments, "find_python", lambda version: None)
    monkeypatch.setattr(subprocess, "run", compiled)
    monkeypatch.setattr(environments.Environment, "provision", provision)
    inside.environment("tiny", "3.11", "# why\nsix   # small\n", "# Not locked yet\n")
    inside.catalog(inside.entry("good", "tiny").replace('["numpy"]', '["six", "six.moves"]'))
    return calls


def test_what_is_asked_of_uv_and_written(inside, uv, monkeypatch):
    listed = inside.call("list", own_python=False)
    assert "packages that are not locked: run_all.py env tiny --lock" in " ".join(listed.stdout.split())
    asked = []
    answer = subprocess.CompletedProcess([], 0, "", "")
    monkeypatch.setattr(processes, "ask", lambda *each: asked.append(each) or answer)
    done = inside.call("env", "tiny", "--lock", own_python=False)
    assert done.stdout.splitlines() == [
        "locking tiny",
        "importing six, six.moves",
        "tiny: ready; imports six, six.moves; disk_gb = 0.005, download_gb = 1.2 "
        "(written into environments/tiny/environment.toml)",
        "no proof has become due by it",
    ], done.stderr
    usual = ["--universal", "--python-version", "3.11", "requirements.in"]
    whole = (usual + ["--generate-hashes", "--no-header"], "")
    ((*sizes, where), _) = uv.pop()
    assert uv == [whole, whole], "again with the versions that the first has chosen"
    assert sizes == [*usual, "--format", "pylock.toml", "-c"] and where.endswith("/requirements.txt")
    asked_for, locked, recipe = files_of(inside)
    assert asked_for == "# why\nsix==1.17.0   # small\n" and locked.startswith("# Not new\nsix==1.17.0 \\\n")
    assert recipe == 'python = "3.11"\ndisk_gb = 0.005\ndownload_gb = 1.2\n'
    ((python, code, _, variables),) = asked
    assert python == inside.root / "environments" / "tiny" / ".venv" / "bin" / "python"
    assert code == "import six, six.moves" and variables["PYTHONNOUSERSITE"] == "1"


@pytest.mark.parametrize(
    "errors, said", [("Traceback\nImportError: no six\n", "ImportError: no six"), ("", "exit code 3")]
)
def test_import_that_fails_is_one_line(inside, uv, monkeypatch, errors, said):
    monkeypatch.setattr(processes, "ask", lambda *_: subprocess.CompletedProcess([], 3, "", errors))
    done = inside.call("env", "tiny", "--lock", own_python=False)
    assert done.returncode == 1 and one_line(done.stderr) == (
        f"run_all.py: tiny is made, but import six, six.moves fails: {said}; "
        "mend requirements.in, or imports in catalog.toml"
    )


@pytest.mark.parametrize(
    "build, platform, given", [(None, "--universal", "gxx"), ("cuda12", "x86_64-manylinux_2_34", "")]
)
def test_a_build_for_gpus_is_locked_for_linux_without_programs_for_the_cpu(inside, uv, build, platform, given):
    folder = inside.root / "environments" / "tiny"
    environment = SimpleNamespace(
        title="tiny",
        build=build,
        gpu_build=SimpleNamespace(glibc="2.34"),
        folder=folder,
        requirements=(folder / "requirements.in", folder / "requirements.txt"),
        python_version="3.11",
        recipe=SimpleNamespace(lock_flags=[], brought={"g++": "gxx"}),
    )
    assert adding.lock(environment, print) == 1.2
    assert [(platform in options, "-" in options, said) for options, said in uv] == [(True, bool(given), given)] * 3


def test_a_variant_is_imported_with_its_variables():
    assert (("keras", "jax"), {"KERAS_BACKEND": "jax"}) in adding._imports("jax")
    assert (("flax", "optax", "jax"), {}) in adding._imports("jax")


@pytest.mark.parametrize(
    "line, pinned",
    [
        ("one\n", "one==1.2\n"),
        ("one  # a comment\n", "one==1.2  # a comment\n"),
        ("one[extra]>=1; sys_platform == 'linux'\n", 'one[extra]==1.2; sys_platform == "linux"\n'),
        ("one==1.0\n", "one==1.0\n"),
        ("other\n", "other\n"),
        ("# one\n", "# one\n"),
        ("-r more.in\n", "-r more.in\n"),
    ],
)
def test_versions_are_written_where_none_is_asked_for(line, pinned):
    locked = """one==1.1 ; python_version < "3.9"\none==1.2 \\\n    --hash=sha256:0\n"""
    assert adding.pinned(line, locked, {"python_version": "3.11"}) == pinned


@pytest.mark.parametrize("name", ["pytorch", "flax[scan]", "new[variant]"])
def test_cost_is_written_into_its_line_and_the_rest_stays(name, tmp_path, monkeypatch):
    copy, row = tmp_path / "notebooks" / TASK.key, SimpleNamespace(name=name, facts=TASK.facts(name))
    file = Path(shutil.copytree(TASK.folder, copy, ignore=shutil.ignore_patterns("*.ipynb"))) / "task.toml"
    monkeypatch.setattr(checkout, "root", tmp_path)
    before = file.read_text().splitlines()
    assert adding.write_cost(TASK, row, Cost(start_s=123, item_ms=45.5))
    after = file.read_text().splitlines()
    assert [line for line in after if line not in before][0].count("cost = { start_s = 123, item_ms = 45.5 }") == 1
    assert len([line for line in before if line not in after]) == (0 if name.startswith("new") else 1)
    assert len(after) == len(before) + name.startswith("new") and file.read_text().endswith("\n"), "no blank line goes"
    facts = tasks.load(copy).facts(name)
    assert facts.cost.start_s == 123 and facts.model_dump(exclude={"cost"}) == row.facts.model_dump(exclude={"cost"})
    row.facts = facts
    assert not adding.write_cost(TASK, row, Cost(start_s=100, item_ms=60)), "near enough"


def test_an_installation_is_told_once_where_lines_stay():
    said = []
    tell = events(said.append)
    for text in ("installing a: Python 3.11", "installing a: downloading x, 1 of 3", "installing b: x", "locking c"):
        tell(text)
    assert said == ["installing a", "installing b", "locking c"]


def test_cost_joins_what_is_said_of_a_row(tmp_path):
    (tmp_path / "task.toml").write_text('[rows]\none = { slow_on_cpu = "why" }\n')
    row = SimpleNamespace(name="one", facts=tasks.RowFacts())
    assert adding.write_cost(SimpleNamespace(folder=tmp_path), row, Cost(start_s=12, item_ms=3.5))
    (line,) = (tmp_path / "task.toml").read_text().splitlines()[1:]
    assert line == 'one = { slow_on_cpu = "why", cost = { start_s = 12, item_ms = 3.5 }}'


def test_cost_of_a_run():
    plan = SimpleNamespace(kind=TASK.kind, constants={"EPOCHS": 2, "N_TRAIN": 640, "N_TEST": 300})
    metrics = TrainMetrics(examples_per_s=100, wall_s=20)
    assert adding.measured_cost(plan, SimpleNamespace(metrics=metrics)) == Cost(start_s=6.2, item_ms=10)


@pytest.mark.parametrize(
    "loss, doubted", [([2.0, 1.5], False), ([2.0], False), ([2.0, 2.0], True), ([1.0, 0.5, 0.6], True)]
)
def test_a_loss_that_does_not_fall_is_doubted(loss, doubted):
    said = adding.doubt(SimpleNamespace(metrics=TrainMetrics(loss=loss)))
    assert bool(said) == doubted and (not said or said.endswith(", ".join(f"{value:.4f}" for value in loss)))
    assert adding.doubt(SimpleNamespace(metrics=SimpleNamespace())) is None, "of a kind that does not train"


def test_a_doubt_that_no_level_explains_is_the_mistake(monkeypatch):
    proof = SimpleNamespace(skipped=None, findings=[SimpleNamespace(level=1)], failures=lambda levels: [])
    monkeypatch.setattr(adding, "Setting", lambda *_: SimpleNamespace(verify=lambda row, tell: (row, proof)))
    record = SimpleNamespace(metrics=TrainMetrics(loss=[2.0, 1.5]))
    row = SimpleNamespace(row=SimpleNamespace(full_name="t/a"), where=None, task=TASK, ran=(None, record))
    assert adding._Row.verify(row) == "levels 1 pass"
    record.metrics.loss.append(2.5)
    with pytest.raises(
        RosettaError, match="^levels 1 pass, but in the run before the loss of its epochs does not fall"
    ):
        adding._Row.verify(row)


GOOD = {"accuracy": 0.5, "loss": [2.0, 1.5], "epoch_s": [1, 1], "epoch_accuracy": [0.25, 0.5]}


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({}, None),
        ({"parameters": 7}, "it reports 7 parameters, and those of this network are "),
        ({"data_s": 0}, "there is no data_s: "),
        ({"accuracy": 0.505, "epoch_accuracy": [0.25, 0.505]}, "its accuracy is 50.500 of 100 test examples"),
        ({"epoch_accuracy": []}, "0 of 2 epochs were tested: log.epoch takes evaluate as well"),
        ({"epoch_accuracy": [0.25, 0.4]}, "the test after the last epoch found 0.4000, the one at the end 0.5000: "),
    ],
)
def test_figures_that_cannot_be_true_are_told(wrong, said):
    usual = GOOD | TASK.expected("pytorch") | dict.fromkeys(TASK.kind.timed.values(), 1)
    record = SimpleNamespace(
        name="pytorch",
        metrics=TrainMetrics(**usual | wrong),
        params={"EPOCHS": 2, "N_TRAIN": 640, "N_TEST": 100},
        dataset=SimpleNamespace(sizes={"train": 640, "test": 100}),
    )
    told = list(adding.misreported(record, TASK))
    assert len(told) == bool(said) and (not said or one_line(told[0]).startswith(said))
    record.dataset.sizes = {"train": 50000, "test": 100}
    assert "N_TRAIN and N_TEST go to the loader" in " ".join(adding.misreported(record, TASK))
