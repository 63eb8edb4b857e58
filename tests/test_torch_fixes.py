"""The repair that lets torchvision be imported beside another build of PyTorch; that it is enough, rows of torchvision show."""

import importlib.util
import sys
from types import SimpleNamespace

import pytest

from rosetta.paths import ENVIRONMENTS

CODE = """import functools

import torch
import torch.library


@torch.library.register_fake("torchvision::nms")
def meta_nms(dets):
    return dets
"""


@pytest.fixture
def fixes():
    spec = importlib.util.spec_from_file_location("torch_fixes", ENVIRONMENTS / "torch_fixes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("loaded", [True, False])
def test_operators_are_described_where_they_are_loaded(fixes, tmp_path, monkeypatch, loaded):
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_meta_registrations.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    fixes.main()
    mended = (package / "_meta_registrations.py").read_text()
    fixes.main()
    assert (package / "_meta_registrations.py").read_text() == mended != CODE, "running it again does no harm"

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


def test_nothing_to_mend_where_torchvision_is_not_installed(fixes, monkeypatch):
    monkeypatch.setattr(fixes.importlib.util, "find_spec", lambda name: None)
    fixes.main()
