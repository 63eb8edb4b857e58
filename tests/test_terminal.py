"""The terminal is a guest: a batch goes on without it, and nothing that a notebook or a record says commands it."""

import fcntl
import os
import pty
import subprocess
import sys
import termios

import pytest

from rosetta.journal import Journal, Line, table
from rosetta.run.execute import Progress
from rosetta.streams import printable
from rosetta.terminal import Console
from tests.fault_table import fault, seen
from tests.standin import ROOT, one_line

# What a terminal would obey: its title, the clipboard, an erased screen, a line begun again, C1 forms of these, text turned round
EVIL = "a\x1b]0;title\x07b\x1b]52;c;eA==\x1b\\c\x1b[2J\x1b[31md\x1b[0m\re\x9b2Jf\x9d0;t\x9cg\x1bch\x08\x07i\u202ej"
WORDS = "abcd efghij"


BEGIN = "import sys, resource; from rosetta import streams, terminal; streams.keep_on(); say = terminal.Console().say\n"


def python(code: str, **more) -> subprocess.CompletedProcess:
    """A program that prints as the command line does."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | more
    return subprocess.run([sys.executable, "-c", BEGIN + code], cwd=ROOT, **options)


@pytest.mark.parametrize("ending", [">/dev/full", "| head -1", ">&- 2>&- <&-"])
def test_work_goes_on_without_a_screen(tmp_path, ending):
    work = f"for n in range(9): say('line ' * 999); print('line'); open({str(tmp_path / 'done')!r}, 'a').write('x')"
    script = ["bash", "-c", f'set -o pipefail; "$0" "$@" {ending}', sys.executable, "-c", BEGIN + work]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and (tmp_path / "done").read_text() == 9 * "x"
    kept = "all runs: the batch goes on"
    if ending == ">/dev/full":
        seen("the output is on a full disk", "`>/dev/full`", done.stderr, kept)
    else:
        assert done.stderr == ""
    if ending == "| head -1":
        title, how = "the output's reader leaves", "`head -1` behind a pipe"
        seen(title, how, "the first line, and nothing more", kept)


@fault("the terminal closes", "a pseudo-terminal that is closed in a batch: SIGHUP, and errors from then on")
def test_batch_goes_on_when_its_terminal_closes(standin):
    """As a window that is closed, or a connection that breaks."""
    master, terminal = pty.openpty()
    command = standin.command("run", "good", "--synthetic", "--preset", "smoke", "--out", str(standin.out))
    runner = subprocess.Popen(
        command,
        cwd=standin.root,
        env=standin.variables(TERM="xterm"),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(terminal)
    seen = b""
    while b"0 of 1 done" not in seen:
        seen += os.read(master, 65536)
    os.close(master)
    assert runner.wait(60) == 0 and standin.record("good")["status"] == "ok"
    return "nothing more; `run_all.py watch` shows the batch again", "all runs: the batch goes on"


def test_output_goes_on_when_the_disk_has_room_again(tmp_path):
    """A limit on the file's size stands for a disk that is full. A live table takes sys.stderr for itself: what is told there
    would go to the output that has just failed."""
    code = (
        "from rich.live import Live; console = terminal.Console(force_terminal=True)\n"
        "with Live('table', console=console, auto_refresh=False):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (4, resource.RLIM_INFINITY)); console.say('lost'); print('lost')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2); say('kept'); print('too')"
    )
    with (tmp_path / "nohup.out").open("w") as output:
        done = python(code, stdout=output)
    assert done.returncode == 0 and (tmp_path / "nohup.out").read_text().endswith("kept\ntoo\n")
    assert "File too large" in one_line(done.stderr)


def test_character_that_the_terminal_lacks_is_no_error():
    done = python("print('×'); say('×')", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stdout) == (0, "\\xd7\n" * 2)


def controls(text: str) -> set[str]:
    return {character for character in text if not character.isprintable()} - {"\n"}


def test_nothing_printed_commands_the_terminal():
    """Of errors, a carriage return stays: the progress bar of a download begins its line again."""
    assert printable("one\r\ntwo\tx\n") == "one\ntwo\tx\n"
    code = f"print({EVIL!r}); say({EVIL!r}); sys.stderr.write({EVIL!r} + '\\n')\n"
    code += "from rosetta import cli; from rosetta.errors import RosettaError\n"
    done = python(f"{code}def app(*_, **__): raise RosettaError({EVIL!r})\ncli.app = app; cli.main()", text=False)
    assert (done.returncode, done.stdout.decode()) == (2, f"{WORDS}\n" * 2)
    assert done.stderr.decode() == f"{WORDS.replace(' ', chr(13))}\nrun_all.py: {WORDS}\n"


def test_batch_shows_the_words_of_its_runs_alone(capsys, tmp_path):
    """As plain lines, and as the table of ``watch`` and of a terminal; brackets are no markup."""
    line, console = Line(row=f"[bold]{EVIL}", estimate_s=1), Console(width=200)
    (tmp_path / "batch").mkdir()
    journal = Journal(tmp_path / "batch", [line], 2, console)
    journal.begin(0, EVIL)
    journal.progress(0, Progress("running", EVIL, 1, 2, EVIL))
    console.say(f"[/x]{EVIL}")
    lines = capsys.readouterr().out
    assert f"[bold]{WORDS} on {WORDS}: {WORDS} 1/2  {WORDS}" in lines and f"[/x]{WORDS}" in lines
    line.result = journal.status.id = EVIL
    console.print(table(journal.status, 40))
    journal.close()
    printed = capsys.readouterr().out
    assert not controls(lines + printed) and "[bold]" in printed


@fault("a notebook tries to command the terminal", "control sequences in its losses, its outputs and its error")
def test_notebook_that_prints_control_sequences(standin):
    line = f"EPOCH_LINE = 'epoch 1/1  loss 1.0 {EVIL}  1.0 s'".encode("unicode_escape").decode()
    fail = f"{line}\nprint(EPOCH_LINE)\nraise RuntimeError(EPOCH_LINE)"
    standin.notebook("raises", [("parameters", "EPOCHS, N_TRAIN, N_TEST = 1, 640, 100"), ("train", fail)])
    standin.catalog(standin.entry("raises"))
    done = standin.run("raises")
    error = "failed: RuntimeError: epoch 1/1  loss 1.0 abcd (in the cell train, line 3)"
    assert done.returncode == 1 and error in done.stdout
    assert not controls(done.stdout + done.stderr) and not controls(standin.table())
    said = next(line for line in done.stdout.splitlines() if "raises: failed: " in line)
    return said, "a record (`failed`), the executed notebook and the log"
