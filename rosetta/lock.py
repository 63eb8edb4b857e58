"""One runner at a time on a checkout and a results folder: two would spoil each other's times and mix their files."""

import hashlib
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout

from rosetta import files
from rosetta.errors import RosettaError
from rosetta.paths import checkout, portable

LOCK = ".rosetta.lock"  # in the folder that is held; it says who holds it


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
        with only_runner(what), only_writer(what, results) if results else nullcontext():
            return work()
    except KeyboardInterrupt:
        print(f"run_all.py: interrupted; {interrupted}", file=sys.stderr)
        return 130
    finally:
        for number, handler in before.items():
            # Interrupted, this process is about to end: a late second signal would give it another exit code
            signal.signal(number, signal.SIG_IGN if asked else handler)


def only_runner(what: str) -> AbstractContextManager[None]:
    """Hold the checkout while the context lasts. Raises RosettaError where another runner has it."""
    return _held(checkout.root if os.access(checkout.root, os.W_OK) else _users_folder(), what, "this checkout")


@contextmanager
def only_writer(what: str, results: Path) -> Iterator[None]:
    """Hold a results folder, which another checkout may use, too; one that stays empty is taken away again."""
    new = not results.exists()
    try:
        with _held(results, what, f"the results folder {portable(str(results))}", "; --out names another folder"):
            yield
    finally:
        if new:
            with suppress(OSError):
                results.rmdir()


@contextmanager
def _held(folder: Path, what: str, title: str, advice: str = "") -> Iterator[None]:
    """Hold a folder's lock, in which others read who has it: ``run, process 7, since 10:00``."""
    file = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = take(file)
    except Timeout:
        with suppress(OSError):
            title += f" ({files.read(file).decode('utf-8')})"
        raise RosettaError(
            f"another run_all.py is at work in {title}: wait for it, or follow it with run_all.py watch"
        ) from None
    except OSError as error:
        raise RosettaError(f"cannot lock {title}: cannot write {file.name}: {error.strerror}{advice}") from None
    try:
        if not isinstance(lock, SoftFileLock):  # whose text is filelock's
            with suppress(OSError):  # not on a full disk
                file.write_text(f"{what}, process {os.getpid()}, since {datetime.now():%H:%M}", encoding="utf-8")
        yield
    finally:
        with suppress(OSError):
            file.unlink()  # while it is held: a runner that waits for a file that is gone opens it anew
        lock.release()


def take(file: Path, wait_s: float = 0) -> FileLock:
    """The lock of a file, held until its release or this process ends.

    Raises Timeout where another process holds it, OSError where the file cannot be written or is a link.
    """
    lock = FileLock(file, timeout=wait_s, thread_local=False)
    lock.acquire()
    return lock


def is_held(file: Path) -> bool:
    """Whether a process holds the lock of a file, or may hold it: one of another user cannot be tried."""
    try:
        if file.exists():
            take(file).release()
        return False
    except OSError:  # Timeout is one
        return True


def _users_folder() -> Path:
    """This user's folder for the lock of a checkout that is read only. Raises RosettaError where there can be none."""
    from platformdirs import user_runtime_path  # here, because few need it

    try:
        with warnings.catch_warnings(action="ignore"):  # it says which of several places it takes
            folder = user_runtime_path("rosetta", ensure_exists=True)
    except OSError as error:
        raise RosettaError(f"there is no folder for the lock of this checkout, which is read only: {error}") from None
    return folder / hashlib.sha256(str(checkout.root).encode()).hexdigest()[:16]
