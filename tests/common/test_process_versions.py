"""Versions come from the running process; what cannot be told never stops a run at its end."""

import platform
import types

import numpy as np
import pytest

from common import versions as module
from common.versions import cuda_libraries, versions


def fake(name, **attributes):
    made = types.ModuleType(name)
    made.__dict__.update(attributes)
    return made


def test_python_first_then_the_frameworks_then_numpy():
    found = versions(fake("torch", __version__="2.13.0"), fake("lightning", __version__=(2, 6)))
    assert list(found.items()) == [
        ("python", platform.python_version()),
        ("torch", "2.13.0"),
        ("lightning", "(2, 6)"),
        ("numpy", np.__version__),
    ]


@pytest.mark.skipif(module.sys.version_info < (3, 8), reason="needs setuptools before Python 3.8")
def test_a_module_without_a_version_is_looked_up_among_the_distributions():
    assert versions(fake("pytest"))["pytest"] == pytest.__version__


def test_a_module_that_is_no_distribution_is_unknown():
    assert versions(fake("no_such_distribution"))["no_such_distribution"] == "unknown"


MAPS = """\
7f00-7f01 r-xp 00000000 fd:00 1    /opt/my env/lib/libcudart.so.12
7f02-7f03 r--p 00001000 fd:00 1    /opt/my env/lib/libcudart.so.12
7f04-7f05 r-xp 00000000 fd:00 2    /opt/lib/libcudnn.so.9
7f06-7f07 r-xp 00000000 fd:00 3    /opt/lib/libcudnn_ops.so.9
7f08-7f09 r-xp 00000000 fd:00 4    /opt/lib/libcudart.so.11.0 (deleted)
7f0a-7f0b r-xp 00000000 fd:00 5    /usr/lib/libc.so.6
7f0c-7f0d rw-p 00000000 00:00 0    [heap]
"""


class Library(object):
    """A stand-in for both libraries, opened by path."""

    def __init__(self, path):
        if path.startswith("/broken"):
            raise OSError("cannot open shared object file")
        self.cudnnGetVersion = lambda: 90100

    def cudaRuntimeGetVersion(self, number):
        number._obj.value = 12090
        return 0


@pytest.mark.parametrize(
    "text, expected",
    [
        (MAPS, {"runtime": "12.9", "cudnn": "9.1.0"}),
        ("7f00-7f01 r-xp 00000000 fd:00 1   /torch/lib/libcudart-1b201d85.so.10.1\n", {"runtime": "12.9"}),
        ("7f00-7f01 r-xp 00000000 fd:00 1   /broken/libcudart.so.12\n", {}),
        ("", {}),
    ],
)
def test_cuda_libraries_are_found_in_the_memory_map(text, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(module.ctypes, "CDLL", Library)
    maps = tmp_path / "maps"
    maps.write_text(text)
    assert cuda_libraries(str(maps)) == expected


def test_a_system_without_a_memory_map_has_no_cuda_versions(tmp_path):
    assert cuda_libraries(str(tmp_path / "none")) == {}


@pytest.mark.parametrize("number, version", [(90100, "9.1.0"), (91002, "9.10.2"), (8907, "8.9.7"), (7605, "7.6.5")])
def test_cudnn_counts_its_versions_in_two_ways(number, version):
    assert module._cudnn_version(number) == version
