"""The repairs that classic environments get, each on files made up for it; that they are enough, rows on those environments show."""

import configparser
import ctypes
import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from rosetta.paths import ENVIRONMENTS


@pytest.fixture
def fixes():
    spec = importlib.util.spec_from_file_location("classic_fixes", ENVIRONMENTS / "classic_fixes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numpy_in(folder: Path, libraries: str) -> Path:
    """The folder of a made-up NumPy, whose wheel keeps its libraries there or beside it."""
    numpy = folder / "numpy"
    numpy.mkdir(parents=True)
    blas = numpy / libraries / "libopenblasp-r0-0.so"
    blas.parent.mkdir()
    blas.touch()
    return numpy


@pytest.mark.parametrize("libraries", ["../numpy.libs", ".libs"])
def test_theanorc_names_the_blas_of_numpys_wheel(fixes, libraries, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    said = fixes.name_blas(str(numpy_in(tmp_path / "site-packages", libraries)))
    read = configparser.ConfigParser()
    assert read.read(tmp_path / "theanorc") and said == f"wrote {tmp_path}/theanorc"
    folder = (tmp_path / "site-packages" / "numpy" / libraries).resolve()
    assert read["blas"]["ldflags"] == f"-L{folder} -l:libopenblasp-r0-0.so -Wl,-rpath,{folder}"
    assert read["global"]["openmp"] == "True"


def test_no_theanorc_that_a_linker_would_misread(fixes, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert "calls NumPy's" in fixes.name_blas(str(numpy_in(tmp_path / "my packages", ".libs")))
    bare = tmp_path / "conda" / "numpy"
    bare.mkdir(parents=True)
    assert "calls NumPy's" in fixes.name_blas(str(bare))
    assert not (tmp_path / "theanorc").exists()


def test_downsample_is_restored_once_and_theanos_own_kept(fixes, tmp_path):
    signal = tmp_path / "tensor" / "signal"
    signal.mkdir(parents=True)
    for _ in range(2):
        assert fixes.restore_downsample(str(tmp_path)).startswith("wrote ")
        assert (signal / "downsample.py").read_text() == fixes.DOWNSAMPLE
    (signal / "downsample.py").write_text("mine = True")
    assert "nothing to do" in fixes.restore_downsample(str(tmp_path))
    assert (signal / "downsample.py").read_text() == "mine = True"


def test_mpi_stand_ins_define_what_cntk_asks_for(fixes, tmp_path, missing):
    if sys.platform != "linux" or not (shutil.which("gcc") and shutil.which("nm")):
        missing("CNTK's stand-ins need Linux, gcc and nm")
    symbols = ["MPI_Init", "MPI_Initialized", "_ZTVN3MPI4CommE", "ompi_mpi_comm_world"]
    path = tmp_path / "libmpi.so.12"
    fixes.compile_library(fixes.stub_source(symbols), str(path))
    library = ctypes.CDLL(str(path))
    assert all(hasattr(library, name) for name in symbols)
    flag = ctypes.c_int(1)
    assert library.MPI_Initialized(ctypes.byref(flag)) == 0 and flag.value == 0
    asked = tmp_path / "libCntk.Core.so"
    fixes.compile_library("int MPI_Init(void); int start(void) { return MPI_Init(); }\n", str(asked))
    assert fixes.undefined_mpi_symbols([str(asked)]) == ["MPI_Init"]
