"""Preloaded by a Dask worker of the tests: one GPU, the fake one that FAKE_GPU names."""

import os

import pytest

from tests.fake_nvml import GIB, FakeGpu, FakeNvml

gpu = FakeGpu(os.environ["FAKE_GPU"])
gpu.grows = GIB  # runs are at work there
FakeNvml(pytest.MonkeyPatch(), [gpu])
