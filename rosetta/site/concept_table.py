"""The page of the concept table."""

from markupsafe import Markup

from rosetta.errors import RosettaError
from rosetta.paths import ROOT
from rosetta.site import addresses, concepts, highlight
from rosetta.site.pages import Pages
from rosetta.site.programs import Program
from rosetta.site.task import Task


def write(pages: Pages, task: Task) -> None:
    href = addresses.concepts(task.key)
    for program in task.programs.values():
        strange = concepts.unknown(program, task.concepts)
        if strange:
            raise RosettaError(
                f"{program.path.name} marks concepts that concepts.toml does not have: {', '.join(strange)}"
            )
    titles = {key: framework.title for key, framework in task.frameworks.items()}
    pages.write(
        href,
        "concepts.html",
        f"Concepts: {task.title}",
        "Concepts",
        task={"title": task.title},
        frameworks=[
            {"key": key, "title": title, "href": addresses.relative(addresses.framework(task.key, key), href)}
            for key, title in titles.items()
        ],
        concepts=[
            {
                "key": key,
                "title": concept.title,
                "about": pages.markup(concept.about, ROOT / "README.md", href),
                "cells": [_concept(task, program, titles[name], key, href) for name, program in task.programs.items()],
            }
            for key, concept in task.concepts.items()
        ],
    )


def _concept(task: Task, program: Program, title: str, concept: str, href: str) -> dict:
    found = concepts.excerpts(program, concept)
    name = next(row.name for row in task.rows if row.framework == program.key)
    place = addresses.compare(task.key, [name], found[0].role) if found else None
    return {
        "framework": program.key,
        "title": title,
        "parts": [{"lines": [Markup(line) for line in highlight.lines(one.code)]} for one in found],
        "href": addresses.relative(place, href) if place else None,
    }
