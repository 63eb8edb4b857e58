"""What a notebook says in its text is true of its code: the lines that save and load, what is compiled, how pictures are cropped."""

import ast
import os
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from PIL import Image

from common.data import images, xrays
from rosetta.catalog import Row
from rosetta.errors import Unavailable
from rosetta.measure.rows import Measuring
from rosetta.notebook import cells
from rosetta.run import devices
from rosetta.run.devices import Workers
from rosetta.where import Where

MEASURING = Measuring(Where(gpus="none", synthetic=not os.environ.get("ROSETTA_DATA")), "this test", "turns")
# One row of each notebook. Keras 2 reads the weights that it has saved with h5py 2, as its text says: not beside Theano's h5py 3
NOTEBOOKS = list({row.notebook: row for row in reversed(MEASURING.rows) if row.name != "keras2[theano]"}.values())
# How the line begins that has the statements, or stands above them, in every notebook
SHARED = re.compile(r"^- To \[?save and load(.*)\n?((?s:.*))", re.MULTILINE)
LOADS = re.compile(r"load|restore|set_|deserialise")
SMALL = defaultdict(lambda: {"BATCHSIZE": 4}, densenet_parallel={"BATCHSIZE": 4, "BLOCKS": "1,1,1,1"})
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
        taken = import_weights.__code__.co_argcount  # models that do not change are returned anew
        if taken == 1:
            import_weights(zeros)
        elif taken == 2:
            model = import_weights(model, zeros)
        else:
            model, state = import_weights(model, state, zeros)
        if {predicts} and hasattr(globals().get("model"), "init_params"):  # MXNet's Module, whose fit takes the weights
            given = globals().get("arg_params") or params
            model.set_params(given, given, allow_extra=True)
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
COMPILED_GRAPHS = "from torch._dynamo.utils import counters\nassert counters['stats']['unique_graphs'] > 0, counters"
WITNESSES = {
    "pytorch[compiled]": COMPILED_GRAPHS,
    "pytorch[graphs]": COMPILED_GRAPHS,
    "tensorflow": JITTED.format(name="Function", count=TRACED),
    "tensorflow[xla]": JITTED.format(name="Function", count=f"{TRACED} and value._jit_compile"),
    "tinygrad": JITTED.format(name="_TinyJit", count="value.captured is not None"),
}
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


# After the cells that read a folder of pictures
CROPPED = """
import numpy as np
x = np.asarray(x)
if x.shape[-1] == 3:
    x = x.transpose(0, 3, 1, 2)
off = np.abs(x - np.load({expected!r})).mean(axis=(1, 2, 3)) * 255 * 0.226
assert off.max() < {most}, off
"""
# After the cells that read X-rays: the images of a folder, from memory and when they are asked for
XRAYED = """
import numpy as np
x = np.stack([np.asarray(read(path)) for path in x_train]) if x_train[:1].dtype.kind == "U" else x_train[:]
assert (x.dtype, type(x_train).__name__ == "Files" or x_train[:1].dtype.kind == "U") == (np.uint8, {from_disk})
np.testing.assert_array_equal(y_train, np.load({labels!r})[: len(x)])
assert len(x) > 8
off = np.abs(x.astype(int) - np.load({expected!r})[: len(x)])
assert off[np.load({whole!r})[: len(x)]].max() <= 1, off.max()  # which rounding makes
assert off.mean(axis=(1, 2)).max() < {most}, off.mean(axis=(1, 2))
"""
SIZES = (
    (999, 257),
    (427, 640),
    (500, 341),
    (257, 999),
    (225, 400),
    (300, 301),
    (224, 224),
    (1023, 777),
)  # width, height
MOST = 1.5  # of 255, in the mean of a picture: what filters and JPEG decoders differ by
SHIFTED = 7  # the least that a crop makes which begins a pixel later


def run(row: Row, after: str, parameters: dict, roles: tuple[str, ...] = ()) -> None:
    """A notebook with few steps, or its cells of these roles, and what follows, in one process. Raises RosettaError."""
    planned = MEASURING.short(row, parameters, steps=2, turns=1)
    code = {role: source for role, source in row.code.items() if role in roles or not roles}
    with workers.share() as slot, TemporaryDirectory() as folder:
        MEASURING.script(planned, code | {"after": after}, folder).run(slot, timeout_s=900)


workers = Workers(devices.shared(gpus="none", jobs=None))


def cases() -> Iterator:
    for row in COMPILED:
        networks = ["alexnet_r", "lstm"] if MEASURING.catalog.kind(row).which == "NETWORK" else [None]
        for network in networks:
            if network not in row.facts.lacking(False):
                name = " ".join(filter(None, [row.full_name, network]))
                yield pytest.param(row, network, id=name)


@pytest.mark.rows
@pytest.mark.drawn(2)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("row", NOTEBOOKS, ids=lambda row: row.full_name)
def test_what_is_saved_is_loaded(row, missing):
    every = statements(row)
    saving = every[: next(number for number, code in enumerate(every) if LOADS.search(code))]
    loading = every[len(saving) :]
    assert saving and loading
    predicts = MEASURING.catalog.kind(row).trains
    try:
        run(row, SAVED.format(saving=saving, loading=loading, predicts=predicts), SMALL[row.task])
    except Unavailable as reason:
        missing(str(reason))


@pytest.mark.rows
@pytest.mark.drawn(2)
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("row", "network"), list(cases()))
def test_what_promises_to_compile_compiles(row, network, missing):
    try:
        run(row, WITNESSES[row.name], SMALL[row.task] | ({"NETWORK": network} if network else {}))
    except Unavailable as reason:
        missing(str(reason))


@pytest.mark.rows
@pytest.mark.drawn(2)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("row", [row for row in NOTEBOOKS if row.task == "resnet50_features"], ids=lambda row: row.name)
def test_own_pictures_are_cropped_alike(row, missing, tmp_path):
    """Also those of odd sizes, where the margin is rounded to the even number, as torchvision's."""
    random, folder = np.random.RandomState(0), tmp_path / "pictures"
    folder.mkdir()
    for number, (width, height) in enumerate(SIZES):
        blocks = random.randint(0, 256, (height // 16 + 2, width // 16 + 2, 3)).astype(np.uint8)
        smooth = np.asarray(Image.fromarray(blocks).resize((width, height), Image.BICUBIC), int)
        noisy = np.clip(smooth + random.randint(-20, 21, smooth.shape), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(folder / f"{number}.jpg", quality=90)
    expected = np.stack(images.read(str(folder), images.decode))
    shifted = np.abs(np.roll(expected, 1, axis=3) - expected).mean(axis=(1, 2, 3)) * 255 * 0.226
    assert shifted.min() > SHIFTED, "the pictures tell a crop from its neighbour"
    np.save(tmp_path / "expected.npy", expected)
    after = CROPPED.format(expected=str(tmp_path / "expected.npy"), most=MOST)
    try:
        run(row, after, {"IMAGES": str(folder)}, roles=("parameters", "setup", "data"))
    except Unavailable as reason:
        missing(str(reason))


@pytest.mark.rows
@pytest.mark.drawn(2)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("feed", ["memory", "disk"])
@pytest.mark.parametrize(
    "row", [row for row in NOTEBOOKS if "XRAYS" in row.code["parameters"]], ids=lambda row: row.name
)
def test_xrays_are_read_alike(row, feed, missing, tmp_path):
    """As ChestX-ray14 is shipped: a table, and images in folders, some of which have four channels. Where the new side divides the old
    one, rounding alone makes a difference; else Pillow counts a pixel at an edge wholly, and others by its part."""
    random, lines = np.random.RandomState(0), ["Image Index,Finding Labels,Follow-up #,Patient ID"]
    for patient in range(25):
        folder = tmp_path / "xrays" / f"images_{patient % 3:03d}" / "images"
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(2):
            name = f"{patient:08d}_{number:03d}.png"
            blocks = Image.fromarray(random.randint(0, 256, (20, 20)).astype(np.uint8))
            side = 240 if patient % 2 else 256
            noisy = np.asarray(blocks.resize((side, side), Image.BICUBIC), int) + random.randint(-8, 9, (side, side))
            picture = Image.fromarray(noisy.clip(0, 255).astype(np.uint8))
            picture.convert("L" if patient % 4 else "RGBA").save(folder / name)
            lines.append(f"{name},{['No Finding', 'Edema|Mass'][(patient + number) % 2]},{number},{patient}")
    (tmp_path / "xrays" / "Data_Entry_2017.csv").write_text("\n".join(lines) + "\n")

    def read(path):
        return Image.open(path).convert("L").resize((48, 48), Image.BOX)

    files, labels, *_ = xrays.load(12, 10, folder=str(tmp_path / "xrays"), read=read, feed="disk")
    expected, whole = files[:], [Image.open(path).width % 48 == 0 for path in files.paths]
    assert 2 < sum(whole) < 10
    assert np.abs(np.roll(expected, 1, axis=2).astype(int) - expected).mean(axis=(1, 2)).min() > SHIFTED
    found = {"expected": expected, "labels": labels, "whole": whole}
    for name, array in found.items():
        np.save(tmp_path / f"{name}.npy", array)
        found[name] = str(tmp_path / f"{name}.npy")
    parameters = {"PIXELS": 48, "BATCHSIZE": 3, "XRAYS": str(tmp_path / "xrays"), "FEED": feed}
    try:
        after = XRAYED.format(**found, from_disk=feed == "disk", most=MOST)
        run(row, after, parameters, roles=("parameters", "setup", "data"))
    except Unavailable as reason:
        missing(str(reason))
