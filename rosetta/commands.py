"""What the small commands of the command line do."""

import sys
import time
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.table import Table

from rosetta import catalog, manual, records
from rosetta.compare import FACTOR, WORSE, compare, read, show
from rosetta.errors import RosettaError
from rosetta.extras import needs_extra
from rosetta.options import assignments, shown_folder
from rosetta.paths import RESULTS, ROOT, portable
from rosetta.report import pages, pictures, written
from rosetta.run import environments, machine
from rosetta.run.execute import commit
from rosetta.run.installer import events
from rosetta.run.kernels import Kernels
from rosetta.terminal import Console


def version() -> str:
    """Name, version and commit."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['name']} {project['version']} {commit()}".strip()


def list_rows(task: str | None, kernels: Kernels) -> None:
    """One line a row: name, environment, state here, years."""
    known, cards = catalog.load(), machine.cards()
    table = Table(box=None, pad_edge=False)
    for heading in ("row", "environment", "state here", "released", "ended"):
        table.add_column(heading, overflow="fold")
    for row in known.shown(task):
        framework = known.frameworks[row.framework]
        table.add_row(
            known.label(row) if len(known.tasks) == 1 else row.full_name,
            row.environment,
            f"cannot exist: {row.facts.absent}" if row.facts.absent else kernels.state(row, cards),
            str(framework.released),
            str(framework.retired or ""),
        )
    Console().print(table)


def make_environments(names: list[str], builds: list[str], again: bool, lock: bool) -> int:
    """Make environments unless they are ready, or anew if ``again``. Exit code 1 if one cannot be made; the others are.

    builds: ENV=NAME, where it is not the build for the CPU. lock: resolve their packages before, try their imports after.
    """
    asked = assignments("--build", builds, "ENVIRONMENT=NAME")
    if others := set(asked) - set(names):
        raise RosettaError(f"--build names {', '.join(sorted(others))}, which is not to be made: name it as ENV, too")
    bad = 0
    for environment in [environments.load(name, asked.get(name)) for name in dict.fromkeys(names)]:
        with TemporaryDirectory(prefix="rosetta-") as folder:
            try:
                log = Path(folder) / "install.log"
                if lock:
                    from rosetta.adding import locking  # here, because few need it

                    print(locking.make(environment, log, events(print), again))
                else:
                    environment.provision(log, events(print), again)
                    print(f"{environment.title}: ready")
            except RosettaError as error:
                bad += 1
                print(f"run_all.py: {error}", file=sys.stderr)
    return 1 if bad else 0


def write_report(out: Path | None, draw: bool, command_line) -> None:
    """Write the pages anew from what is on disk, and draw the pictures where asked to. command_line: as typer makes it."""
    from rosetta.measure import protocols, tables  # here, because these bring NumPy
    from rosetta.verify import page

    known, results = catalog.load(), shown_folder(out)
    files, every = [], [record for _, record in records.read_all(results)]
    if draw:
        with needs_extra("report --pictures"):
            files += pictures.draw(known, results)
            from rosetta.measure import pictures as measured

            files += measured.draw_protocols(known, every, results) + measured.draw_sweeps(known, every, results)
    files += [page.write(known, key, results) for key in known.tasks]
    files += [*tables.write(known, every, results), protocols.write(known, every, results)]
    files += pages.write(known, results)  # after those that it links to
    if results == RESULTS:
        files += [*written.write(known), manual.write(command_line)]
    for file in files:
        print(portable(str(file)))


def write_site(to: Path, out: Path | None, repository: str | None, branch: str | None) -> None:
    """Write the site of the records below ``out``."""
    with needs_extra("site"):
        from rosetta.site import build
    started = time.perf_counter()
    first = build.write(to.absolute(), shown_folder(out), repository, branch)
    print(f"{portable(str(first))}, in {time.perf_counter() - started:.1f} s")


def compare_records(before: str, after: str, factor: float | None) -> int:
    """Show what changed beyond noise between two folders or revisions; exit code 1 if something became worse."""
    factor = FACTOR if factor is None else factor
    if not factor > 1:
        raise RosettaError(f"--factor {factor:g} is no change for the worse: give a number above 1, such as 1.1")
    (first, earlier), (second, later) = read(before), read(after)
    comparison = compare(earlier, later, factor)
    if not comparison.rows and not comparison.of(WORSE):
        raise RosettaError(f"{first} and {second} have no row in common that could be compared")
    console = Console()
    console.say(f"from {first} to {second}")
    show(comparison, console)
    return 1 if comparison.of(WORSE) else 0
