"""The loader of IMDB: reviews as numbers of words, from a file of pickled lists that may run no code."""

import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from common.data import DataError, imdb, loaded, pickled

REAL = os.environ.get(loaded.VARIABLE)


def boxed(values):
    """Lists as NumPy keeps them: an array of objects."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def npz(path, **arrays):
    """An archive as NumPy writes it, with reviews as pickled arrays of objects."""
    np.savez(path, **{name: boxed(array) if name[0] == "x" else np.array(array) for name, array in arrays.items()})
    return str(path)


def raw(path, content):
    """An archive whose array ``x_train`` has this pickle."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|O", "fortran_order": False, "shape": (2,)})
    with zipfile.ZipFile(str(path), "w") as archive:
        archive.writestr("x_train.npy", stream.getvalue() + content)
    return str(path)


def refused(path, name="x_train"):
    with pytest.raises(DataError) as error:
        pickled.read_lists(path, name)
    assert "\n" not in str(error.value) and path in str(error.value)
    return str(error.value)


def test_reads_lists_of_integers(tmp_path):
    reviews = [[1, 2, 70000], [], [5]]
    path = npz(tmp_path / "a.npz", x_train=reviews)
    assert pickled.read_lists(path, "x_train") == reviews


@pytest.mark.parametrize("protocol", [2, 3])
def test_reads_what_older_pythons_wrote(tmp_path, protocol):
    content = pickle.dumps(boxed([[1, 2], [3]]), protocol).replace(b"numpy._core", b"numpy.core")
    assert pickled.read_lists(raw(tmp_path / "a.npz", content), "x_train") == [[1, 2], [3]]


class Hostile(object):
    def __init__(self, call, *arguments):
        self.made = call, arguments

    def __reduce__(self):
        return self.made


@pytest.mark.parametrize(
    "call, arguments, asked",
    [
        (os.system, ("touch hostile",), "posix.system"),
        (eval, ("open('hostile', 'w')",), ".eval"),
        (getattr, ([], "append"), ".getattr"),
        (np.zeros, (10,), "zeros"),
    ],
)
def test_a_hostile_pickle_runs_nothing(tmp_path, monkeypatch, call, arguments, asked):
    monkeypatch.chdir(tmp_path)
    hostile = boxed([[1], Hostile(call, *arguments)])
    said = refused(raw(tmp_path / "a.npz", pickle.dumps(hostile, 2)))
    assert asked in said and not (tmp_path / "hostile").exists()


@pytest.mark.parametrize(
    "values", [[[1], [2.5]], [[1], "text"], [[1], [[2]]], [[1], [True]], [[1], {"a": 1}], [[1], [None]]], ids=str
)
def test_refuses_what_is_no_list_of_integers(tmp_path, values):
    assert "no array of lists of integers" in refused(raw(tmp_path / "a.npz", pickle.dumps(boxed(values), 2)))


@pytest.mark.parametrize("content", [b"", b"\x80\x02", b"nonsense", pickle.dumps([[1], [2]])[:-3], b"\x80\x02K\x01."])
def test_a_damaged_pickle_is_one_line(tmp_path, content):
    refused(raw(tmp_path / "a.npz", content))


def test_other_damage_is_one_line(tmp_path, monkeypatch):
    whole = npz(tmp_path / "a.npz", x_train=[[1], [2]])
    assert "is damaged" in refused(whole, "x_test")
    (tmp_path / "b.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:100])
    assert "is damaged" in refused(str(tmp_path / "b.npz"))
    assert "cannot read" in refused(str(tmp_path / "c.npz"))
    monkeypatch.setattr(pickled, "LARGEST", 100)
    assert "is larger than" in refused(whole)


def test_cuts_as_keras_does():
    """load_data(num_words=30000), then pad_sequences(maxlen=150, padding="post"): the end is kept, with the start mark if there is room."""
    long, short = list(range(1, 301)), [5, 40000, 29996, 29997]
    x = imdb.cut([long, short, long[:149], long[:150], []], "here")
    assert x.dtype == np.int32 and x.shape == (5, 150)
    assert x[0].tolist() == list(range(154, 304))
    assert x[1].tolist() == [1, 8, 2, 29999, 2] + [0] * 145
    assert x[2].tolist() == [1] + list(range(4, 153)) and x[3].tolist() == list(range(4, 154))
    assert x[4].tolist() == [1] + [0] * 149
    with pytest.raises(DataError, match="here holds a rank below 1"):
        imdb.cut([[3, 0]], "here")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder with an imdb.npz of four reviews a set."""
    monkeypatch.setattr(imdb, "REVIEWS", 4)
    reviews = {"x_train": [[1], [2], [3], [4]], "x_test": [[5], [6], [7], [8]]}
    npz(tmp_path / "imdb.npz", y_train=[0, 0, 1, 1], y_test=[1, 1, 0, 0], **reviews)
    return tmp_path


def test_takes_the_reviews_in_keras_order(small):
    x_train, y_train, x_test, y_test = imdb.load(data_dir=str(small))
    rng = np.random.RandomState(113)
    sets = (x_train, y_train, [1, 2, 3, 4], [0, 0, 1, 1]), (x_test, y_test, [5, 6, 7, 8], [1, 1, 0, 0])
    for x, y, ranks, labels in sets:
        order = np.arange(4)
        rng.shuffle(order)
        assert x[:, 1].tolist() == [ranks[i] + 3 for i in order] and y.tolist() == [labels[i] for i in order]
        assert y.dtype == np.int64 and (x[:, 0] == 1).all() and not x[:, 2:].any()
    few = imdb.load(n_train=2, n_test=3, data_dir=str(small))
    for part, whole in zip(few, (x_train[:2], y_train[:2], x_test[:3], y_test[:3])):
        assert np.array_equal(part, whole)
    assert loaded.description() == {"name": "IMDB", "synthetic": False, "sizes": {"train": 2, "test": 3}}


@pytest.mark.parametrize(
    "wrong, said", [([0, 1], "4 reviews and 2 labels"), ([0, 1, 2, 0], "not 0 or 1"), ([0.5] * 4, "not 0 or 1")]
)
def test_wrong_labels_are_one_line(small, wrong, said):
    npz(small / "imdb.npz", x_train=[[1], [2], [3], [4]], y_train=wrong)
    with pytest.raises(DataError, match=said):
        imdb.load(data_dir=str(small))


def test_a_folder_without_the_file_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match="lacks imdb.npz; put https://.*/imdb.npz there"):
        imdb.load(data_dir=str(tmp_path))


@pytest.mark.parametrize("arguments", [{"n_train": 0}, {"n_test": 25001}])
def test_refuses_sizes_that_there_are_not(arguments):
    with pytest.raises(ValueError, match="must be between 1 and 25000"):
        imdb.load(synthetic=True, **arguments)


def test_synthetic_reviews_are_the_same_every_time_and_learnable():
    x_train, y_train, x_test, y_test = imdb.load(n_train=400, n_test=200, synthetic=True)
    again = imdb.load(n_train=400, n_test=200, synthetic=True)
    assert all(np.array_equal(one, other) for one, other in zip((x_train, y_train, x_test, y_test), again))
    assert x_train.dtype == np.int32 and x_train.shape == (400, 150) and 0 <= x_train.min() <= x_train.max() < 30000
    assert y_train[:8].tolist() == [0, 1, 0, 1, 0, 0, 1, 1], "on every Python"
    assert x_train[0, :8].tolist() == [91, 4, 120, 10, 206, 4, 2, 68]
    assert sorted(np.bincount(y_train)) == [200, 200] and not np.array_equal(x_train[:200], x_test)
    counts = [np.bincount(x_train[y_train == label].ravel(), minlength=30000) + 1 for label in (0, 1)]
    votes = np.log(counts[1] / counts[0])[x_test].sum(axis=1) > 0
    assert 0.85 < (votes == y_test).mean() < 0.95, "one label in ten is wrong"
    assert loaded.description()["synthetic"] is True


@pytest.mark.skipif(not REAL or REAL == loaded.SYNTHETIC, reason="needs the real reviews: set ROSETTA_DATA")
def test_the_real_reviews():
    x_train, y_train, x_test, y_test = imdb.load()
    for x, y in ((x_train, y_train), (x_test, y_test)):
        assert x.shape == (25000, 150) and x.flags.c_contiguous and np.bincount(y).tolist() == [12500, 12500]
        assert x.min() == 0 and x.max() == 29999 and 0.05 < (x == 0).mean() < 0.3
