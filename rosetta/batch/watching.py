"""What ``run_all.py watch`` does: shows a batch that another process runs, from its status on disk."""

import time
from pathlib import Path

from rich.live import Live

from rosetta.batch import journal
from rosetta.batch.screen import ROOM, table
from rosetta.paths import RESULTS
from rosetta.terminal import Console


def watch(name: str, out: Path | None) -> int:
    """Show a batch until it ends, or once where there is no terminal. Exit code 1 if it ended without all its runs."""
    folder, console = journal.find(out.absolute() if out else RESULTS, name), Console()
    status = journal.read_status(folder)
    try:
        if console.is_terminal:
            with Live(table(status, console.height), console=console, auto_refresh=False) as live:
                while status.alive() is not False:
                    time.sleep(journal.RENEW_S)
                    status = journal.read_status(folder)
                    live.update(table(status, console.height), refresh=True)
        else:
            console.print(table(status, len(status.lines) + ROOM))
    except KeyboardInterrupt:
        return 0
    status = journal.read_status(folder)  # the runner may have ended the batch before it was looked for
    missing = len(status.lines) - status.done
    if status.alive() is not False or not missing:
        return 0
    where = f" --out {out}" if out else ""
    reason = "was interrupted" if status.ended else "has lost its runner"
    text = f"batch {status.id} {reason}, {missing} runs are missing; go on with: run_all.py resume {status.id}{where}"
    console.say(text, "red")
    return 1
