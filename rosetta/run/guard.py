"""Commands that do not outlive the runner, also where it is killed: installers, and interpreters that are asked something.

``python -m rosetta.run.guard FOLDER COMMAND...`` stands between the two: its standard input is a pipe from the runner.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rosetta.paths import ROOT
from rosetta.run.processes import COOKIE, end_all, end_with_the_runner, kill_tree

NOT_STARTED = 127  # exit code, as a shell's


@contextmanager
def guarded(
    command: list[str], folder: Path, variables: Mapping[str, str], cookie: str, **options
) -> Iterator[subprocess.Popen]:
    """A command at work in a folder, with nothing on its standard input; the context's end kills it and all that it started.

    cookie: marks all of its processes. options: of ``Popen``, such as where its output goes. The exit code is the
    command's, 128 and the signal that ended it, or ``NOT_STARTED`` with a reason on standard error.
    """
    reading, writing = os.pipe()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "rosetta.run.guard", str(folder), *command],
            cwd=ROOT,
            env={**variables, COOKIE: cookie},
            stdin=reading,
            start_new_session=True,  # a terminal's Ctrl-C is for the runner, which ends this
            **options,
        ) as process:
            try:
                yield process
            finally:
                kill_tree(process.pid, cookie)
    finally:
        os.close(reading)
        os.close(writing)


def main(folder: str, *command: str) -> int:
    end_with_the_runner()
    try:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return NOT_STARTED
    code = process.wait()
    end_all()  # what it has left would hold its output open
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
