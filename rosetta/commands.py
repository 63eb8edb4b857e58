"""What the small commands of the command line do."""

import sys
import time
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

from rosetta import catalog, records
from rosetta.compare import changes, sources
from rosetta.compare.comparison import FACTOR, WORSE, compare
from rosetta.errors import RosettaError
from rosetta.extras import needs_extra
from rosetta.figures import Cell, Heading, Table
from rosetta.options import assignments, shown_folder
from rosetta.paths import RESULTS, ROOT, portable
from rosetta.report import pages
from rosetta.run import environments, machine
from rosetta.run.environments import events
from rosetta.run.execute import commit
from rosetta.run.kernels import Kernels
from rosetta.terminal import Console


def version() -> str:
    """Name, version and commit."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['name']} {project['version']} {commit()}".strip()


def list_rows(task: str | None, kernels: Kernels) -> None:
    """One line a row: name, environment, state here, years."""
    known, cards = catalog.load(), machine.cards()
    rows = []
    for row in known.shown(task):
        framework = known.frameworks[row.framework]
        name = known.label(row) if len(known.tasks) == 1 else row.full_name
        state = f"cannot exist: {row.facts.absent}" if row.facts.absent else kernels.state(row, cards)
        years = str(framework.released), str(framework.retired or "")
        rows.append([*map(Cell, (name, row.environment, state, *years))])
    headings = [*map(Heading, ("row", "environment", "state here", "released", "ended"))]
    Console().table(Table(headings, rows))


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
    from rosetta.measure.benchmarks import page as repeated  # here, because these bring NumPy
    from rosetta.measure.benchmarks import scaling
    from rosetta.measure.tables import Tables
    from rosetta.verify import conformance

    known, results = catalog.load(), shown_folder(out)
    files, every = [], [record for _, record in records.read_all(results)]
    if draw:
        with needs_extra("report --pictures"):
            from rosetta.measure import plot
            from rosetta.measure.benchmarks import pictures as curves
            from rosetta.report import charts

            files += (
                charts.write(known, results) + curves.draw(known, every, results) + plot.write(known, every, results)
            )
    files += [conformance.write_page(known, key, results) for key in known.tasks]
    files += [*Tables(known, every, results).write(), repeated.write(known, every, results)]
    files.append(scaling.write(known, every, results))
    files += pages.write(known, results)  # after those that it links to
    if results == RESULTS:
        files += pages.write_blocks(known, command_line)
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
    first, second = sources.read(before), sources.read(after)
    comparison = compare(first.records, second.records, factor)
    if not comparison.rows and not comparison.of(WORSE):
        raise RosettaError(f"{first.title} and {second.title} have no row in common that could be compared")
    console = Console()
    console.say(f"from {first.title} to {second.title}")
    changes.show(comparison, console)
    return 1 if comparison.of(WORSE) else 0
