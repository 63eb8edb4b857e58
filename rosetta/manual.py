"""``docs/commands.md``: every command with its options, read from the command line itself."""

from collections.abc import Iterator
from pathlib import Path

from rosetta import blocks
from rosetta.markdown import escape, table, wrapped
from rosetta.paths import ROOT

PAGE = ROOT / "docs" / "commands.md"


def write(group) -> Path:
    """Fill the page's block. group: the command line, as click makes it. Returns the page's path."""
    return blocks.write(PAGE, {"commands": lambda: text(group)})


def text(group) -> str:
    """A section a command, Markdown."""
    return "\n\n".join(_section(name, command) for name, command in commands(group))


def commands(group, before: str = "") -> Iterator[tuple[str, object]]:
    """The commands with their names, those of groups below it too."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield before + name, command


def _section(name: str, command) -> str:
    named = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    given = [parameter.metavar or parameter.name.upper() for parameter in named]
    required = [_usage(option) for option in options if option.required]
    usage = " ".join(["python3 run_all.py", name, *given, *required])
    parts = [f"## {name}", wrapped(" ".join(command.help.split())), f"    {usage}"]
    lines = [[f"`{_usage(option)}`", escape(option.help or "")] for option in options]
    return "\n\n".join([*parts, table(["option", "what it does"], lines, figures=False)] if lines else parts)


def _usage(option) -> str:
    """The option as it is typed: ``--epochs N``."""
    values = "" if option.is_flag else " " + (option.metavar or option.type.name.upper())
    return option.opts[0] + values.replace("|", "\\|")
