"""``run_all.py weights``: published weights become canonical ones, and whoever gives others is told so in a line."""

import subprocess

import numpy as np
import pytest

from common.params.resnet50_features import WEIGHT_SHAPES
from common.weights import load_weights
from rosetta.errors import RosettaError, Unavailable
from rosetta.run import environments, scripts
from rosetta.run.kernels import Kernels

TASK = "resnet50_features"

# A file as torchvision publishes it, written by PyTorch: also the classifier, and a counter for each batch norm
WRITE = """
import sys, numpy as np, torch
tensors = {name: torch.from_numpy(array) for name, array in np.load(sys.argv[1]).items()}
for name in [name for name in tensors if name.endswith("running_var")]:
    tensors[name.replace("running_var", "num_batches_tracked")] = torch.tensor(0)
tensors["fc.weight"], tensors["fc.bias"] = torch.zeros(1000, 2048), torch.zeros(1000)
if sys.argv[3:]:
    del tensors[sys.argv[3]]
torch.save(tensors, sys.argv[2])
"""


@pytest.fixture(scope="module")
def torch_python(request, tmp_path_factory):
    environment = environments.load("torch")
    try:
        environment.provision(tmp_path_factory.mktemp("torch") / "install.log")
    except Unavailable as reason:
        (pytest.fail if request.config.getoption("--all") else pytest.skip)(str(reason))
    return environment.python


@pytest.fixture
def published(torch_python, tmp_path):
    rng = np.random.RandomState(0)
    weights = {name: rng.random_sample(shape).astype(np.float32) for name, shape in WEIGHT_SHAPES.items()}
    np.savez(tmp_path / "given.npz", **weights)

    def write(*left_out):
        file = tmp_path / "published.pth"
        subprocess.run([torch_python, "-c", WRITE, tmp_path / "given.npz", file, *left_out], check=True)
        return file

    return weights, write


@pytest.mark.rows
@pytest.mark.timeout(300)
def test_torchvisions_weights_become_canonical(published, tmp_path, capsys):
    weights, write = published
    to = tmp_path / "resnet50.npz"
    scripts.convert_weights(TASK, "torchvision", write(), to, Kernels())
    made = load_weights(to, WEIGHT_SHAPES)
    assert all(np.array_equal(made[name], array) for name, array in weights.items())
    assert capsys.readouterr().out == f"{to}: 265 tensors. A run takes them by --set INITIAL_WEIGHTS={to}\n"


@pytest.mark.rows
@pytest.mark.timeout(300)
def test_weights_of_another_network_are_refused(published, tmp_path):
    _, write = published
    file = write("layer1.0.conv1.weight")
    said = f"{file} holds other weights than ResNet-50 features: the tensor layer1.0.conv1"
    with pytest.raises(RosettaError, match=said):
        scripts.convert_weights(TASK, "torchvision", file, tmp_path / "resnet50.npz", Kernels())
    assert not (tmp_path / "resnet50.npz").exists()


@pytest.mark.parametrize(
    "source, file, to, said",
    [
        ("keras", "file.pth", "to.npz", "names no source of weights keras; there are: torchvision"),
        ("torchvision", "nowhere.pth", "to.npz", "there is no .*nowhere.pth"),
        ("torchvision", "file.pth", "to.pth", "to.pth: the file of weights must end in .npz"),
        ("torchvision", "file.pth", "nowhere/to.npz", "there is no folder .*nowhere to write it to"),
    ],
)
def test_what_is_not_there(tmp_path, source, file, to, said):
    (tmp_path / "file.pth").touch()
    with pytest.raises(RosettaError, match=said):
        scripts.convert_weights(TASK, source, tmp_path / file, tmp_path / to, Kernels())


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "is empty: download it again"),
        (b"\n<!DOCTYPE html><html>Access denied</html>", "is a page of the web"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0676\n", "is a pointer of Git LFS"),
    ],
)
def test_what_is_no_file_of_weights(tmp_path, content, said):
    file = tmp_path / "file.pth"
    file.write_bytes(content)
    with pytest.raises(RosettaError, match=said):
        scripts.convert_weights(TASK, "torchvision", file, tmp_path / "to.npz", Kernels())


MADE = """
import sys, torch
tensors = torch.load(sys.argv[1])
torch.save({made}, sys.argv[2])
"""


@pytest.mark.rows
@pytest.mark.timeout(300)
def test_checkpoints_are_opened_and_other_files_told(torch_python, published, tmp_path):
    weights, write = published
    given, file, to = write(), tmp_path / "file.pth", tmp_path / "to.npz"

    def convert(made: str) -> None:
        subprocess.run([torch_python, "-c", MADE.format(made=made), given, file], check=True)
        scripts.convert_weights(TASK, "torchvision", file, to, Kernels())

    convert("{'epoch': 3, 'state_dict': {'module.' + name: tensor for name, tensor in tensors.items()}}")
    assert load_weights(to, WEIGHT_SHAPES).keys() == weights.keys()
    for made, said in {
        "[1, 2]": "it is a list, and no dictionary of tensors",
        "{'model': {'a': 1}}": "it is a dictionary of model, and no dictionary of tensors",
        "torch.nn.Linear(2, 2)": "it is no file of tensors: a whole model holds code",
    }.items():
        with pytest.raises(RosettaError, match=said):
            convert(made)
