"""PyTorch 1: torchvision 0.11 has neither `transforms.v2` nor `weights=`; torch 1.10 has no `fp32_precision`, but `allow_tf32`."""

# %% setup
import torch
import torchvision
from PIL import Image
from torch import nn
from torchvision import transforms

from common.data import images
from common.params.resnet50_features import DEVIATION, MEAN, WEIGHT_SHAPES
from common.passes import PassLog, record_passes
from common.weights import load_weights

torch.manual_seed(SEED)
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print("PyTorch", torch.__version__, "on", device)

# %% data
preprocess = transforms.Compose([
    transforms.Resize(256),
    transforms.CenterCrop(224),
    transforms.ToTensor(),                    # (3, 224, 224), from 0 to 1
    transforms.Normalize(MEAN, DEVIATION),
])


def decode(path):
    with Image.open(path) as picture:
        return preprocess(picture.convert("RGB"))


if IMAGES:
    x = torch.stack(images.read(IMAGES, decode))
else:
    x = torch.from_numpy(images.generate(N_INPUTS))
print("images", tuple(x.shape))

# %% model
model = torchvision.models.resnet50(pretrained=PRETRAINED)
model.fc = nn.Identity()                      # features in the place of classes
model.eval().to(device, memory_format=torch.channels_last)
n_parameters = sum(p.numel() for p in model.parameters())
print(f"{n_parameters:,} parameters")
