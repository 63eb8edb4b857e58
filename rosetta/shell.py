"""The variables of the user's shell: what libraries lack among them, and what must not reach a notebook."""

import getpass
import os
import sys
import tomllib
from collections.abc import Iterable
from fnmatch import fnmatchcase

from rosetta.paths import CACHE, DATA, SYNTHETIC, checkout

PATHS = (DATA, CACHE)
# A notebook is one process, whichever launcher has started the runner; and its Python is as it was installed
LAUNCHERS = [
    "GROUP_RANK",
    "JSM_*",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "LSB_*",
    "MASTER_ADDR",
    "MASTER_PORT",
    "MV2_*",
    "NODE_RANK",
    "OMPI_*",
    "PALS_*",
    "PMI*",
    "RANK",
    "SLURM_*",
    "TORCHELASTIC_*",
    "WORLD_SIZE",
]
PYTHON = ["PYTHONOPTIMIZE", "PYTHONSAFEPATH"]


def settle() -> None:
    """Make of the variables what all processes of a command can share; tell on standard error what is left out as the catalog asks."""
    _complete_user()
    for name in PATHS:  # kernels run in folders of their own
        if os.environ.get(name, "") not in ("", SYNTHETIC):
            os.environ[name] = os.path.abspath(os.path.expanduser(os.environ[name]))
    if not os.environ.get("COLUMNS", "1").strip("0").isdecimal():
        del os.environ["COLUMNS"]
    _remove(["MPLBACKEND", *LAUNCHERS, *PYTHON])
    try:
        left_out = tomllib.loads(checkout.catalog.read_text(encoding="utf-8"))["left_out"]
    except (OSError, ValueError, LookupError):  # the commands that need a catalog tell
        return
    if removed := _remove(left_out["variables"], left_out["but_for"]):
        print(
            f"run_all.py: no notebook gets {', '.join(removed)} of your shell, because it may compute otherwise then; "
            "a row's own variables stand in its task.toml",
            file=sys.stderr,
        )


def _remove(patterns: Iterable[str], but_for: Iterable[str] = ()) -> list[str]:
    def fits(name: str, patterns: Iterable[str]) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    removed = [name for name in sorted(os.environ) if fits(name, patterns) and not fits(name, but_for)]
    for name in removed:
        del os.environ[name]
    return removed


def _complete_user() -> None:
    """Add the variables HOME and LOGNAME where neither they nor the system tell: libraries ask for both.

    The home folder is ``/`` then, as container runtimes have it.
    """
    if not os.path.isabs(os.path.expanduser("~")):
        os.environ["HOME"] = "/"
    try:
        getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        os.environ["LOGNAME"] = str(os.getuid())
