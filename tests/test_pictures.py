"""CIFAR-10 as picture files."""

import numpy as np
import pytest
from PIL import Image

from common.data import image_folder, images, loaded, pictures
from common.data.errors import DataError
from common.params.networks import network
from common.params.resnet50_features import DEVIATION, MEAN


def test_pictures_are_those_of_the_test_set(tmp_path):
    pictures.write(str(tmp_path / "new"), 3, size=64, synthetic=True)
    files = sorted((tmp_path / "new").glob("*.jpg"))
    assert [file.name[:6] for file in files] == ["00000-", "00001-", "00002-"]
    sizes = {Image.open(file).size for file in files}
    assert sizes == {(64, 64)}
    read = images.read(str(tmp_path / "new"), images.decode)
    assert len(read) == 3 and read[0].shape == (3, 224, 224) and not np.array_equal(read[0], read[1])
    assert loaded.description()["synthetic"] is True


@pytest.mark.parametrize(
    ("size", "resized", "corner"),
    [((500, 374), (342, 256), (59, 16)), ((375, 500), (256, 341), (16, 58)), ((300, 400), (256, 341), (16, 58))],
)
def test_resized_and_cropped_as_torchvision_does(tmp_path, size, resized, corner):
    """Its Resize(256) and CenterCrop(224): the longer side is rounded down, and half a pixel to the even number."""
    noise = np.random.RandomState(0).randint(0, 256, size[::-1] + (3,)).astype(np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    (left, top), whole = corner, Image.fromarray(noise).resize(resized, Image.BILINEAR)
    pixels = np.asarray(whole.crop((left, top, left + 224, top + 224)), np.float32).transpose(2, 0, 1) / 255
    expected = (pixels - np.reshape(MEAN, (3, 1, 1))) / np.reshape(DEVIATION, (3, 1, 1))
    assert np.allclose(images.decode(str(tmp_path / "noise.png")), expected, atol=1e-5)


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


@pytest.fixture
def folder(tmp_path):
    """Four pictures in folders for each class."""
    pictures.write(str(tmp_path / "new"), 4, size=32, synthetic=True, by_class=True)
    return tmp_path / "new"


def checked(folder, n: int = 1, name: str = "alexnet_r") -> str:
    return image_folder.checked(str(folder), n, network(name))


def test_a_folder_for_each_class(folder):
    files = sorted(file.relative_to(folder) for file in folder.rglob("*.jpg"))
    assert len(files) == 4 and all(len(file.parts) == 2 for file in files)
    assert checked(folder, 4) == str(folder)
    assert loaded.description() == {"name": "pictures", "synthetic": True, "sizes": {"images": 4}}


def test_pictures_of_ones_own_are_not_synthetic(folder):
    (folder / images.MARK).unlink()
    checked(folder)
    assert loaded.description()["synthetic"] is False


def test_a_folder_without_classes_or_with_too_few_pictures_is_one_line(tmp_path, folder):
    pictures.write(str(tmp_path / "flat"), 2, size=32, synthetic=True)
    with pytest.raises(DataError, match="holds 0 pictures in 0 folders; a batch needs 2, in a folder for each class"):
        checked(tmp_path / "flat", 2)
    with pytest.raises(DataError, match="holds 4 pictures in . folders; a batch needs 5"):
        checked(folder, 5)
    with pytest.raises(DataError, match="cannot read the folder"):
        checked(tmp_path / "none")


def test_what_does_not_fit_is_one_line(folder):
    with pytest.raises(DataError, match="IMAGES: this network takes no images: leave IMAGES out"):
        checked(folder, name="fcn_r")
    for number in range(10):
        (folder / f"more-{number}").mkdir()
    with pytest.raises(DataError, match="more-0 is empty: a class needs a picture"):
        checked(folder)
    for number in range(10):
        (folder / f"more-{number}" / "1.png").touch()
    with pytest.raises(DataError, match=r"has \d\d classes; this network has 10 outputs"):
        checked(folder)
    checked(folder, name="alexnet")
    (folder / "more-1" / "notes.txt").touch()
    with pytest.raises(DataError, match="more-1/notes.txt is no picture: take it out of the folder"):
        checked(folder, name="alexnet")
