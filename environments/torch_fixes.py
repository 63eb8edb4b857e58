#!/usr/bin/env python
"""Make torchvision importable beside another build of PyTorch than its own, for good, in the environment of the Python that runs this file.

The package index has torchvision for the CUDA build of PyTorch. Beside the CPU build its compiled operators (non-maximum
suppression and others, for detecting objects) cannot be loaded. torchvision goes on without them, but then describes two of
them to PyTorch all the same, and its import fails. From now on it describes them where they are loaded. Models and transforms
need none.

Usage:  /path/to/that/environment/bin/python torch_fixes.py

Running it again does no harm.
"""

import importlib.util
import os
from pathlib import Path

DESCRIBED = "@torch.library.register_fake("
HELPER = """
import torchvision.extension


def _described_where_loaded(name):  # written by torch_fixes.py
    return torch.library.register_fake(name) if torchvision.extension._has_ops() else lambda function: function

"""


def main() -> None:
    package = importlib.util.find_spec("torchvision")
    if package is None:
        return
    path = Path(package.origin).with_name("_meta_registrations.py")
    code = path.read_text(encoding="utf-8")
    if DESCRIBED not in code:
        return
    head, last_import, rest = code.partition("import torch.library\n")
    mended = head + last_import + HELPER + rest.replace(DESCRIBED, "@_described_where_loaded(")
    new = path.with_suffix(".new")
    new.write_text(mended, encoding="utf-8")
    os.replace(new, path)  # the old file may be linked to another environment's


if __name__ == "__main__":
    main()
