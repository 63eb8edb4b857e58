"""Parameters: which ones a notebook binds, and whether a value can stand in the place of another."""

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rosetta.errors import RosettaError, unknown

# Parameters that are no notebook's: a variable of the run's process tells them to ``common``
TOLD = {"SYNTHETIC": False, "TEST_EACH_EPOCH": False, "SAVE_TO": ""}
CELL = "parameters"  # the tag of the cell that binds them
LARGEST = 10**15  # of any number


def fits(value: Any, usual: Any) -> bool:
    """Whether a value has the type of the usual one (None: any simple type) and is in its range.

    Numbers are finite. A whole number whose usual value is 1 or more is a count, and 0 counts nothing.
    """
    if usual is None:
        return value is None or fits(value, value) and not isinstance(value, list | dict)
    if isinstance(usual, bool) or isinstance(value, bool) or not isinstance(usual, int | float):
        return type(value) is type(usual)
    if isinstance(usual, int):
        return isinstance(value, int) and min(usual, 1) <= value <= LARGEST
    return isinstance(value, int | float) and (-LARGEST if usual < 0 else 0) <= value <= LARGEST


def check(values: Mapping[str, Any], usual: Mapping[str, Any], where: str) -> None:
    """Raises RosettaError for a value whose name is not among the usual ones, or that does not fit there. where: the values stand."""
    for name, value in values.items():
        if name not in usual:
            raise unknown(f"parameter in {where}:", name, usual)
        if not fits(value, usual[name]):
            raise RosettaError(f"{where}: {name} is {usual[name]!r} by itself; it cannot be {value!r:.60}")


def bound(notebook: Path, constants: Mapping[str, Any]) -> dict[str, Any] | None:
    """The names that the parameters cell assigns or imports, each with its value (None: any, or not known).

    constants: values of what it imports. None where the notebook cannot be read: its own run tells why.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        tagged = [cell for cell in cells if CELL in cell["metadata"].get("tags", [])]
        code = ast.parse("\n".join("".join(cell["source"]) for cell in tagged))
    except (OSError, ValueError, SyntaxError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return {name: value for node in code.body for name, value in _bound(node, constants)}


def _bound(node: ast.stmt, constants: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The names that a statement binds, and their values."""
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            named = {alias.asname or alias.name: constants.get(alias.name)}
            yield from (constants if alias.name == "*" else named).items()
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            several = isinstance(target, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple | ast.List)
            pairs = zip(target.elts, node.value.elts) if several else [(target, node.value)]
            yield from ((name.id, _literal(value)) for name, value in pairs if isinstance(name, ast.Name))


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
