"""Preloaded by a Dask worker of the tests: one GPU, the fake one that FAKE_GPU names."""

import os

import pytest

from tests.fake_nvml import FakeGpu, FakeNvml

FakeNvml(pytest.MonkeyPatch(), [FakeGpu(os.environ["FAKE_GPU"])])
