"""One batch of noise, or of the words of a text."""

import numpy as np
import pytest

from common.data import examples, loaded
from common.data.errors import DataError
from common.params.networks import network

LSTM, IMAGES = network("lstm"), network("alexnet_r")
WORDS = ["the", "cat", "saw", "The", "dog"] * 20


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text(" ".join(WORDS), encoding="utf-8")
    return str(file)


def test_noise_is_the_same_everywhere():
    x, y = examples.batch(IMAGES, 3, seed=5)
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((3, 3, 32, 32), np.float32, (3,), np.int32)
    again = examples.batch(IMAGES, 3, seed=5)
    assert np.array_equal(x, again[0]) and np.array_equal(y, again[1])
    assert loaded.description() == {"name": "noise", "synthetic": True, "sizes": {"examples": 3}}


def test_words_are_numbered_by_rank_and_followed_by_their_labels(text):
    x, y = examples.batch(LSTM, 2, text=text)
    assert x.shape == y.shape == (2, 32) and x.dtype == y.dtype == np.int32
    assert x[0, :5].tolist() == [1, 2, 4, 1, 3], "the most frequent word is 1, others follow by the alphabet"
    assert np.array_equal(x[:, 1:], y[:, :-1])
    assert np.array_equal(x[0], x[1]), "the second text begins in the middle of the file"
    assert loaded.description() == {"name": "words", "synthetic": False, "sizes": {"examples": 2}}


def test_rare_words_share_a_number(tmp_path):
    file = tmp_path / "many.txt"
    file.write_text(" ".join("%05d" % number for number in range(12000)), encoding="utf-8")
    x, _ = examples.batch(LSTM, 1, text=str(file))
    assert x[0, :3].tolist() == [1, 2, 3]
    x, _ = examples.batch(LSTM, 300, text=str(file))
    assert x.max() < 10000 and x[-1].tolist() == [0] * 32


@pytest.mark.parametrize(
    ("net", "n", "content", "reason"),
    [
        (IMAGES, 2, b"a b c", "TEXT: this network reads no words"),
        (LSTM, 2, b"a b c", "text.txt holds 3 words; this batch needs 66"),
        (LSTM, 2, b"\xff\xfe", "as a text in UTF-8"),
        (LSTM, 2, None, "cannot read"),
    ],
)
def test_text_that_does_not_serve_is_one_line(tmp_path, net, n, content, reason):
    file = tmp_path / "text.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DataError, match=reason) as error:
        examples.batch(net, n, text=str(file))
    assert "\n" not in str(error.value)
