"""How the runner is built: it knows no framework and no task, and its modules import downwards."""

import ast
import re
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter

from rosetta import catalog
from tests.standin import ROOT

MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
    for file in sorted((ROOT / "rosetta").rglob("*.py"))
}
# From the bottom up: a module or package imports from lower lines alone
LAYERS = (
    {"errors", "paths", "figures", "streams"},
    {"files", "where", "shell"},
    {"lock"},
    {"kinds", "markdown", "terminal"},
    {"tasks"},
    {"records"},
    {"notebook"},
    {"entries"},
    {"sections"},
    {"catalog"},
    {"identity"},
    {"plan"},
    {"data"},
    {"run"},
    {"report", "announcement", "journal", "cluster"},
    {"compare", "lab", "verify"},
    {"batch", "measure", "doctor"},
    {"site"},
    {"adding"},
    {"cli"},
)


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def imported(module: str) -> set[str]:
    """The modules of the runner that a module imports, also within its functions."""
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found & set(MODULES) - {module, "rosetta"}


def part(module: str) -> str:
    """The package or the module that stands in ``LAYERS``."""
    return module.split(".")[1]


def test_every_module_has_its_layer():
    assert Counter(part(module) for module in MODULES if module != "rosetta").keys() == set().union(*LAYERS)


def test_no_import_upwards():
    height = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    upwards = [
        f"{module} imports {other}"
        for module in MODULES
        for other in imported(module)
        if part(other) != part(module) and height[part(other)] >= height[part(module)]
    ]
    assert not upwards


def test_no_module_imports_in_a_circle():
    assert len(list(TopologicalSorter({module: imported(module) for module in MODULES}).static_order())) == len(MODULES)


def code_words(module: str) -> set[str]:
    """The words of a module's names and texts; what explains them to people may give examples."""
    nodes = list(ast.walk(tree(module)))
    explained = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    texts = [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in explained
    ]
    texts += [node.id for node in nodes if isinstance(node, ast.Name)]
    texts += [node.attr for node in nodes if isinstance(node, ast.Attribute)]
    texts += [alias.name for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    texts += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {word.lower() for text in texts for word in re.findall(r"\w+", text)}


def test_runner_names_no_framework_and_no_task():
    known = catalog.load()
    names = set(known.tasks) | set(known.frameworks) | {row.environment for row in known.rows()}
    names |= {module.partition(".")[0] for row in known.rows() for module in row.imports}
    assert not {module: words for module in MODULES if (words := code_words(module) & names)}
