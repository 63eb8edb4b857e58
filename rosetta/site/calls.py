"""The calls in a piece of code, for the comparison of calls that have the same name in two frameworks."""

import ast
import builtins


def calls(code: str) -> list[tuple[str, str, int, int]]:
    """Name in lower case, arguments, first and last line (from 0) of each call; those of Python's own functions are left out.

    The name is the last part: ``nn.Conv2d(3, 50)`` is a call of ``conv2d`` with ``3, 50``. Code that is no Python has none.
    """
    try:
        nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    except SyntaxError:
        return []
    return [
        (name.lower(), _arguments(node), node.lineno - 1, (node.end_lineno or node.lineno) - 1)
        for node in nodes
        if (name := _name(node.func)) and not hasattr(builtins, name)
    ]


def _name(function: ast.expr) -> str | None:
    match function:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
    return None


def _arguments(call: ast.Call) -> str:
    return ", ".join(ast.unparse(argument) for argument in [*call.args, *call.keywords])
