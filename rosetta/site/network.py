"""The page that defines a task: its text, constants and weights."""

from math import prod

from rosetta.site import addresses
from rosetta.site.content import TaskContent
from rosetta.site.pages import Pages
from rosetta.site.programs import REFERENCE


def write(pages: Pages, content: TaskContent) -> None:
    href, params, source = (
        addresses.of_task("network", content.key),
        content.task.params,
        content.task.folder / "README.md",
    )
    definition = source.read_text(encoding="utf-8") if source.is_file() else f"# {content.task.title}"
    shapes = getattr(params, "WEIGHT_SHAPES", {})
    values = content.task.constants()
    pages.write(
        href,
        "network.html",
        f"Network: {content.task.title}",
        "Network",
        content.task,
        definition=pages.markup(definition, source, href),
        constants=[{"name": name, "value": values[name], "about": content.constants.get(name, "")} for name in values],
        weights=[{"name": name, "shape": shape, "size": prod(shape)} for name, shape in shapes.items()],
        total=sum(map(prod, shapes.values())),
        compare=content.reference and addresses.relative(addresses.compare(content.key, [REFERENCE]), href),
    )
