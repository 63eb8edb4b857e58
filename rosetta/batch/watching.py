"""What ``run_all.py watch`` does: shows a batch that another process runs, from its status on disk."""

import time
from pathlib import Path

from rich.live import Live

from rosetta.batch import journal
from rosetta.batch.screen import ROOM, table
from rosetta.terminal import Console
from rosetta.where import results_folder


def watch(name: str, out: Path | None) -> int:
    """Show a batch until it ends, or once where there is no terminal. Exit code 1 if it ended without all its runs."""
    folder, console = journal.find(results_folder(out), name), Console()
    status = journal.read_status(folder)
    try:
        if console.is_terminal:
            with Live(table(status, console.height), console=console, auto_refresh=False) as live:
                while not status.ended and journal.is_alive(folder) is not False:
                    time.sleep(journal.RENEW_S)
                    status = journal.read_status(folder)
                    live.update(table(status, console.height), refresh=True)
        else:
            console.print(table(status, len(status.lines) + ROOM))
    except KeyboardInterrupt:
        return 0
    alive = journal.is_alive(folder)
    status = journal.read_status(folder)  # afterwards: a runner that has gone since has written it to the end
    missing = len(status.lines) - status.done
    if not missing or not status.ended and alive is not False:
        return 0
    where = f" --out {out}" if out else ""
    reason = "was interrupted" if status.ended else "has lost its runner"
    text = f"batch {status.id} {reason}, {missing} runs are missing; go on with: run_all.py resume {status.id}{where}"
    console.say(text, "red")
    return 1
