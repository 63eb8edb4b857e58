"""Generated images, and the pictures of a folder."""

import numpy as np
import pytest

from common.data import images, loaded
from common.data.errors import DataError

JPEG = b"\xff\xd8\xff\xda\xff\xd9"  # what is looked at of one


def test_generated_images_are_the_same_everywhere():
    x = images.generate(3)
    assert x.shape == (3, 3, 224, 224) and x.dtype == np.float32 and x.flags.c_contiguous
    assert np.array_equal(images.generate(2), x[:2]), "the first n do not depend on n"
    assert loaded.description() == {"name": "generated images", "synthetic": True, "sizes": {"images": 2}}
    assert np.abs(x.mean(axis=(0, 2, 3))).max() < 1 and 0.5 < x.std() < 1.5
    steps = np.abs(np.diff(x, axis=3)).mean() / x.std()
    assert steps < 0.2, "smooth as photographs are"


def test_values_that_hold_on_every_machine():
    assert images.generate(1)[0, :, 0, 0] == pytest.approx([0.160532, -2.035714, -1.804444], abs=1e-5)


def test_a_file_that_is_no_picture_is_left_out_and_named(tmp_path, capsys):
    for name in ("b.jpg", "a.PNG", "broken.png"):
        (tmp_path / name).write_bytes(JPEG)
    (tmp_path / "notes.txt").write_text("notes")

    def decode(path):
        if "broken" in path:
            raise ValueError("Traceback:\nnot an image\n")
        return path

    found = images.read(str(tmp_path), decode)
    assert [path[-5:] for path in found] == ["a.PNG", "b.jpg"]
    assert capsys.readouterr().out == "left out broken.png: not an image\n"
    assert loaded.description()["sizes"] == {"images": 2, "left_out": 1}


def test_a_missing_package_is_not_the_picture_s_fault(tmp_path):
    (tmp_path / "a.png").write_bytes(JPEG)

    def decode(path):
        raise ImportError("No module named 'PIL'")

    with pytest.raises(
        DataError, match="pictures need a package that is not in this environment: No module named 'PIL'"
    ):
        images.read(str(tmp_path), decode)


def test_a_folder_without_pictures(tmp_path):
    with pytest.raises(DataError, match="holds no picture that can be read .0 left out."):
        images.read(str(tmp_path), None)
    with pytest.raises(DataError, match="IMAGES: cannot read the folder .*nowhere: No such file"):
        images.read(str(tmp_path / "nowhere"), None)
