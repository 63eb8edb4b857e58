"""The table of faults in docs/reliability.md: a test that injects a fault says here what it saw, and the page must say the same.

RENEW=1 writes it there: in the place of the fault's line, or as the last one. The tests of ``common`` call this on Python 3.6.
"""

import functools
import os
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reliability.md"
END = "\n\n[//]: # (end)\n"
VARIES = {  # what differs from one run to the next, and what stands for it
    r"[^\s(]*/pytest-of-[^/]+/pytest-\d+/(?:popen-gw\d+/)?[^/]+/": "",
    r" \(log: [^)]*\)": "",
    r"process \d+, since [\d:]+": "process …, since …",
    r"batch \S+:": "batch …:",
    r"127\.0\.0\.1:\d+": "127.0.0.1:…",
    r"instead of \d+:": "instead of …:",
    r"at line \d+ column \d+": "at line … column …",
    r"^run_all\.py: ": "",
}


def seen(title, how, said, kept):
    """title: the fault. how: it is injected. said: to the user, one line. kept: of the work."""
    said = said.strip()
    assert len(said.splitlines()) == 1 and "Traceback" not in said, said
    for pattern, word in VARIES.items():
        said = re.sub(pattern, word, said)
    said = said.replace("<", "&lt;").replace("|", "&#124;")
    line, start = f"| {title} | {how} | {said} | {kept} |", f"| {title} |"
    text = PAGE.read_text(encoding="utf-8")
    lines = text.split("\n")
    if line in lines:
        return
    assert os.environ.get("RENEW"), "this is not what docs/reliability.md says, RENEW=1 writes it there:\n" + line
    if any(old.startswith(start) for old in lines):
        text = "\n".join(line if old.startswith(start) else old for old in lines)
    else:
        text = text.replace(END, "\n" + line + END, 1)
    PAGE.write_text(text, encoding="utf-8")


def fault(title, how):
    """For a test that injects one fault, and returns what was said and what is kept."""

    def decorate(test):
        @functools.wraps(test)
        def seeing(*arguments, **fixtures):
            seen(title, how, *test(*arguments, **fixtures))

        return seeing

    return decorate


def titles():
    """The faults of the table."""
    table = PAGE.read_text(encoding="utf-8").partition("[//]: # (faults)\n")[2].partition(END)[0]
    return [line.split(" | ")[0][2:] for line in table.split("\n") if re.match(r"\| (?!fault )", line)]
