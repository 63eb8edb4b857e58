"""Where the data is looked for; nothing is ever written into a folder that the user names."""

import os
import sys

import pytest

from common.data import DataError, download
from common.data.download import Unreachable, locate
from tests.common.archives import FILES, NOWHERE, refused


@pytest.fixture
def given(tmp_path):
    """A folder that holds the extracted folder ``tiny``."""
    folder = tmp_path / "given" / "tiny"
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return folder.parent


@pytest.mark.parametrize("below", ["", "tiny"])
@pytest.mark.parametrize("by_variable", [False, True])
def test_a_given_folder_is_the_extracted_one_or_holds_it(given, cache, monkeypatch, by_variable, below):
    path = str(given / below)
    if by_variable:
        monkeypatch.setenv("ROSETTA_DATA", path)
    assert locate(NOWHERE, None if by_variable else path) == str(given / "tiny")


def test_the_parameter_goes_before_the_variable(given, cache, monkeypatch):
    monkeypatch.setenv("ROSETTA_DATA", "/nowhere")
    assert locate(NOWHERE, given) == str(given / "tiny")


@pytest.mark.skipif(sys.platform == "win32", reason="~ is HOME on other systems")
def test_a_tilde_is_the_home_folder(given, cache, monkeypatch):
    monkeypatch.setenv("HOME", str(given.parent))
    assert locate(NOWHERE, "~/given") == str(given / "tiny")


@pytest.mark.parametrize("source", ["data_dir", "ROSETTA_DATA"])
def test_a_given_folder_that_lacks_files_is_an_error_and_stays(given, cache, archive, server, monkeypatch, source):
    (given / "tiny" / "two.bin").unlink()
    monkeypatch.setenv("ROSETTA_DATA", str(given))
    message = refused(archive, str(given) if source == "data_dir" else None)
    for part in (str(given), "lacks two.bin", archive.urls[0]):
        assert part in message
    assert ("ROSETTA_DATA" in message) == (source == "ROSETTA_DATA"), "it says what gave the folder"
    assert server.asked == [] and os.listdir(str(given / "tiny")) == ["one.bin"]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("fetch", [True, False])
def test_only_what_nobody_named_is_unreachable(tmp_path, cache, named, fetch):
    with pytest.raises(DataError) as error:
        locate(NOWHERE, tmp_path / "none" if named else None, fetch)
    assert isinstance(error.value, Unreachable) != named and ("does not exist" in str(error.value)) == named


@pytest.mark.parametrize(
    "platform, variable, expected",
    [
        ("linux", "XDG_CACHE_HOME", "set/rosetta"),
        ("linux", None, ".cache/rosetta"),
        ("darwin", None, "Library/Caches/rosetta"),
    ],
)
def test_the_cache_is_where_the_system_has_caches(tmp_path, cache, monkeypatch, platform, variable, expected):
    monkeypatch.setattr(download.sys, "platform", platform)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "set"))
    assert download.cache_folder() == str(tmp_path / expected)
