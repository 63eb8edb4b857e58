"""A script at work in its framework's interpreter, and what ``inside`` tells of it."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress

from rosetta.errors import RosettaError
from rosetta.measure import inside
from rosetta.measure.scripts import Script, last_words
from rosetta.run.devices import Slot


class Process:
    """Runs a script as ``inside`` is told to; ``with`` it, nothing of it is left behind.

    todo: one of inside's functions, with its options. What goes to standard error is kept beside the script.
    """

    def __init__(self, script: Script, slot: Slot, todo: str, options: dict):
        self._log = log = script.file.with_suffix(".log")
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [str(script.python), inside.__file__, todo, str(script.file), json.dumps(options)],
                cwd=script.folder,
                env=script.environment(slot),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                preexec_fn=_keeps_to(slot.processors),
                start_new_session=True,
                text=True,
            )

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_) -> None:
        with suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def messages(self) -> Iterator[dict]:
        """What it tells until it ends, without what the script prints. Raises RosettaError if it fails."""
        for line in self._process.stdout:
            if line.startswith(inside.MARK):
                yield json.loads(line[len(inside.MARK) :])
        if self._process.wait():
            words = last_words(self._log.read_text(errors="replace"), self._process.returncode)
            raise RosettaError(f"its process failed: {words}")

    def go_on(self) -> None:
        """Let it pass where it waits."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def signal(self, number: int) -> None:
        os.killpg(self._process.pid, number)


def _keeps_to(processors: tuple[int, ...] | None) -> Callable[[], None] | None:
    """What a new process does first, to compute on these processors alone; nothing where there is no choice or it cannot choose."""
    if processors is None or not hasattr(os, "sched_setaffinity"):
        return None
    return lambda: os.sched_setaffinity(0, processors)
