"""Which build of an environment a card gets, and what a user is told."""

import platform
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from rosetta import catalog, plan
from rosetta.errors import RosettaError, Unavailable
from rosetta.records import Gpu
from rosetta.run import devices, environments
from rosetta.run.environments import Build, Recipe
from rosetta.run.execute import on_the_cpu
from rosetta.run.kernels import Kernels, chosen
from tests import fake_nvml
from tests.fake_nvml import FakeNvml
from tests.standin import one_line

CATALOG = catalog.load()
ROWS = {row.name: row for row in CATALOG.rows()}
NEW, OLD = "580.95.05", "535.183.01"


def gpu(capability: str | None = "9.0", driver: str = NEW, name: str = "card") -> Gpu:
    return Gpu(name=name, memory=1, driver=driver, cuda="13.0", capability=capability)


def build(*codes: str, **more) -> Build:
    return Build(**{"cuda": "13.0", "driver": "580.65", "code": {"one": list(codes)}} | more)


def choose(builds, without_gpu, imports, gpus) -> str:
    recipe = Recipe(python="3.11", builds=builds, without_gpu=without_gpu)
    return environments.Environment("tiny", Path(), recipe).for_gpus(imports, gpus).build


@pytest.mark.parametrize(
    "code, capability, runs",
    [
        ("7.0", "7.0", True),
        ("7.0", "7.5", True),
        ("7.5", "7.0", False),
        ("7.0", "8.0", False),
        ("7.0+PTX", "8.0", True),
        ("7.0+PTX", "6.1", False),
        ("9.0", "12.0", False),
        ("9.0+PTX", "12.0", True),
        ("9.0", None, True),
    ],
)
def test_which_cards_code_runs_on(code, capability, runs):
    assert (build(code).obstacle(["one"], gpu(capability)) is None) == runs


def test_the_newest_that_fits_all_gpus():
    builds = {"new": build("7.5", "8.0+PTX"), "old": build("5.0", "7.0", "8.0+PTX", driver="525.60")}
    assert choose(builds, {}, ("one.part",), [gpu("9.0")]) == "new"
    assert choose(builds, {}, ("one",), [gpu("7.0")]) == "old"
    assert choose(builds, {}, ("one",), [gpu("9.0", OLD)]) == "old"
    assert choose(builds, {}, ("one",), [gpu("9.0"), gpu("7.0")]) == "old", "which computes on both"
    with pytest.raises(Unavailable) as caught:
        choose(builds, {}, ("one",), [gpu("3.7", "470.1", "Tesla K80")])
    assert str(caught.value) == (
        "no build for Tesla K80 (compute capability 3.7, driver 470.1): "
        "new needs compute capability 7.5 or newer; old needs compute capability 5.0 or newer"
    )
    with pytest.raises(Unavailable, match="new needs driver 580.65 or newer; old needs driver 525.60 or newer"):
        choose(builds, {}, ("one",), [gpu("9.0", "470.1")])


def test_modules_have_code_of_their_own():
    """An environment may hold several frameworks, each built for other cards."""
    builds = {"all": Build(cuda="11.2", driver="450", code={"one": ["7.0"], "two": ["8.0"]})}
    assert choose(builds, {}, ("two",), [gpu("8.6")]) == "all"
    with pytest.raises(Unavailable, match="no build for card"):
        choose(builds, {}, ("one",), [gpu("8.6")])
    part = Build(cuda="12.6", driver="450", code={"one": ["6.0", "7.0"], "one.compiler": ["7.0"]})
    assert part.obstacle(("one", "one.other"), gpu("6.0")) is None
    assert part.obstacle(("one", "one.compiler"), gpu("6.0")) == "needs compute capability 7.0 or newer"
    with pytest.raises(Unavailable, match="^no build of three for a GPU$"):
        choose(builds, {}, ("three",), [gpu("8.6")])
    with pytest.raises(Unavailable, match="^no build of three for a GPU: nobody makes it$"):
        choose(builds, {"three": "nobody makes it"}, ("keras", "three"), [gpu("8.6")])
    assert part.obstacle(("one",), gpu("8.0")) == "has code for compute capability 6.0, 7.0 alone"


def test_a_system_too_old_for_its_libraries(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.31"))
    needy = build("9.0", glibc="2.35")
    assert needy.obstacle(["one"], gpu()) == "needs glibc 2.35 or newer, and this system has 2.31"
    assert build("9.0", glibc="2.28").obstacle(["one"], gpu()) is None


LOCK = """\
flax==0.1 \\
    --hash=sha256:{hash}
    # via -r requirements.in
helper==1.0
    # via
    #   -r requirements.in
    #   flax
numpy=={numpy}
    # via flax
"""
MORE = """\
haiku==0.2
    # via -r requirements.in
jmp==0.3
    # via haiku
"""


def test_what_a_row_cannot_import_is_no_part_of_its_proof(tmp_path):
    def prints(framework: str, asked: str = "flax\nHelper\n", more: str = "", numpy: str = "2", hash: str = "0") -> str:
        (tmp_path / "requirements.in").write_text(asked)
        (tmp_path / "requirements.txt").write_text(LOCK.format(numpy=numpy, hash=hash) + more)
        return environments.Environment("jax", tmp_path, Recipe(python="3.11")).fingerprint_for(framework)

    before = prints("flax")
    added = {"asked": "flax\nHelper  # why\nhaiku==0.2  # for haiku, jmp\n", "more": MORE}
    assert prints("flax", **added) == before == prints("flax", hash="1")
    assert prints("haiku", **added) not in (before, prints("haiku"))
    assert prints("jmp", **added) == prints("haiku", **added)
    assert prints("flax", **added | {"asked": "flax\nhelper\nhaiku\n"}) != before, (
        "nothing says that it is for haiku alone"
    )
    assert prints("flax", numpy="3") != before
    needed = MORE.replace("via haiku", "via flax")
    assert prints("flax", **added | {"more": needed}) != before, "what the row's own packages bring as well"


def test_a_script_is_part_of_the_proof_of_what_it_repairs(tmp_path):
    for name in ("requirements.in", "requirements.txt"):
        (tmp_path / name).write_text("")

    def prints(framework: str, script: str, repairs: list[str]) -> str:
        (tmp_path / "after.py").write_text(script)
        recipe = Recipe(python="3.11", post_install="after.py", repairs=repairs)
        return environments.Environment("classic", tmp_path, recipe).fingerprint_for(framework)

    assert prints("cntk", "1", ["cntk"]) != prints("cntk", "2", ["cntk"])
    assert prints("chainer", "1", ["cntk"]) == prints("chainer", "2", ["cntk"])
    assert prints("chainer", "1", []) != prints("chainer", "2", []), "nothing says whom it repairs"


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """An environment of the tests in place of all others, with one build; its row."""
    recipe = Recipe(python="3.11", builds={"cuda13": build("9.0", variables={"LD_LIBRARY_PATH": "{venv}/lib"})})
    made = environments.Environment("tiny", tmp_path, recipe)
    for name in ("requirements.in", "requirements.txt", "cuda13.in", "cuda13.txt"):
        (tmp_path / name).write_text(f"# {name}\n")

    def load(name, build=None):
        return replace(made, build=None if build in (None, "cpu") else build)

    monkeypatch.setattr(environments, "load", load)
    monkeypatch.setattr(environments.Environment, "provision", lambda *_: None)
    return SimpleNamespace(
        framework="one",
        environment="tiny",
        imports=("one",),
        full_name="task/one",
        variables={},
        facts=made,
        folder=tmp_path,
    )


def test_a_build_has_files_and_a_folder_of_its_own(tiny, tmp_path):
    cpu, on_card = Kernels().get(tiny, tmp_path / "log"), Kernels().get(tiny, tmp_path / "log", gpus=[gpu()])
    assert (cpu.build, on_card.build) == (None, "cuda13")
    assert cpu.python.parts[-3:-1] == (".venv", "bin") and on_card.python.parts[-3:-1] == (".venv-cuda13", "bin")
    assert (
        on_card.variables["LD_LIBRARY_PATH"] == f"{tmp_path}/.venv-cuda13/lib"
        and "LD_LIBRARY_PATH" not in cpu.variables
    )
    prints = Kernels().fingerprint(tiny), Kernels().fingerprint(tiny, [gpu()])
    (tmp_path / "cuda13.txt").write_text("other==1\n    # via -r cuda13.in\n")
    assert Kernels().fingerprint(tiny) == prints[0] and Kernels().fingerprint(tiny, [gpu()]) != prints[1]


def test_the_build_that_the_user_asks_for(tiny, tmp_path):
    asked = Kernels(builds={"tiny": "cuda13"})
    assert asked.get(tiny, tmp_path / "log").build == "cuda13", "without a GPU, too"
    assert asked.get(tiny, tmp_path / "log", gpus=[gpu("3.7")]).build == "cuda13", "the user knows better"
    with pytest.raises(Unavailable, match="--build tiny=cpu computes on no GPU. On the CPU: run_all.py run "):
        Kernels(builds={"tiny": "cpu"}).get(tiny, tmp_path / "log", gpus=[gpu()])


def test_a_card_without_a_build_is_told_with_the_way_on(tiny, tmp_path):
    with pytest.raises(Unavailable) as caught:
        Kernels().get(tiny, tmp_path / "log", gpus=[gpu("3.7")])
    message = one_line(str(caught.value))
    assert message.endswith(
        "On the CPU: run_all.py run task/one --gpus none. With another interpreter: --python tiny=PATH"
    )
    assert Kernels().state(tiny, [gpu("3.7")]).startswith("no build for card")
    two = [gpu("9.0", name="H200"), gpu("3.7", name="Tesla K80")]
    assert re.fullmatch("H200: build cuda13: can be made; Tesla K80: no build for .*", Kernels().state(tiny, two))


def test_an_interpreter_of_the_user_is_never_refused(tiny, tmp_path):
    tiny.imports = ("json",)
    given = Kernels({"tiny": Path(sys.executable)})
    assert given.get(tiny, tmp_path / "log", gpus=[gpu("3.7")]).build is None


@pytest.mark.parametrize(
    "option, message",
    [
        ("torhc=cuda13", "unknown environment torhc; did you mean torch?"),
        ("torch=cuda31", "unknown build of torch cuda31; did you mean cuda13?"),
        ("torch", "--build takes ENVIRONMENT=NAME, not torch"),
    ],
)
def test_wrong_build_is_one_line(option, message):
    with pytest.raises(RosettaError, match=re.escape(message)):
        chosen([], [option])


def test_tf32_is_off_in_every_environment_but_where_a_row_wants_it(tiny, tmp_path, monkeypatch):
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    assert Kernels().get(tiny, tmp_path / "log").variables["NVIDIA_TF32_OVERRIDE"] == "0"
    tiny.variables = {"NVIDIA_TF32_OVERRIDE": "", "MORE": "1"}
    variables = Kernels().get(tiny, tmp_path / "log").variables
    assert "NVIDIA_TF32_OVERRIDE" not in variables and variables["MORE"] == "1"


@pytest.mark.parametrize(
    "device, memory, said",
    [
        ("cuda:0", 2**30, None),
        ("TFRT_CPU_0", 2**30, "its device is TFRT_CPU_0"),
        ("@numpy", None, "its device is @numpy"),
        ("cuda:0", 0, "the GPU's memory was never used (device: cuda:0)"),
        (None, 0, "the GPU's memory was never used (device: not told)"),
        ("gpu(0)", None, None),
    ],
)
def test_what_shows_that_a_run_was_not_on_its_gpu(device, memory, said):
    assert on_the_cpu([gpu()], device, memory) == said
    assert on_the_cpu([], "cpu", None) is None, "a run that was to be on the CPU"


def test_the_estimate_on_a_gpu_is_not_that_of_a_processor():
    (on_cpu,), (on_gpu,) = (plan.make(CATALOG, [ROWS["pytorch"]], "full", {}, gpu=gpu) for gpu in (False, True))
    cost = on_gpu.row.facts.cost
    assert on_gpu.estimate_s() == cost.start_s + on_gpu.kind.items(on_gpu.constants) * cost.gpu_item_ms / 1000
    assert on_gpu.estimate_s() < on_cpu.estimate_s() / 5


# What capability and driver decide, for rows that stand for their environments: "-" where there is no build
STAND_FOR = ("pytorch", "tensorflow", "flax", "mlx", "paddle", "tinygrad", "pytorch[torch1]", "mxnet_gluon", "chainer")
EXPECTED = """
    K80       470  -      -      -      -      -      -      cuda10 -      -
    P100      470  -      -      -      -      -      -      cuda10 -      -
    P100      580  cuda12 cuda12 cuda12 -      -      cuda12 cuda10 cuda11 cuda11
    V100      535  cuda12 cuda12 cuda12 -      cuda11 cuda12 cuda10 cuda11 cuda11
    V100      580  cuda12 cuda12 cuda12 -      cuda11 cuda12 cuda10 cuda11 cuda11
    T4        535  cuda12 cuda12 cuda12 -      cuda11 cuda12 cuda10 cuda11 cuda11
    T4        580  cuda13 cuda12 cuda13 cuda13 cuda11 cuda13 cuda10 cuda11 cuda11
    A100      535  cuda12 cuda12 cuda12 -      cuda11 cuda12 -      cuda11 cuda11
    A100      580  cuda13 cuda12 cuda13 cuda13 cuda11 cuda13 -      cuda11 cuda11
    RTX       580  cuda13 cuda12 cuda13 cuda13 cuda11 cuda13 -      cuda11 cuda11
    H100      550  cuda12 cuda12 cuda12 cuda12 -      cuda12 -      -      cuda11
    H200      580  cuda13 cuda12 cuda13 cuda13 -      cuda13 -      -      cuda11
    B200      570  -      -      cuda12 cuda12 -      -      -      -      -
    B200      580  cuda13 -      cuda13 cuda13 -      cuda13 -      -      -
"""


@pytest.mark.parametrize("line", EXPECTED.strip().splitlines(), ids=lambda line: "-".join(line.split()[:2]))
def test_which_build_a_card_gets(line, monkeypatch):
    card, branch, *expected = line.split()
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    (gpus,) = fake_nvml.cards(card)
    driver = next(driver for driver in fake_nvml.drivers(card) if driver.startswith(branch))
    FakeNvml(monkeypatch, [gpus], driver)
    (slot,) = devices.timed(None, None)
    got = []
    for name in STAND_FOR:
        try:
            got.append(Kernels().environment(ROWS[name], slot.machine.gpus).build)
        except Unavailable:
            got.append("-")
    assert dict(zip(STAND_FOR, got)) == dict(zip(STAND_FOR, expected))
    for name in ("mindspore", "lasagne", "keras2[theano]", "cntk", "tensorflow1"):
        with pytest.raises(Unavailable, match="^no build of .* for a GPU: "):
            Kernels().environment(ROWS[name], slot.machine.gpus)


def test_no_row_is_silent_about_gpus():
    """Each has a build for some card, or its environment says why not."""
    for row in CATALOG.rows():
        assert environments.load(row.environment).recipe.covers_gpus(row.imports), row.name
