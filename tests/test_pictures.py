"""CIFAR-10 as picture files."""

import numpy as np
import pytest
from PIL import Image

from common.data import images, pictures
from common.data.errors import DataError


def test_pictures_are_those_of_the_test_set(tmp_path):
    pictures.write(str(tmp_path / "new"), 3, size=64, synthetic=True)
    files = sorted((tmp_path / "new").iterdir())
    assert [file.name[:6] for file in files] == ["00000-", "00001-", "00002-"]
    sizes = {Image.open(file).size for file in files}
    assert sizes == {(64, 64)}
    read = images.read(str(tmp_path / "new"), images.decode)
    assert len(read) == 3 and read[0].shape == (3, 224, 224) and not np.array_equal(read[0], read[1])


def test_the_same_bytes_each_time(tmp_path):
    for name in ("one", "other"):
        pictures.write(str(tmp_path / name), 2, synthetic=True)
    one, other = ([file.read_bytes() for file in sorted((tmp_path / name).iterdir())] for name in ("one", "other"))
    assert one == other


def test_a_folder_that_holds_something_stays_as_it_is(tmp_path):
    (tmp_path / "mine.jpg").write_text("mine")
    with pytest.raises(DataError, match="is not empty: name another folder"):
        pictures.write(str(tmp_path), 1, synthetic=True)
    with pytest.raises(DataError, match="cannot write pictures to"):
        pictures.write(str(tmp_path / "mine.jpg"), 1, synthetic=True)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["mine"]
