"""What does an environment variable gain? Every notebook trains by turns with itself, once with the variables set.

Run ``uv run python -m studies.settings --set OMP_NUM_THREADS=1 pytorch``; ``--set NAME=`` goes without a variable, and ``--out
results`` renews the committed records, ``results/*/*/settings,*``. The answer is in docs/performance.md, *Settings*: the environments
have set every variable that helped since.
"""

import sys
from dataclasses import replace

import click

from rosetta import lock
from rosetta.cli import count, where
from rosetta.measure import commands
from rosetta.measure.rows import Measuring
from rosetta.plan import Plan
from rosetta.run.scripts import Script
from rosetta.where import Where, assignments


@click.command()
@where("names synthetic python out")
@click.option("--set", "variables", multiple=True, required=True, metavar="NAME=VALUE", help="May be repeated.")
@count("--steps", "Of an epoch.", default=50)
@count("--epochs", "The first is not counted.", default=6, least=2)
def main(where: Where, variables: tuple[str, ...], steps: int, epochs: int) -> None:
    changed = assignments("--set", variables)

    def measure() -> int:
        bench = Measuring(where, "this study", "turns")

        def both(planned: Plan, folder: str) -> list[Script]:
            code = planned.row.code
            plain, other = (bench.script(planned, code, folder, name) for name in ("plain", "other"))
            return [plain, replace(other, variables=other.variables | changed)]

        return commands.against(bench, "settings", bench.compared(steps, epochs), epochs, both, changed)

    sys.exit(lock.alone("studies.settings", measure, where.results))


if __name__ == "__main__":
    main()
