"""The locks of all environments and builds: whole, and still to be had."""

import re
import subprocess
from operator import attrgetter

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from uv import find_uv_bin

from rosetta.run import environments

BUILDS = [
    environments.load(name, build)
    for name in environments.names()
    for build in [None, *environments.load(name).recipe.builds]
]
FOR_GPUS = [environment for environment in BUILDS if environment.build]
TITLE = attrgetter("title")
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)(.*)$", re.MULTILINE)  # name, version, markers and hashes


def pins(environment: environments.Environment) -> list[tuple[str, str, str]]:
    """What the lock has on each of its lines."""
    text = environment.requirements[1].read_text().replace(" \\\n", " ")
    return [(canonicalize_name(name), version, rest) for name, version, rest in PIN.findall(text)]


@pytest.mark.parametrize("environment", BUILDS, ids=TITLE)
def test_lock_holds_what_is_asked_for_and_every_hash(environment):
    asked, lock = (file.read_text() for file in environment.requirements)
    assert 0 < environment.holds.download_gb < environment.holds.disk_gb
    assert all(f"{package} \\" in lock for package in environment.recipe.brought.values() if not environment.build)
    assert pins(environment) and not [word for word in ("://", "index-url", "find-links") if word in lock]
    assert not [name for name, _, rest in pins(environment) if "--hash=sha256:" not in rest]
    locked = {(name, version) for name, version, _ in pins(environment)}
    for line in asked.splitlines():
        text = line.partition("#")[0].strip()
        if text:
            requirement = Requirement(text)
            (exact,) = requirement.specifier
            assert exact.operator in ("==", "===") and (canonicalize_name(requirement.name), exact.version) in locked, (
                text
            )


@pytest.mark.rows  # it asks the package index
@pytest.mark.timeout(300)
@pytest.mark.parametrize("environment", FOR_GPUS, ids=TITLE)
def test_lock_still_resolves(environment, tmp_path, missing):
    """For the build's Python and Linux on x86-64, from files with these hashes; nothing is downloaded but their metadata."""
    python = environments.find_python(environment.python_version)
    if python is None:
        missing(f"no Python {environment.python_version}")
    asked, lock = (file.name for file in environment.requirements)
    flags = [flag.replace("{lock}", lock) for flag in environment.recipe.install_flags]
    libc = (environment.gpu_build.glibc or "2.28").replace(".", "_")
    done = subprocess.run(
        [find_uv_bin(), "pip", "install", "--dry-run", "--python", python, "--target", tmp_path, *flags]
        + ["--python-platform", f"x86_64-manylinux_{libc}", "-r", asked, "-c", lock],
        cwd=environment.folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    would = dict(re.findall(r"^ \+ (\S+?)==(\S+)$", done.stderr, re.MULTILINE))
    locked = {(name, version) for name, version, _ in pins(environment)}
    assert would and {(canonicalize_name(name), version) for name, version in would.items()} <= locked
