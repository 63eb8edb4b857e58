"""One runner at a time on a checkout and a results folder: two would spoil each other's times and mix their files."""

import errno
import hashlib
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TextIO

from filelock import FileLock, Timeout

from rosetta.errors import RosettaError
from rosetta.paths import ROOT, portable

LOCK, OWNER = ".rosetta.lock", ".rosetta.owner"  # in the folder that is held
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # of a cluster's file system, say
NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def alone(
    what: str, work: Callable[[], int], results: Path | None = None, interrupted: str = "what is finished is kept"
) -> int:
    """The exit code of work that no other runner may disturb. Ctrl-C ends it with a line, and exit code 130.

    results: the folder that the work writes to, if any. SIGTERM, as schedulers send it, ends the work as Ctrl-C does; a
    terminal that closes (SIGHUP) does not. Only the first signal counts: ``uv run`` passes SIGTERM on, so ``timeout`` and
    Slurm deliver it twice, and the second must not break what stops the runs.
    """
    asked = False

    def stop(*_) -> None:
        nonlocal asked
        if not asked:
            asked = True
            raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with only_runner(what), only_writer(what, results):
            return work()
    except KeyboardInterrupt:
        print(f"run_all.py: interrupted; {interrupted}", file=sys.stderr)
        return 130
    finally:
        for number, handler in before.items():
            # Interrupted, this process is about to end: a late second signal would give it another exit code
            signal.signal(number, signal.SIG_IGN if asked else handler)


@contextmanager
def only_runner(what: str) -> Iterator[None]:
    """Hold the checkout while the context lasts. Raises RosettaError where another runner has it."""
    folder = ROOT if os.access(ROOT, os.W_OK) else _own_folder()
    with _held(folder, what, "this checkout"):
        yield


@contextmanager
def only_writer(what: str, results: Path | None) -> Iterator[None]:
    """Hold a results folder, which another checkout may use, too; one that stays empty is taken away again."""
    if results is None:
        yield
        return
    new = not results.exists()
    try:
        title = f"the results folder {portable(str(results))}"
        with _held(results, what, title, "; --out names another folder"):
            yield
    finally:
        if new:
            with suppress(OSError):
                results.rmdir()


@contextmanager
def _held(folder: Path, what: str, title: str, advice: str = "") -> Iterator[None]:
    owner, file = folder / OWNER, folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = take(file)
    except Timeout:
        told = ""
        with suppress(OSError), _open(owner, os.O_RDONLY) as about:
            told = f" ({about.read()})"
        raise RosettaError(
            f"another run_all.py is at work in {title}{told}: wait for it, or follow it with run_all.py watch"
        ) from None
    except OSError as error:
        raise RosettaError(f"cannot lock {title}: cannot write {file.name}: {error.strerror}{advice}") from None
    try:
        with suppress(OSError), _open(owner, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as about:  # not on a full disk
            about.write(f"{what}, process {os.getpid()}, since {datetime.now():%H:%M}")
        yield
    finally:
        for left in (owner, file):  # while it is held: a runner that waits for a file that is gone opens it anew
            with suppress(OSError):
                left.unlink()
        lock.release()


def take(file: Path, wait_s: float = 0) -> FileLock:
    """The lock of a file, held until its release or this process ends; not held where the file system knows no locks.

    Raises Timeout where another process holds it, OSError where the file cannot be written.
    """
    lock = FileLock(file, timeout=wait_s, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except OSError as error:
        if error.errno not in NO_LOCKS or isinstance(error, Timeout):
            raise
    return lock


def is_held(file: Path) -> bool | None:
    """Whether a process holds the lock of a file; None where that cannot be told."""
    if not file.exists():
        return False
    try:
        lock = take(file)
    except Timeout:
        return True
    except OSError:
        return None
    held = False if lock.is_locked else None
    lock.release()
    return held


def _open(file: Path, flags: int) -> TextIO:
    """A file for this user alone, which is no link: others may be able to write to its folder."""
    return os.fdopen(os.open(file, flags | NO_LINK, 0o600), "w" if flags & os.O_WRONLY else "r", encoding="utf-8")


def _own_folder() -> Path:
    """This user's folder for locks of a checkout that is read only. Raises RosettaError where there can be none."""
    from platformdirs import user_runtime_path  # here, because few need it

    try:
        with warnings.catch_warnings(action="ignore"):  # it tells which of several places it takes
            folder = user_runtime_path("rosetta", ensure_exists=True)
    except OSError as error:
        raise RosettaError(f"there is no folder for the lock of this checkout, which is read only: {error}") from None
    return folder / hashlib.sha256(str(ROOT).encode()).hexdigest()[:16]
