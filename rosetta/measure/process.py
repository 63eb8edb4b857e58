"""A script at work in its framework's interpreter, and what ``inside`` tells of it."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress

from rosetta.errors import RosettaError
from rosetta.measure import inside
from rosetta.measure.scripts import Script, last_words
from rosetta.run.devices import Slot


class Process(subprocess.Popen):
    """Runs a script as ``inside`` is told to; ``with`` it, nothing of it is left behind.

    todo: one of inside's functions, with its options. What goes to standard error is kept beside the script.
    """

    def __init__(self, script: Script, slot: Slot, todo: str, options: dict):
        self._log = script.file.with_suffix(".log")
        # Where there is no choice, or a process cannot choose its processors, it computes on all of them
        confined = slot.processors is not None and hasattr(os, "sched_setaffinity")
        with self._log.open("ab") as errors:
            super().__init__(
                [str(script.python), inside.__file__, todo, str(script.file), json.dumps(options)],
                cwd=script.folder,
                env=script.environment(slot),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                preexec_fn=(lambda: os.sched_setaffinity(0, slot.processors)) if confined else None,
                start_new_session=True,
                text=True,
            )

    def __exit__(self, *reason) -> None:
        with suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        super().__exit__(*reason)

    def messages(self) -> Iterator[dict]:
        """What it tells until it ends, without what the script prints. Raises RosettaError if it fails."""
        for line in self.stdout:
            if line.startswith(inside.MARK):
                yield json.loads(line[len(inside.MARK) :], parse_constant=_refuse)
        if self.wait():
            words = last_words(self._log.read_text(errors="replace"), self.returncode)
            raise RosettaError(f"its process failed: {words}")

    def turns(self) -> Iterator[dict]:
        """What it tells, once it is asked for: then it works until it has told more, and is stopped, its threads included."""
        for message in self.messages():
            self.signal(signal.SIGSTOP)
            os.waitpid(self.pid, os.WUNTRACED)  # until every thread has stopped
            yield message
            with suppress(BrokenPipeError, ProcessLookupError):  # it was killed: then the next message tells
                self.signal(signal.SIGCONT)
                self.stdin.write("\n")  # it waits for a line
                self.stdin.flush()
        raise RosettaError("the script ended before its turns did")

    def signal(self, number: int) -> None:
        """To the process and all that it has started."""
        os.killpg(self.pid, number)


def _refuse(constant: str) -> None:
    raise RosettaError(f"it has computed {constant}, so its time means nothing")
