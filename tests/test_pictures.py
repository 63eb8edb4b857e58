"""CIFAR-10 as picture files."""

import numpy as np
import pytest
from PIL import Image

from common.data import image_folder, images, loaded, pictures
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


def test_a_folder_for_each_class(tmp_path):
    pictures.write(str(tmp_path / "new"), 4, size=32, synthetic=True, by_class=True)
    files = sorted(file.relative_to(tmp_path / "new") for file in (tmp_path / "new").rglob("*.jpg"))
    assert len(files) == 4 and all(len(file.parts) == 2 for file in files)
    assert image_folder.checked(str(tmp_path / "new"), 4) == str(tmp_path / "new")
    assert loaded.description() == {"name": "pictures", "synthetic": False, "sizes": {"images": 4}}


def test_a_folder_without_classes_or_with_too_few_pictures_is_one_line(tmp_path):
    pictures.write(str(tmp_path / "flat"), 2, size=32, synthetic=True)
    with pytest.raises(DataError, match="holds 0 pictures in 0 folders; a batch needs 2, in a folder for each class"):
        image_folder.checked(str(tmp_path / "flat"), 2)
    pictures.write(str(tmp_path / "few"), 2, size=32, synthetic=True, by_class=True)
    with pytest.raises(DataError, match="holds 2 pictures in . folders; a batch needs 3"):
        image_folder.checked(str(tmp_path / "few"), 3)
    with pytest.raises(DataError, match="cannot read the folder"):
        image_folder.checked(str(tmp_path / "none"), 1)


def test_another_file_among_the_pictures_is_one_line(tmp_path):
    pictures.write(str(tmp_path / "new"), 2, size=32, synthetic=True, by_class=True)
    stray = next((tmp_path / "new").iterdir()) / "notes.txt"
    stray.touch()
    with pytest.raises(DataError, match=f"IMAGES: {stray} is no picture: take it out of the folder"):
        image_folder.checked(str(tmp_path / "new"), 1)
