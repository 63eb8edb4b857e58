"""Images for networks that were trained on ImageNet: generated ones, and those of a folder of one's own."""

import os

import numpy as np

from common.data import loaded
from common.data.errors import DataError
from common.params.resnet50_features import DEVIATION, MEAN

ENDINGS = (".jpeg", ".jpg", ".png")  # what the readers of all frameworks read
OTHERS = (".avif", ".bmp", ".gif", ".heic", ".jfif", ".jpe", ".jxl", ".ppm", ".tif", ".tiff", ".webp")
STARTS = {  # how files of other formats begin, which often lie under a name that ends with .jpg
    b"GIF8": "GIF",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"RIFF": "WebP",
    b"<": "HTML or XML",
    b"version https://git-lfs": "a pointer of Git LFS",
    b"\0\x05\x16\x07": "what macOS keeps beside a file (AppleDouble)",
}
SIZE = 224  # pixels a side of what networks see
MARK = "SYNTHETIC.txt"  # beside pictures that were made of synthetic data
RESIZED = 256  # pixels of a picture's shorter side before the middle is cut out
OCTAVES = (4, 7, 14, 28, 56, 224)  # pixels a side of the noise that an image is made of, from coarse to fine


def generate(n, seed=0):
    """n images (n, 3, 224, 224), float32, C-contiguous, normalised by ImageNet's mean and deviation; the same everywhere.

    Like photographs they change slowly in most places: each is a sum of noise, the coarser the stronger.
    """
    rng = np.random.RandomState(seed)
    x = np.empty((n, 3, SIZE, SIZE), np.float32)
    for image in x:
        image[:] = _picture(rng)
    _normalise(x)
    loaded.remember("generated images", True, images=n)
    return x


def decode(path):
    """A picture as (3, 224, 224) float32, resized, cropped and normalised as torchvision's weights want it; needs Pillow.

    For frameworks that have no such functions of their own. Raises what Pillow raises for a file that is no picture.
    """
    from PIL import Image  # here, because generated images need no Pillow

    with Image.open(path) as picture:
        picture = picture.convert("RGB")
        shorter = min(picture.size)
        picture = picture.resize([RESIZED * side // shorter for side in picture.size], Image.BILINEAR)
        left, top = (int(round((side - SIZE) / 2.0)) for side in picture.size)
        pixels = np.asarray(picture.crop((left, top, left + SIZE, top + SIZE)), np.float32)
    return _normalise(np.ascontiguousarray(pixels.transpose(2, 0, 1)) / np.float32(255))


def _normalise(x):
    """In place: values from 0 to 1, (..., 3, height, width)."""
    x -= np.array(MEAN, np.float32)[:, None, None]
    x /= np.array(DEVIATION, np.float32)[:, None, None]
    return x


def _picture(rng):
    """Red, green and blue from 0 to 1, (3, 224, 224)."""
    total = np.zeros((3, SIZE, SIZE), np.float32)
    for pixels in OCTAVES:
        noise = rng.random_sample((3, pixels, pixels)).astype(np.float32) - np.float32(0.5)
        between = _BETWEEN[pixels]
        total += np.matmul(np.matmul(between, noise), between.T) / np.float32(np.sqrt(pixels))
    return np.clip(total * np.float32(1.5) + np.float32(0.45), 0, 1)


def _interpolation(pixels):
    """The matrix (224, pixels) that draws lines between the values of a row."""
    places = (np.arange(SIZE) + 0.5) * pixels / SIZE - 0.5
    return np.maximum(0, 1 - np.abs(np.clip(places, 0, pixels - 1)[:, None] - np.arange(pixels))).astype(np.float32)


_BETWEEN = {pixels: _interpolation(pixels) for pixels in OCTAVES}


def read(folder, decode):
    """What ``decode(path)`` makes of each picture of a folder, a list in the order of their names.

    A file that cannot be decoded, or that frameworks would decode to different pixels, is left out: a line says its name and the
    reason. Raises DataError where no picture is left.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name.lower().endswith(ENDINGS + OTHERS))
    except OSError as error:
        raise DataError("IMAGES: cannot read the folder %s: %s" % (folder, error.strerror)) from None
    pictures, left_out = [], 0
    for name in names:
        path = os.path.join(folder, name)
        reason = fault(path)
        try:
            if reason is None:
                pictures.append(decode(path))
        except ImportError as error:
            raise DataError("IMAGES: pictures need a package that is not in this environment: %s" % error) from None
        except Exception as error:  # decoders raise what they like; the last line of a trace is its reason
            reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        if reason is not None:
            left_out += 1
            print("left out %s: %s" % (shown(name), reason))
    if not pictures:
        raise DataError("IMAGES: the folder %s holds no picture that can be read (%d left out)" % (folder, left_out))
    loaded.remember("pictures", is_synthetic(folder), images=len(pictures), left_out=left_out)
    return pictures


def fault(path):
    """Why a file is no picture that every framework decodes to the same pixels; None where it is one. The file is not decoded.

    Those are JPEG and PNG files with at most 8 bits a channel: decoders cut 16 bits in different ways.
    """
    try:
        os.fsdecode(path).encode("utf-8")
    except UnicodeEncodeError:
        return "its name is not in UTF-8: rename it"
    if not path.lower().endswith(ENDINGS):
        return "the name of a picture ends with %s here: convert it" % ", ".join(ENDINGS)
    try:
        if not os.path.isfile(path):
            return "it is no file, or a link to none"
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        return error.strerror
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        if len(data) < 33 or b"IEND" not in data[-64:]:
            return "it ends too early"
        bits = bytearray(data)[24]
        return "it has %d bits a channel: convert it to 8" % bits if bits > 8 else None
    if data.startswith(b"\xff\xd8\xff"):  # neither of these two marks can stand among the pixels of a scan
        return None if data.rfind(b"\xff\xd9") > data.rfind(b"\xff\xda") > 0 else "it ends too early"
    if not data:
        return "it is empty"
    start = data.lstrip()[:64]
    other = next((name for beginning, name in STARTS.items() if start.startswith(beginning)), "something else")
    return "it is no JPEG and no PNG, but %s" % other


def shown(name):
    """A name as it can be printed: one that is no UTF-8 has its bytes as ``\\xe9``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def is_synthetic(folder):
    """Whether the pictures of a folder say that they were made of synthetic data."""
    return os.path.isfile(os.path.join(folder, MARK))
