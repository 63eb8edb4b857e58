"""What ``task.toml`` says of the networks of a framework's own zoo is proven, whichever way it is."""

import json

import pytest

from tests import toys

SAID = 'zoo = { narrow = "", wide = "twice the outputs" }'


@pytest.fixture
def verify(inside):
    """Verifies the toy: (its exit code, the finding of level 3, the page). said: of the zoo."""
    inside.catalog(inside.entry("idle"))
    toys.write(inside.root)
    file = inside.root / "notebooks" / "toy_speed" / "task.toml"

    def call(said: str = SAID):
        assert SAID in file.read_text() or said == SAID
        file.write_text(file.read_text().replace(SAID, said))
        done = inside.call("verify", "toy_speed/numpy", "--synthetic", "--out", str(inside.out))
        folder = inside.out / "conformance"
        (row,) = json.loads((folder / "toy_speed.json").read_text())["rows"]
        (third,) = (finding for finding in row["findings"] if finding["level"] == 3)
        return done.returncode, third, (folder / "toy_speed.md").read_text()

    return call


def test_page_tells_which_are_the_same(verify):
    code, third, page = verify()
    assert (code, third["passed"]) == (0, True)
    assert third["measured"]["output of narrow of the zoo"] < 1e-6
    assert "| framework | `narrow` | `wide` |" in page
    assert "| NumPy | `narrow` | yes | " in page and "| NumPy | `wide` | another one: twice the outputs |  |" in page


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ('zoo = { wide = "" }', "wide of the zoo: the outputs differ: 1, allowed 0.0001"),
        (
            'zoo = { narrow = "another" }',
            "narrow of the zoo: it is the task's network, and task.toml says that it is another one",
        ),
    ],
)
def test_what_is_not_so_fails(verify, said, reason):
    code, third, _ = verify(said)
    assert (code, third["reason"]) == (1, reason)
