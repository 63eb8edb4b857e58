"""The page of the concept table."""

from markupsafe import Markup

from rosetta.errors import RosettaError
from rosetta.site import addresses, concepts, highlight
from rosetta.site.content import TaskContent
from rosetta.site.pages import Pages
from rosetta.site.programs import Program


def write(pages: Pages, content: TaskContent) -> None:
    href, file = addresses.of_task("concepts", content.key), content.task.folder / "concepts.toml"
    for program in content.programs.values():
        strange = concepts.unknown(program, content.concepts)
        if strange:
            raise RosettaError(
                f"{program.path.name} marks concepts that {file.name} does not have: {', '.join(strange)}"
            )
    pages.write(
        href,
        "concepts.html",
        f"Concepts: {content.task.title}",
        "Concepts",
        content.task,
        frameworks=[
            {
                "key": key,
                "title": framework.title,
                "href": addresses.relative(addresses.framework(content.key, key), href),
            }
            for key, framework in content.frameworks.items()
        ],
        concepts=[
            {
                "key": key,
                "title": concept.title,
                "about": pages.markup(concept.about, file, href),
                "cells": [_cell(content, program, key, href) for program in content.programs.values()],
            }
            for key, concept in content.concepts.items()
        ],
    )


def _cell(content: TaskContent, program: Program, concept: str, href: str) -> dict:
    excerpts = concepts.excerpts(program, concept)
    name = content.of_framework(program.key)[0].name
    place = addresses.compare(content.key, [name], excerpts[0].role) if excerpts else None
    return {
        "framework": program.key,
        "title": content.frameworks[program.key].title,
        "parts": [[Markup(line) for line in highlight.lines(excerpt.code)] for excerpt in excerpts],
        "href": place and addresses.relative(place, href),
    }
