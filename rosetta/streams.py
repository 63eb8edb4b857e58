"""The standard streams of the command line: they may break without ending the work, and what is printed is words alone."""

import io
import os
import re
import select
import sys
from typing import TextIO

# A whole control sequence (ECMA-48): a string up to its end (titles, links), CSI (colours, the cursor), or another escape
SEQUENCE = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]"
)
# C0, C1, directions of text
CONTROLS = {*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
NO_CONTROLS = dict.fromkeys(CONTROLS - {ord("\n"), ord("\t")})  # as ``str.translate`` takes it

styled: TextIO | None = None  # standard output as it is, for a Console


def printable(text: str) -> str:
    """The text without control sequences and control characters; lines stay, and what a carriage return parts."""
    text = SEQUENCE.sub("", text.replace("\r\n", "\n"))
    return text.replace("\r", " ").translate(NO_CONTROLS)


class _Lasting(io.FileIO):
    """A file descriptor whose reader may leave, and whose disk may be full: what cannot be written is dropped.

    Each write is tried, for a full disk may have room again later. errors: where the first error is told. Not in ``sys.stderr``,
    which a live table takes for itself: it would write to the output that has just failed.
    """

    def __init__(self, descriptor: int, errors: TextIO | None = None):
        super().__init__(descriptor, "wb", closefd=False)
        self._errors = errors

    def write(self, data) -> int:
        try:
            while (written := super().write(data)) is None:  # somebody has made it non-blocking
                select.select([], [self], [])
            return written
        except OSError as error:
            errors, self._errors = self._errors, None
            if errors and not isinstance(error, BrokenPipeError):  # a reader such as head has what it wanted
                print(f"run_all.py: cannot write to standard output ({error.strerror}); the work goes on", file=errors)
            return len(data)


class _Plain(io.TextIOWrapper):
    """What is printed without a Console: words alone."""

    def write(self, text: str) -> int:
        return super().write(printable(text))


class _PlainErrors(io.TextIOWrapper):
    """The same, but for carriage returns: the progress bar of a download begins its line again."""

    def write(self, text: str) -> int:
        return super().write("\r".join(map(printable, text.split("\r"))))


def keep_on() -> None:
    """From here on no error of standard output or standard error reaches the program."""
    global styled
    for descriptor in range(3):  # else the next file that is opened would get the number of one that is closed
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    encoding = {"encoding": getattr(sys.stdout, "encoding", "utf-8"), "errors": "backslashreplace"}
    direct = encoding | {"line_buffering": True, "write_through": True}  # two texts of one buffer keep their order
    sys.stderr = _PlainErrors(io.BufferedWriter(_Lasting(2)), **direct)
    output = io.BufferedWriter(_Lasting(1, sys.stderr))
    sys.stdout, styled = _Plain(output, **direct), io.TextIOWrapper(output, **direct)
