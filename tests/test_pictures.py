"""CIFAR-10 as picture files."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from common.data import image_folder, images, loaded, pictures
from common.data.errors import DataError
from common.params.networks import network
from common.params.resnet50_features import DEVIATION, MEAN


def test_pictures_are_those_of_the_test_set_and_the_same_bytes_each_time(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        pictures.write(str(folder), 3, size=64, synthetic=True)
    files = sorted(one.glob("*.jpg"))
    assert [file.name[:6] for file in files] == ["00000-", "00001-", "00002-"]
    assert {Image.open(file).size for file in files} == {(64, 64)}
    assert [file.read_bytes() for file in files] == [(other / file.name).read_bytes() for file in files]
    read = images.read(str(one), images.decode)
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
    files = [file.relative_to(folder) for file in folder.rglob("*.jpg")]
    assert len(files) == 4 and all(len(file.parts) == 2 for file in files)
    assert checked(folder, 4) == str(folder)
    assert loaded.description() == {"name": "pictures", "synthetic": True, "sizes": {"images": 4}}
    (folder / images.MARK).unlink()
    checked(folder)
    assert loaded.description()["synthetic"] is False, "pictures of one's own"


def test_a_folder_that_does_not_fit_is_one_line(tmp_path, folder):
    def refused(reason: str, where=folder, n: int = 1, name: str = "alexnet_r") -> None:
        with pytest.raises(DataError, match=reason):
            checked(where, n, name)

    pictures.write(str(tmp_path / "flat"), 2, size=32, synthetic=True)
    refused("holds 0 pictures in 0 folders; a batch needs 2, in a folder for each class", tmp_path / "flat", 2)
    refused("holds 4 pictures in . folders; a batch needs 5", n=5)
    refused("cannot read the folder", tmp_path / "none")
    refused("IMAGES: this network takes no images: leave IMAGES out", name="fcn_r")
    for number in range(10):
        (folder / f"more-{number}").mkdir()
    refused("more-0 is empty: a class needs a picture")
    for number in range(10):
        Image.new("RGB", (8, 8)).save(folder / f"more-{number}" / "1.png")
    refused(r"has \d\d classes; this network has 10 outputs")
    checked(folder, name="alexnet")
    (folder / ".ipynb_checkpoints").mkdir()
    refused("ipynb_checkpoints is a hidden folder, which some frameworks take for a class", name="alexnet")


def saved(**how) -> bytes:
    file = io.BytesIO()
    Image.effect_noise((64, 48), 50).convert(how.pop("mode", "RGB")).save(file, **how)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("notes.txt", b"a note", "the name of a picture ends with .jpeg, .jpg, .png here: convert it"),
        ("a.gif", saved(mode="P", format="GIF"), "the name of a picture ends with .jpeg, .jpg, .png here: convert it"),
        ("a.webp", saved(format="WEBP"), "the name of a picture ends with .jpeg, .jpg, .png here: convert it"),
        ("gif.png", saved(mode="P", format="GIF"), "it is no JPEG and no PNG, but GIF"),
        ("page.jpg", b"\n<!DOCTYPE html><p>", "it is no JPEG and no PNG, but HTML or XML"),
        (
            "._a.jpg",
            b"\0\x05\x16\x07\0\x02",
            "it is no JPEG and no PNG, but what macOS keeps beside a file .AppleDouble.",
        ),
        ("lfs.png", b"version https://git-lfs.github.com/spec/v1", "but a pointer of Git LFS"),
        ("a.jpg", b"", "it is empty"),
        ("cut.jpg", saved(format="JPEG")[:-40], "it ends too early"),
        ("cut.png", saved(format="PNG")[:-40], "it ends too early"),
        ("deep.png", saved(mode="I;16", format="PNG"), "it has 16 bits a channel: convert it to 8"),
        ("link.jpg", None, "it is no file, or a link to none"),
        ("folder.jpg", ..., "it is no file, or a link to none"),
        ("caf\udce9.jpg", saved(format="JPEG"), "its name is not in UTF-8: rename it"),
    ],
)
def test_a_file_that_not_every_framework_reads_as_the_same_picture(tmp_path, folder, capsys, name, content, reason):
    """In a folder for each class it is refused; in a folder of pictures it is left out with a line."""
    flat = tmp_path / "flat"
    pictures.write(str(flat), 1, size=32, synthetic=True)
    for place in (flat, next(entry for entry in folder.iterdir() if entry.is_dir())):
        if content is None:
            (place / name).symlink_to("nowhere")
        elif content is ...:
            (place / name).mkdir()
        else:
            (place / name).write_bytes(content)
    shown = name.replace("\udce9", "\\xe9")
    with pytest.raises(DataError) as refused:
        checked(folder)
    assert re.search(f"/{re.escape(shown)}: .*{reason} .mend it or take it out.$", str(refused.value))
    assert len(images.read(str(flat), images.decode)) == 1
    said = capsys.readouterr().out
    assert name == "notes.txt" or re.search(f"^left out {re.escape(shown)}: .*{reason}$", said, re.M), said


PNG = [("PNG", {"mode": mode}) for mode in ("L", "P", "1", "RGBA", "LA")]
JPEG = [("JPEG", {"mode": mode, "progressive": True}) for mode in ("L", "RGB", "CMYK")]


@pytest.mark.parametrize(("format", "how"), PNG + JPEG)
def test_pictures_that_every_framework_reads(tmp_path, format, how):
    """MXNet, TensorFlow 1 and 2, MindSpore and Pillow were seen to decode the PNG files to the same pixels."""
    path = tmp_path / f"a.{format.lower()}"
    path.write_bytes(saved(format=format, **how))
    assert images.fault(str(path)) is None
