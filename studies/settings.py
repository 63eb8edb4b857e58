"""What does an environment variable gain? Every notebook trains by turns with itself, once with the variables set.

Run ``uv run python -m studies.settings --set OMP_NUM_THREADS=1 pytorch``; ``--set NAME=`` goes without a variable, and ``--out
results`` renews the committed records, ``results/*/*/settings,*``. The answer is in docs/performance.md, *Settings*: the environments
have set every variable that helped since.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import typer

from rosetta import lock
from rosetta.measure import commands, scripts
from rosetta.measure.rows import Measuring, RowOptions
from rosetta.options import Names, OutOption, PythonOption, SyntheticOption, assignments, results_folder
from rosetta.plan import Plan
from rosetta.records import Point, Record


def main(
    variables: Annotated[list[str], typer.Option("--set", metavar="NAME=VALUE", help="May be repeated.")],
    names: Names = None,
    synthetic: SyntheticOption = False,
    python: PythonOption = None,
    out: OutOption = None,
    steps: int = 50,
    epochs: int = 6,
) -> None:
    changed = assignments("--set", variables)

    def measure() -> int:
        options = RowOptions(names, synthetic=synthetic, python=python, out=out)
        bench = Measuring(options, "this study", "turns")

        def work(planned: Plan, record: Record) -> Iterator[list[Point]]:
            code = scripts.cells(planned.row.notebook)
            with bench.scripts(planned, code, code) as (plain, other):
                other = replace(other, variables=other.variables | changed)
                programs = {"notebook": plain, "settings": other}
                yield commands.by_turns(bench, planned, record, programs, epochs)

        plans = commands.pairs_of_plans(bench, steps, epochs)
        code = bench.each("settings", commands.PAIR_HEADING, plans, work, commands.pair_line, changed)
        commands.write_tables(bench)
        return code

    raise typer.Exit(lock.alone("studies.settings", measure, results_folder(out)))


if __name__ == "__main__":
    typer.run(main)
