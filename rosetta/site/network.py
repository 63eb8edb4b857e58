"""The page that defines a task's network: layers, constants, weights."""

import importlib
from math import prod

from rosetta.paths import ROOT
from rosetta.site import addresses
from rosetta.site.pages import Pages
from rosetta.site.programs import REFERENCE
from rosetta.site.task import Task


def write(pages: Pages, task: Task) -> None:
    href = addresses.network(task.key)
    params = importlib.import_module(f"common.params.{task.params}")
    shapes = params.WEIGHT_SHAPES
    source = ROOT / "docs" / f"{task.key}.md"
    constants = [
        {"name": name, "value": getattr(params, name), "about": about}
        for name, about in task.constants.items()
        if isinstance(getattr(params, name), int | float)
    ]
    pages.write(
        href,
        "network.html",
        f"Network: {task.title}",
        "Network",
        definition=pages.markup(source.read_text(encoding="utf-8"), source, href),
        constants=constants,
        weights=[{"name": name, "shape": shape, "size": prod(shape)} for name, shape in shapes.items()],
        total=sum(map(prod, shapes.values())),
        compare=addresses.relative(addresses.compare(task.key, [REFERENCE]), href),
    )
