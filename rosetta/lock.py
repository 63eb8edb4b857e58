"""One runner at a time on a checkout: two would spoil each other's times and mix their files."""

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from rosetta.errors import RosettaError
from rosetta.paths import ROOT


def alone(what: str, work: Callable[[], int], interrupted: str = "what is finished is kept") -> int:
    """The exit code of work that no other runner may disturb. Ctrl-C ends it with a line, and exit code 130.

    A terminal that closes (SIGHUP) ends nothing. SIGTERM, as schedulers send it, ends it as orderly. Only the first signal counts: ``uv run`` passes SIGTERM on, so
    ``timeout`` and Slurm deliver it twice, and the second must not break what stops the runs.
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
        with only_runner(what):
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
    folder = ROOT if os.access(ROOT, os.W_OK) else Path(tempfile.gettempdir())
    owner, lock = folder / ".rosetta.owner", FileLock(folder / ".rosetta.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        told = f" ({owner.read_text(encoding='utf-8')})" if owner.is_file() else ""
        raise RosettaError(
            f"another run_all.py is at work in this checkout{told}: wait for it, or follow it with run_all.py watch"
        ) from None
    try:
        with suppress(OSError):  # a full disk does not keep anybody from working
            owner.write_text(f"{what}, process {os.getpid()}, since {datetime.now():%H:%M}")
        yield
    finally:
        lock.release()
