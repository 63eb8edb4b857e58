"""What the page of a task with several networks has besides: the outputs of each, and those of the frameworks' own zoos."""

from rosetta.catalog import Row
from rosetta.markdown import escape, table
from rosetta.verify.conformance import Conformance
from rosetta.verify.speed import in_zoo, output_of

LACKED = "none"
OUTPUTS = "Level 3 of each network: how far a row's outputs are from the reference's."
NONE = "A cell says *none* where the framework cannot compute the network:"
ZOO = """\
Some frameworks have a network of that name in their own zoo. A notebook takes it with `SOURCE="zoo"`. It is the same
network where it computes the reference's outputs from the same weights. The figure is the difference.
"""

Line = tuple[Row, Conformance]


def sections(lines: list[Line]) -> list[str]:
    """Nothing where no row has several networks. Rows that are stale are left out."""
    lines = [(row, line) for row, line in lines if not line.stale and _places(line)]
    zoos = [(row, line) for row, line in lines if row.facts.zoo]
    return (_outputs(lines) if lines else []) + (_zoo(zoos) if zoos else [])


def _places(line: Conformance) -> dict[str, float | None]:
    """The outputs' differences, by the network."""
    start, of = output_of(""), [finding.measured for finding in line.findings]
    return {name.removeprefix(start): value for each in of for name, value in each.items() if name.startswith(start)}


def _outputs(lines: list[Line]) -> list[str]:
    zoo = {in_zoo(name) for row, _ in lines for name in row.facts.zoo}
    names = list(dict.fromkeys(name for _, line in lines for name in _places(line) if name not in zoo))
    body = [
        [escape(row.title), *(_figure(line, name) or (LACKED if name in _lacks(row, line) else "") for name in names)]
        for row, line in lines
    ]
    lacks = [
        [escape(row.title), f"`{name}`", escape(why)] for row, line in lines for name, why in _lacks(row, line).items()
    ]
    parts = ["## Outputs of each network", OUTPUTS, table(["framework", *(f"`{name}`" for name in names)], body)]
    return parts + ([NONE, table(["framework", "has no", "reason"], lacks, figures=False)] if lacks else [])


def _lacks(row: Row, line: Conformance) -> dict[str, str]:
    """Networks without a figure because the row, or the machine of the proof, cannot compute them."""
    return {name: why for name, why in row.facts.lacking(gpu=False).items() if name not in _places(line)}


def _zoo(lines: list[Line]) -> list[str]:
    body = [
        [
            escape(row.title),
            f"`{name}`",
            f"another one: {other}" if other else _same(line, in_zoo(name)),
            _figure(line, in_zoo(name)),
        ]
        for row, line in lines
        for name, other in row.facts.zoo.items()
    ]
    heading = ["framework", "network", "the same", "difference"]
    return ["## From the frameworks' zoos", ZOO, table(heading, body, figures=False)]


def _same(line: Conformance, name: str) -> str:
    quantity = output_of(name)
    for finding in line.findings:
        if (value := finding.measured.get(quantity)) is not None:
            return "yes" if value <= finding.tolerances[quantity] else "**no**"
    return ""


def _figure(line: Conformance, name: str) -> str:
    value = _places(line).get(name)
    return "" if value is None else f"{value:.0e}"
