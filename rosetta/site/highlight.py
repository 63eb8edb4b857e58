"""Source code as HTML, line by line, in which the task's constants lead to their definition."""

import html
import re
from collections.abc import Collection

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

PLAIN_NAME = re.compile(r'<span class="n">(\w+)</span>')
_lexer, _formatter = PythonLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True)


def lines(code: str, constants: Collection[str] = (), definition: str = "") -> list[Markup]:
    """Each line of Python as HTML. constants: names that link to ``definition#name``."""

    def linked(match: re.Match) -> str:
        name = match[1]
        if name not in constants:
            return match[0]
        return f'<a class="n" href="{html.escape(definition)}#{name}">{name}</a>'

    marked = highlight(code, _lexer, _formatter).removesuffix("\n")
    return [Markup(PLAIN_NAME.sub(linked, line)) for line in marked.split("\n")]
