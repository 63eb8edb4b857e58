"""What a notebook says in its text is true of its code: the lines that save and load, and what is compiled."""

import ast
import os
import re
import textwrap
from collections.abc import Iterator

import pytest

from rosetta.catalog import Row
from rosetta.errors import Unavailable
from rosetta.measure.rows import Measuring
from rosetta.notebook import by_role, cells
from rosetta.run import devices
from rosetta.run.workers import Workers
from rosetta.where import Where

MEASURING = Measuring(Where(gpus="none", synthetic=not os.environ.get("ROSETTA_DATA")), "this test", "turns")
NOTEBOOKS = list({row.notebook: row for row in reversed(MEASURING.rows)}.values())
# How the line begins that has the statements, or stands above them, in every notebook
SHARED = re.compile(r"^- To \[?save and load(.*)\n?((?s:.*))", re.MULTILINE)
LOADS = re.compile(r"load|restore|set_|deserialise")
# After the notebook: its statements, between which all weights become zero
SAVED = """
import os, tempfile
import numpy as np
os.chdir(tempfile.mkdtemp())
before, predicted = export_weights(), predict() if {predicts} else None
for statements in {saving!r}, {loading!r}:
    for statement in statements:
        exec(statement)
    if statements == {saving!r}:
        zeros = {{name: array * 0 for name, array in before.items()}}
        if import_weights.__code__.co_argcount == 1:
            import_weights(zeros)
        else:  # of a framework whose models do not change
            model = import_weights(model, zeros)
        assert not any(array.any() for array in export_weights().values())
for name, array in export_weights().items():
    np.testing.assert_array_equal(array, before[name], err_msg=name)
if {predicts}:
    np.testing.assert_allclose(np.asarray(predict()), np.asarray(predicted), atol=1e-6)
"""
# What counts that a compiler was at work, after the notebook
JITTED = """
import gc
made = [value for value in gc.get_objects() if type(value).__name__ == {name!r}]
assert made, "nothing is compiled"
assert any({count} for value in made), made
"""
TRACED = "getattr(value, 'experimental_get_tracing_count', int)() > 0"  # of tf.function
WITNESSES = {
    "pytorch[compiled]": "from torch._dynamo.utils import counters\nassert counters['stats']['unique_graphs'] > 0, counters",
    "tensorflow": JITTED.format(name="Function", count=TRACED),
    "tensorflow[xla]": JITTED.format(name="Function", count=f"{TRACED} and value._jit_compile"),
    "tinygrad": JITTED.format(name="TinyJit", count="value.captured is not None"),
}
COMPILED = pytest.mark.xfail(strict=True, reason="torch.compile leaves nn.LSTM to eager code: the row will lack it")
COMPILED = [row for row in MEASURING.rows if row.name in WITNESSES]


def statements(row: Row) -> list[str]:
    """What the notebook's text says to save and load with: the code of that line, or the block below it, statement by statement."""
    texts = [cell.source for cell in cells(row.notebook) if cell.kind == "markdown"]
    ((line, below),) = [match.groups() for text in texts if (match := SHARED.search(text))]
    if block := re.match(r"\s*```python\n(.*?)```", below, re.DOTALL):
        code = textwrap.dedent(block[1])
    else:
        found = re.findall(r"`([^`]+)`", line)
        code = "\n".join(part for part in found if "(" in part or part.startswith("import "))
    return [ast.unparse(statement) for statement in ast.parse(code).body]


def run(row: Row, after: str, parameters: dict) -> None:
    """A notebook with few steps, and what follows it, in one process. Raises RosettaError."""
    kind = MEASURING.catalog.kind(row)
    constants = MEASURING.catalog.task(row.task).constants() | parameters
    planned = MEASURING.plan(row, parameters | kind.short(constants, steps=2, turns=1))
    with workers.share() as slot, MEASURING.scripts(planned, by_role(row.notebook) | {"after": after}) as (script,):
        script.run(slot, timeout_s=900)


workers = Workers(devices.shared(gpus="none", jobs=None))


def cases() -> Iterator:
    for row in COMPILED:
        networks = ["alexnet_r", "lstm"] if MEASURING.catalog.kind(row).which == "NETWORK" else [None]
        for network in networks:
            if network not in row.facts.lacking(False):
                name = " ".join(filter(None, [row.full_name, network]))
                yield pytest.param(row, network, id=name)


@pytest.mark.rows
@pytest.mark.drawn(4)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("row", NOTEBOOKS, ids=lambda row: row.full_name)
def test_what_is_saved_is_loaded(row, missing):
    every = statements(row)
    saving = every[: next(number for number, code in enumerate(every) if LOADS.search(code))]
    loading = every[len(saving) :]
    assert saving and loading
    predicts = MEASURING.catalog.kind(row).trains
    try:
        run(row, SAVED.format(saving=saving, loading=loading, predicts=predicts), {})
    except Unavailable as reason:
        missing(str(reason))


@pytest.mark.rows
@pytest.mark.drawn(4)
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("row", "network"), list(cases()))
def test_what_promises_to_compile_compiles(row, network, missing):
    try:
        run(row, WITNESSES[row.name], {"NETWORK": network} if network else {})
    except Unavailable as reason:
        missing(str(reason))
