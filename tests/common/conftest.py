"""Fixtures of the tests of ``common``; they run on Python 3.6 to 3.13, with NumPy and pytest alone."""

import threading
from pathlib import Path

import numpy as np
import pytest

from common.data import cifar10, download
from tests.common.archives import Server, describe, tar


@pytest.fixture
def cifar(tmp_path, monkeypatch):
    """A folder in the format of CIFAR-10 with 20 images a file instead of 10,000, no image symmetric or like another."""
    monkeypatch.setattr(cifar10, "RECORDS", 20)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for seed, name in enumerate(cifar10.ARCHIVE.members):
        records = np.random.RandomState(seed).randint(0, 256, (20, 3073)).astype(np.uint8)
        records[:, 0] = np.arange(20) % 10
        (folder / name).write_bytes(records.tobytes())
    return folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder for downloads, as a path, on every operating system; no folder given, no proxy used."""
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "user"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("ROSETTA_DATA", raising=False)
    return Path(download.cache_folder())


def _serve():
    with Server() as made:
        made.content = tar()
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.may_answer.set()
        made.shutdown()
        thread.join()


@pytest.fixture
def server():
    """A server on this machine that offers a small archive."""
    yield from _serve()


@pytest.fixture
def another():
    """A second one."""
    yield from _serve()


@pytest.fixture
def archive(server):
    """The description of the archive that the server offers."""
    return describe(server.content, server.port)
