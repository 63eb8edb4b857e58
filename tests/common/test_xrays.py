"""ChestX-ray14 as its publisher ships it, and the generated images in its place."""

import numpy as np
import pytest

from common.data import loaded, xrays
from common.data.errors import DataError

HEADER = "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position"


def read(path):
    """An image of 2 x 2 pixels: the patient's number, which such a file has for content."""
    with open(path) as file:
        return np.full((2, 2), int(file.read()), np.uint8)


@pytest.fixture
def folder(tmp_path):
    """Ten patients with three images each, of which the archive of the fifth was not unpacked."""
    lines = [HEADER]
    for patient in range(1, 11):
        for number in range(3):
            name = "%08d_%03d.png" % (patient, number)
            findings = ["No Finding", "Hernia", "Atelectasis|Hernia"][number]
            lines.append("%s,%s,%d,%d,58,M,PA" % (name, findings, number, patient))
            place = tmp_path / ("images_%03d" % (patient % 3)) / "images"
            place.mkdir(parents=True, exist_ok=True)
            if patient != 5:
                (place / name).write_text(str(patient))
    (tmp_path / "Data_Entry_2017.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_all_images_of_a_patient_are_in_one_part(folder, capsys):
    x_train, y_train, x_test, y_test = xrays.load(None, None, folder=str(folder), read=read)
    assert (x_train.shape, y_train.shape, x_test.shape) == ((21, 2, 2), (21, 14), (6, 2, 2))
    patients = x_train[:, 0, 0].reshape(-1, 3)
    assert (patients == patients[:, :1]).all() and not set(patients.ravel()) & set(x_test[:, 0, 0])
    assert 5 not in patients and capsys.readouterr().out.startswith("left out 3 images of Data_Entry_2017.csv")
    assert list(patients[:, 0]) != sorted(patients[:, 0]), "in an order of their own"
    assert y_train.dtype == np.float32 and y_train.sum(axis=0).tolist() == [7] + [0] * 12 + [14]
    assert loaded.description() == {
        "name": "ChestX-ray14",
        "synthetic": False,
        "sizes": {"train": 21, "test": 6, "left_out": 3},
    }


def test_the_first_images_are_the_same_whatever_their_number_and_come_from_disk_when_they_are_asked_for(folder):
    whole, few = (xrays.load(n, 4, folder=str(folder), read=read) for n in (None, 8))
    files, labels, x_test, _ = xrays.load(8, 4, folder=str(folder), read=read, feed="disk")
    assert np.array_equal(few[0], whole[0][:8]) and np.array_equal(few[2], whole[2][:4])
    assert np.array_equal(labels, few[1]) and np.array_equal(x_test, few[2])
    assert len(files) == 8 and np.array_equal(files[3], few[0][3])
    assert np.array_equal(files[[5, 2]], few[0][[5, 2]]) and np.array_equal(files[2:6], few[0][2:6])
    with open(files.paths[0], "w") as file:
        file.write("77")
    assert files[0][0, 0] == 77


def test_a_folder_that_cannot_be_used_is_one_line(folder, tmp_path):
    def load(n_train=8, n_test=4, **options):
        return xrays.load(n_train, n_test, folder=str(folder), read=read, **options)

    with pytest.raises(
        DataError, match="XRAYS: N_TRAIN must be between 1 and 21, not 64: .* has no more images for it"
    ):
        load(n_train=64)
    with pytest.raises(DataError, match="FEED=disk reads files: set XRAYS"):
        xrays.load(8, 4, feed="disk")
    table = folder / "Data_Entry_2017.csv"
    files, *_ = load(feed="disk")
    whole = table.read_text()
    with open(files.paths[0], "w") as file:
        file.write("no number")
    with pytest.raises(DataError, match="XRAYS: cannot read .*png: it is no JPEG and no PNG, but something else"):
        files[0]
    table.write_text(whole.replace("Hernia", "Hiccup"))
    with pytest.raises(DataError, match="names a finding Hiccup for 00000001_001.png; known are Atelectasis"):
        load()
    table.write_text(whole.replace("Patient ID", "Patient"))
    with pytest.raises(DataError, match="lacks the columns Image Index, Finding Labels, Patient ID"):
        load()
    table.write_text("\n".join(whole.splitlines()[:3]) + "\n")
    with pytest.raises(DataError, match="holds images of 1 patients; two are the least"):
        load()
    table.rename(tmp_path / "other.csv")
    with pytest.raises(DataError, match="there is no Data_Entry_2017.csv and no Data_Entry_2017_v2020.csv in"):
        load()
    with pytest.raises(DataError, match="there is no Data_Entry_2017.csv"):
        xrays.load(8, 4, folder=str(tmp_path / "nowhere"), read=read)


def test_generated_images_are_the_same_whatever_their_number_and_differ_between_training_and_test():
    few, many = xrays.load(5, 3, pixels=16), xrays.load(xrays.CHUNK + 1, 4, pixels=16)
    for a, b in zip(few, many):
        assert np.array_equal(a, b[: len(a)])
    x_train, y_train, x_test, _ = many
    assert (x_train.shape, x_train.dtype) == ((513, 16, 16), np.uint8)
    assert (y_train.shape, y_train.dtype) == ((513, 14), np.float32)
    assert not np.array_equal(x_train[:4], x_test) and 0.15 < y_train.mean() < 0.25
