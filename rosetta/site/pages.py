"""The pages: what each shows, and its template. ``Pages`` writes files and knows where a link leads."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import permutations
from math import prod
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nbformat
from jinja2 import Environment as Templates
from jinja2 import PackageLoader, StrictUndefined
from markupsafe import Markup

from rosetta import entries, records, sections
from rosetta.catalog import Catalog, Framework, Row
from rosetta.figures import Cell, Heading, Table
from rosetta.paths import checkout
from rosetta.records import Record
from rosetta.report import charts, tables
from rosetta.report.pages import MEANING, meaning
from rosetta.report.results import TaskResults
from rosetta.report.tables import Executed
from rosetta.run import environments
from rosetta.run.environments import Environment
from rosetta.sections import REFERENCE
from rosetta.site import addresses, html
from rosetta.tasks import PRESETS
from rosetta.verify import conformance

NAME = "Deep Learning Rosetta Stone"
GITHUB = re.compile(r"(?:https://|git@|ssh://git@)github\.com[:/](?P<name>[^/]+/[^/]+?)(?:\.git)?/?$")
LESSON = re.compile(r"^\| (?P<names>[^|\[*]+) \| (?P<what>.+?) \|(?: [^|]* \|)?$", re.MULTILINE)  # a row of its tables
CONSTANT = re.compile(r"^(\w+) = [^#\n]*#?(.*)$", re.MULTILINE)  # with the comment behind it
FIRST_CELL = Path(__file__).resolve().parent / "templates" / "first_cell.txt"
HOSTED = (3, 11)  # the Python from which on hosted notebooks such as Colab run an environment's pins
WIDTHS = (80, 54, 44)  # characters that two, three and four columns have room for
COLUMNS = 2  # that a comparison begins with
BITES = ("Other default", "Other meaning", "Shortest way")  # answers that a reader of another framework gets wrong
# How answers differ, as they are counted
HOW = {
    "the same or another name": ("Same", "Other name"),
    "another default or meaning": ("Other default", "Other meaning"),
    "the shortest way": ("Shortest way",),
}
# What people type for pages that have no answer of the dictionary in them
ALSO = {
    "compare": "whole programs, side by side, code",
    "concepts": "",
    "network": "definition, data, layers",
    "results": "fastest, speed, training time, benchmark, score, GPU, CPU, memory",
    "conformance": "proof, the same network, tolerance",
}
OWN = (
    ("Results", addresses.OVERVIEW, "fastest, speed, training time, benchmark, figures, GPU, CPU"),
    (
        "Results: start and memory",
        f"{addresses.OVERVIEW}#view={tables.VIEWS[1].replace(' ', '%20')}",
        "fastest start, start-up time, import time, RAM",
    ),
    (
        "Choose a framework",
        addresses.CHOICE,
        "which framework, download size, disk, lines of code, Python version, CUDA",
    ),
    ("About", addresses.ABOUT, "all pages, documentation"),
)
LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")  # of Markdown, the words of a link


def home(remote: str | None) -> str | None:
    """The address on the web of a repository that git knows as ``remote``; None for one that is only a path or a private host."""
    github = GITHUB.match(remote or "")
    return f"https://github.com/{github['name']}" if github else None


class TaskContent:
    """One task's part of the site, read once for all pages."""

    def __init__(self, catalog: Catalog, key: str, every: list[Record], folder: Path):
        """every: records; those of this task whose rows the catalog still has are taken. folder: of results, with the proofs."""
        self.key, self.task = key, catalog.task(key)
        proofs = conformance.lines(catalog, key, conformance.read(folder, key))
        self.proofs = {row.name: line for row, line in proofs}  # as they are kept
        self.rows = catalog.rows(key)  # that can run
        self.first = catalog.first(key, COLUMNS)  # names of the rows that a comparison begins with
        self.frameworks = {row.framework: catalog.frameworks[row.framework] for row in self.rows}
        self.results = TaskResults.of(catalog, key, every)
        kind, folder = self.task.kind, self.task.folder
        self.codes = {row.name: row.code for row in self.rows}  # of today's notebook, by role
        self.programs = {name: sections.notebook(folder / f"{name}.ipynb", kind) for name in self.frameworks}
        params, module = checkout.common / "params" / f"{key}.py", checkout.common / "reference" / f"{key}.py"
        self.reference = sections.reference(module, params, kind) if module.is_file() else None
        self.concepts = sections.concepts(folder)
        self.asked = entries.load(folder) if (folder / "entries.toml").is_file() else None
        notebooks = {name: program.path for name, program in self.programs.items() if self.asked}
        self.answers = {name: entries.answers(path, self.task) for name, path in notebooks.items()}
        self.statements = {name: entries.statements(found, self.asked) for name, found in self.answers.items()}
        shown, text = {*self.task.constants(), "WEIGHT_SHAPES"}, params.read_text(encoding="utf-8")
        self.constants = {name: comment.strip() for name, comment in CONSTANT.findall(text) if name in shown}

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Who has a page of words beside words: living frameworks among each other, and each with the one that all are compared with."""
        compared_to = self.asked.compared_to
        living = {key for key, one in self.frameworks.items() if not one.retired} | {compared_to}
        return [pair for pair in permutations(self.frameworks, 2) if {*pair} <= living or compared_to in pair]

    @cached_property
    def badges(self) -> dict[str, Cell]:
        """By row, how many levels of its proof it passes."""
        levels = len(conformance.PROOFS[self.task.kind_name].LEVELS)
        cells = {}
        for name, line in self.proofs.items():
            passed = sum(finding.passed for finding in line.findings)
            text = "stale" if line.stale else f"{passed} of {levels} levels"
            badge = "good" if line.passed else "bad"
            cells[name] = Cell(text, to=addresses.of_task("conformance", self.key), badge=badge)
        return cells

    @property
    def folders(self) -> tuple[str, ...]:
        """Those that hold a page of this task; one with entries has their pages in the place of the first two."""
        return addresses.OF_TASKS[2:] if self.asked else addresses.OF_TASKS

    def heading(self, folder: str) -> str:
        """What a page of this task is called where others lead to it."""
        return "Definition" if folder == "network" else folder.capitalize()

    def lacks(self, framework: str, entry: str) -> str | None:
        """Why a framework has no answer."""
        return next((row.facts.lacks[entry] for row in self.of_framework(framework) if entry in row.facts.lacks), None)

    def of_framework(self, framework: str) -> list[Row]:
        return [row for row in self.rows if row.framework == framework]


@dataclass
class Pages:
    """The site below ``out``, of the records below ``folder``.

    repository: address of its home on the web, for links to files that are no page.
    branch: of the repository, the one that the site is published from.
    address: where the site is published, with a slash at its end; None where that is not known.
    All templates have this as ``site``, and ``to`` (the addresses, from the root of the site), ``lines`` (of Python, as HTML),
    ``tables`` (of results) and ``checkout``.
    """

    out: Path
    folder: Path
    catalog: Catalog
    contents: list[TaskContent]
    repository: str | None = None
    commit: str | None = None
    branch: str | None = None
    address: str | None = None

    name = NAME
    navigation = {
        "Home": addresses.INDEX,
        "Results": addresses.OVERVIEW,
        "How we know": addresses.PROOF,
        "About": addresses.ABOUT,
    }

    @cached_property
    def frameworks(self) -> dict[str, Framework]:
        """Those that have a program, in the catalog's order."""
        named = set().union(*(content.frameworks for content in self.contents))
        return {key: framework for key, framework in self.catalog.frameworks.items() if key in named}

    @cached_property
    def asked(self) -> list[TaskContent]:
        return [content for content in self.contents if content.asked]

    @cached_property
    def programs(self) -> list[TaskContent]:
        """The tasks whose notebooks are whole programs."""
        return [content for content in self.contents if not content.asked]

    @cached_property
    def questions(self) -> dict[tuple[Path, str], str]:
        """By a task's folder and the heading in its notebooks the entry's id."""
        return {
            (content.task.folder, entry.question.replace(" ", "-")): key
            for content in self.asked
            for key, entry in content.asked.entries.items()
        }

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        return [pair for content in self.asked for pair in content.pairs]

    @cached_property
    def colab(self) -> str | None:
        """What opens a notebook of the branch."""
        github = GITHUB.match(self.repository or "") if self.branch else None
        return github and f"https://colab.research.google.com/github/{github['name']}/blob/{self.branch}/"

    @cached_property
    def _templates(self) -> Templates:
        loader = PackageLoader("rosetta.site")
        made = Templates(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        made.globals |= {"site": self, "to": addresses, "lines": html.lines, "tables": tables, "checkout": checkout}
        return made

    def save(self, href: str, text: str) -> None:
        target = self.out / href
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def write(
        self, href: str, template: str, title: str, here: str = "", content: TaskContent | None = None, **context: Any
    ) -> None:
        """Render a template to a page. href: of the page, from the root of the site; here: its entry of the navigation.

        content: of the task whose page it is; the navigation then leads to that task's other pages.
        """

        def address(target: Any) -> str | None:
            """What a table's cell leads to, or an address from the root of the site, seen from this page."""
            page = addresses.of_target(target)
            return page and addresses.relative(page, href)

        context |= {"root": "../" * href.count("/"), "title": title, "here": here, "href": href}
        context |= {"content": content, "task": content and content.task}
        context |= {"address": address, "markup": partial(self.markup, href=href)}
        self.save(href, self._templates.get_template(template).render(context))

    def write_of_task(self, folder: str, content: TaskContent, **context: Any) -> None:
        """A page that each task has one of; its folder has a template of that name."""
        heading, href = content.heading(folder), addresses.of_task(folder, content.key)
        self.write(href, f"{folder}.html", f"{heading}: {content.task.title}", heading, content, **context)

    def markup(self, text: str, folder: Path, href: str) -> Markup:
        """Markdown of a file in this folder as HTML for the page at href."""

        def resolve(file: Path, fragment: str) -> str | None:
            target = addresses.of_file(file)
            key = self.questions.get((file.parent, unquote(fragment).removeprefix("#")))
            if key:
                return addresses.relative(f"{addresses.entry(key)}#{file.stem}", href)
            if target is not None:
                return addresses.relative(target + fragment, href)
            if self.repository and file.is_relative_to(checkout.root):
                return f"{self.repository}/blob/main/{file.relative_to(checkout.root).as_posix()}{fragment}"
            return None

        return html.markdown(text, folder, resolve)


# ---- The pages of a task


def write_task(pages: Pages, content: TaskContent) -> None:
    """All but the results: what compares its programs, or its answers; what defines it: text, constants and weights; its records."""
    for program in content.programs.values():
        sections.check(program, content.concepts)
    if content.asked:
        write_pairs(pages, content)
        write_entries(pages, content)
    else:
        write_compare(pages, content)
        pages.write_of_task("concepts", content, excerpts=sections.excerpts)
    source = content.task.folder / "README.md"
    shapes = getattr(content.task.params, "WEIGHT_SHAPES", {})
    pages.write_of_task(
        "network",
        content,
        definition=source.read_text(encoding="utf-8") if source.is_file() else f"# {content.task.title}",
        weights={name: (shape, prod(shape)) for name, shape in shapes.items()},
        total=sum(map(prod, shapes.values())),
    )
    for record in content.results.records:
        pages.save(addresses.record(record), records.path(record, pages.folder).read_text(encoding="utf-8"))
        if record.notebook.executed:
            cells, today = html.printed(Executed(record).file(pages.folder)), content.codes.get(record.name, {})
            other = [role for role, source, _ in cells if source != today.get(role, source)]
            title, href = f"{record.title} on {record.machine.name}", addresses.record(record, ".html")
            pages.write(href, "executed.html", title, record=record, cells=cells, other=other)


def write_compare(pages: Pages, content: TaskContent) -> None:
    """The compare page, and what it loads of each program and executed copy."""
    page = addresses.of_task("compare", content.key)
    network = addresses.relative(addresses.of_task("network", content.key), page)
    columns = []
    for row in content.rows:
        # The lines that a run of this variant adds to the parameters, as papermill does
        assigned = _assigned(row.parameters)
        columns.append(
            {
                "name": row.name,
                "title": row.title,
                "program": row.framework,
                "code": row.name if row.program else row.framework,
                "page": addresses.relative(addresses.framework(row.framework, row.task), page),
                "injected": html.lines(f"\n# {row.title}:\n{assigned}") if assigned else [],
                "executed": _write_outputs(pages, content, row, page),
            }
        )
    if content.reference:
        column = {"name": REFERENCE, "title": "Reference in NumPy", "program": REFERENCE, "code": REFERENCE}
        columns.append(column | {"page": network, "injected": [], "executed": False})
    # A row whose cells a program changes has a file of its own
    programs = {column["code"]: content.programs.get(column["program"], content.reference) for column in columns}
    codes = {key: {section.role: section.code for section in program.sections} for key, program in programs.items()}
    codes |= {row.name: content.codes[row.name] for row in content.rows if row.program}
    settings = iter(sections.settings([code for cells in codes.values() for code in cells.values()], WIDTHS))
    for key, program in programs.items():
        steps: dict[str, dict[str, Any]] = {}
        lines: dict[str, int] = {}  # each once, with its number: most are the same at every width
        for section in program.sections:
            part = {"note": pages.markup(section.note, program.path.parent, page), "settings": []}
            for code in next(settings):
                setting = {
                    "width": sections.longest(code),
                    "code": [
                        lines.setdefault(line, len(lines)) for line in html.lines(code, content.constants, network)
                    ],
                    "concepts": {concept: sections.showing(section, concept, code) for concept in section.concepts},
                    "calls": sections.calls(code),
                }
                part["settings"].append(setting)
            steps[section.role] = part
        pages.save(f"code/{content.key}/{key}.js", _script("program", key, [*lines], steps))
    shown = content.concepts.items()
    answered = {key: addresses.relative(addresses.entry(key), page) for key, concept in shown if concept.answered}
    titles = {key: concept.title for key, concept in shown}
    known = {"rows": columns, "concepts": titles, "widths": WIDTHS, "entries": answered}
    pages.write_of_task("compare", content, known=known)


def _write_outputs(pages: Pages, content: TaskContent, row: Row, page: str) -> bool:
    """What each step of a row's executed copy printed, as a script like that of its program; whether there is a copy."""
    record, steps = _printed(pages, content, row)
    if record is None:
        return False
    about = f"{record.machine.name}, {record.preset}, {record.started:%Y-%m-%d}"
    href = addresses.relative(addresses.record(record, ".html"), page)
    script = _script("outputs", row.name, {"about": about, "page": href, "steps": steps})
    pages.save(f"outputs/{content.key}/{row.name}.js", script)
    return True


def _assigned(values: dict[str, Any]) -> str:
    return "\n".join(f"{name} = {value!r}" for name, value in values.items())


def _script(what: str, *given: str | list | dict) -> str:
    """A script that hands something to the compare page: pages opened from a disk may load nothing else."""
    values = ", ".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in given)
    return f"rosetta.{what}({values});\n"


def write_pairs(pages: Pages, content: TaskContent) -> None:
    """A page for each pair: a line of each answer beside that of the other, what bites, and whole programs."""
    for known, shown in content.pairs:
        pages.write(
            addresses.pair(known, shown),
            "pair.html",
            f"From {content.frameworks[known].title} to {content.frameworks[shown].title}",
            known=known,
            shown=shown,
            answers=content,
            biting=known if shown == content.asked.compared_to else shown,
            bites=BITES,
        )


def write_entries(pages: Pages, content: TaskContent) -> None:
    """A page for each question: the answer of every framework, or why it has none, and tasks in whose programs lines show it."""
    for key, entry in content.asked.entries.items():
        answers = [(name, content.answers[name].get(key), content.lacks(name, key)) for name in content.frameworks]
        pages.write(
            addresses.entry(key),
            "entry.html",
            entry.question,
            "",
            content,
            key=key,
            entry=entry,
            frameworks=content.frameworks,
            answers=[one for one in answers if any(one[1:])],
            open=[content.frameworks[name].title for name, *found in answers if not any(found)],
        )


# ---- Frameworks


def write_framework(pages: Pages, key: str) -> None:
    """What it is, its words, its programs with what they printed, its records, its lessons."""
    programs, rows = [], []
    for content in [*pages.asked, *pages.programs]:  # its words come first
        if own := content.of_framework(key):
            rows += own
            notebook = f"notebooks/{content.key}/{key}.ipynb"
            pages.save(notebook, standalone(own[0], pages.repository, pages.commit))
            shown = (None, {}) if content.asked else _printed(pages, content, own[0])
            programs.append((content, notebook, *shown))
    framework = pages.frameworks[key]
    pages.write(
        addresses.framework(key),
        "framework.html",
        framework.title,
        key=key,
        framework=framework,
        programs=programs,
        environments=_installed(rows),
        colab=pages.colab if python(rows[0]) >= HOSTED else None,
        comparisons=_comparisons,
        lessons=_lessons(framework.title),
    )


def _printed(pages: Pages, content: TaskContent, row: Row) -> tuple[Record | None, dict[str, dict[str, Any]]]:
    """The run whose executed copy is shown for a row; by role what each cell printed there, and whether its code is today's.

    First come copies with most of today's code, then those of real data, of a preset's own parameters and seed, of a longer preset,
    and the newest.
    """
    codes, copies = content.codes[row.name], []
    for record in content.results.records:
        if record.name == row.name and record.status == "ok" and record.notebook.executed:
            cells = {
                role: {"text": text, "same": source == codes[role]}
                for role, source, text in html.printed(Executed(record).file(pages.folder))
                if role in codes
            }
            today = sum(cell["same"] for cell in cells.values())
            usual = not record.dataset.synthetic, not record.changed, record.seed is None
            tells = today, *usual, PRESETS.index(record.preset), record.started
            copies.append((tells, record, cells))
    return max(copies, key=itemgetter(0))[1:] if copies else (None, {})


# ---- What the whole site has once: the choice of a framework, pairs, search


def write_choice(pages: Pages) -> None:
    """What speaks for a framework, each figure counted or measured here, a row a framework."""
    machine, imports = _imports(pages.contents)
    rows = [_figures(pages, key, imports.get(key)) for key in pages.frameworks]
    table = Table([*next(iter(rows), ())], [[*row.values()] for row in rows], "Frameworks")
    pages.write(addresses.CHOICE, "choice.html", "Choose a framework", of=table, machine=machine)


def _figures(pages: Pages, key: str, imported: Record | None) -> dict[Heading, Cell]:
    """The line of a framework. imported: the run whose import is shown."""
    framework = pages.frameworks[key]
    recipe = environments.load(framework.environment).recipe
    cuda = next((build.cuda for build in recipe.builds.values() if build.codes(framework.imports)), "")
    setup_s = imported and imported.metrics.setup_s
    cells = {
        Heading("framework"): Cell(framework.title, to=addresses.framework(key), framework=key),
        Heading("first release"): _count(framework.released),
        Heading("last release"): _count(framework.retired),
        Heading("Python"): Cell(recipe.python),
        Heading("download, GB", "less"): Cell(f"{recipe.download_gb:.2g}", recipe.download_gb),
        Heading("disk, GB", "less"): Cell(f"{recipe.disk_gb:.2g}", recipe.disk_gb),
        Heading("newest CUDA"): Cell(cuda),
        Heading("import, s", "less"): Cell(f"{setup_s:.1f}", setup_s, imported) if imported else Cell(""),
    }
    for content in pages.programs:
        codes = [section.code for section in content.programs[key].sections] if key in content.programs else []
        lines = sum(bool(line.strip()) for code in codes for line in code.splitlines())
        used = {name for code in codes for name, _ in entries.names(code, codes)}
        for what, number in (("lines", lines), ("API names", len(used))):
            cell = Cell(str(number), number, addresses.framework(key, content.key)) if number else Cell("")
            cells[Heading(f"{content.task.title}: {what}", "less")] = cell
    for content in pages.asked:
        given = Counter(answer.differs or "Same" for answer in content.answers.get(key, {}).values())
        for how, kinds in HOW.items():
            cells[Heading(f"answers: {how}")] = _count(sum(given[kind] for kind in kinds))
        cells[Heading("answers: none")] = _count(len(content.asked.entries) - given.total())
    rows = [(content, row.name) for content in pages.contents for row in content.of_framework(key)]
    passed = [content.badges[name].badge == "good" for content, name in rows if name in content.badges]
    return cells | {Heading("rows proven"): Cell(f"{sum(passed)} of {len(passed)}", sum(passed))}


def _count(number: int | None) -> Cell:
    return Cell("" if number is None else str(number), number)


def _imports(contents: list[TaskContent]) -> tuple[str, dict[str, Record]]:
    """The machine without a GPU that has run most frameworks, and of each its newest run there that noted the time of its setup."""
    found: dict[str, dict[str, Record]] = {}
    for content in (content for content in contents if content.task.kind.trains):
        for record in sorted(content.results.records, key=lambda one: one.started):
            if record.status == "ok" and not record.machine.gpus and record.metrics.setup_s is not None:
                found.setdefault(record.machine.name, {})[record.framework] = record
    return max(found.items(), key=lambda one: len(one[1]), default=("", {}))


def write_search(pages: Pages, texts: list[tuple[str, str]]) -> None:
    """What the search knows, as a script. texts: titles and addresses of documents and their sections."""

    def page(title: str, href: str, aliases: str = "", about: str = "", framework: str | None = None) -> dict[str, Any]:
        return {"title": title, "about": about, "aliases": aliases, "href": href, "framework": framework}

    found = [
        page(f"{one.task.title}: {one.heading(folder).lower()}", addresses.of_task(folder, one.key), ALSO[folder])
        for one in pages.contents
        for folder in one.folders
    ]
    found += [page(*some) for some in (*OWN, *texts)]
    found += [page(one.title, addresses.framework(key), framework=key) for key, one in pages.frameworks.items()]
    for one in pages.contents:
        for key, concept in one.concepts.items():
            if not concept.answered:
                href = f"{addresses.of_task('concepts', one.key)}#{key}"
                found.append(page(concept.title, href, ", ".join(concept.aliases), concept.about))
    entries = [
        {
            "id": key,
            "question": entry.question,
            "definition": entry.definition,
            "aliases": entry.aliases,
            "answers": {name: told for name in pages.frameworks if (told := _known(content, name, key))},
        }
        for content in pages.asked
        for key, entry in content.asked.entries.items()
    ]
    words: dict[str, list[str]] = {}
    for key, framework in pages.frameworks.items():
        for word in sorted(framework.words(key)):
            words.setdefault(word, []).append(key)
    (main,) = (one for one in pages.contents if one.key == pages.catalog.main)
    columns = {key: of[0].name for key in pages.frameworks if (of := main.of_framework(key))}
    content = {
        "frameworks": {key: framework.title for key, framework in pages.frameworks.items()},
        "words": words,
        "entries": entries,
        "pages": found,
        "pairs": [f"{one}-to-{other}" for one, other in pages.pairs],
        "beside": {"title": main.task.title, "href": addresses.of_task("compare", main.key), "columns": columns},
    }
    pages.save("assets/known.js", f"rosettaSearch.learn({json.dumps(content, ensure_ascii=False)});\n")


def _known(content: TaskContent, framework: str, key: str) -> dict[str, Any] | None:
    """Of an answer: the line that tells most, its API names, the text; or why there is none."""
    if framework not in content.frameworks:
        return None
    if answer := content.answers[framework].get(key):
        named = list(dict.fromkeys([*(name for name, _ in answer.uses), *entries.keywords(answer.code)]))
        line = content.statements[framework][key]
        return {"line": line, "names": named, "words": LINKED.sub(r"\1", answer.words)}
    lacks = content.lacks(framework, key)
    return lacks and {"line": "", "names": [], "words": "", "lacks": lacks}


# ---- Parts of pages


def _comparisons(content: TaskContent, framework: str) -> list[tuple[str, list[str]]]:
    """What to compare a framework with, and the columns: the reference, the first other framework, its own variants."""
    if content.asked:
        return []
    rows = content.of_framework(framework)
    first = rows[0].name
    pairs = [("with the reference", [first, REFERENCE])] if content.reference else []
    other = next((row for row in content.rows if row.framework != framework and row.variant is None), None)
    pairs += [(f"with {other.title}", [first, other.name])] if other else []
    return pairs + ([("its variants", [row.name for row in rows][:4])] if len(rows) > 1 else [])


def _installed(rows: list[Row]) -> list[tuple[Environment, str, str]]:
    """Each environment that the rows run in, with their titles and the packages that it names, with their versions."""
    installed = []
    for name in dict.fromkeys(row.environment for row in rows):
        environment = environments.load(name)
        text = (environment.folder / "requirements.in").read_text(encoding="utf-8")
        pins = (line.partition("#")[0].strip() for line in text.splitlines())
        packages = ", ".join(pin.replace("==", " ") for pin in pins if pin and not pin.startswith("-"))
        titles = dict.fromkeys(row.title for row in rows if row.environment == name)
        installed.append((environment, ", ".join(titles), packages))
    return installed


def _lessons(title: str) -> list[str]:
    """What the lessons page's tables say of a framework, as Markdown. Their first column names one or several, as in
    "Keras on JAX, MindSpore 2.10, Theano".
    """
    names = "|".join(map(re.escape, [title, *re.split(r" \(|\)", title)[:2]]))  # Lasagne (Theano) is both
    called = re.compile(rf"(?:{names})(?: on .*| \d+\.[\d.]+|)")
    return [
        f"*{match['names']}*: {match['what']}"
        for match in LESSON.finditer((checkout.docs / "lessons.md").read_text(encoding="utf-8"))
        if any(called.fullmatch(name) for name in match["names"].split(", "))
    ]


# ---- The results


def write_results(pages: Pages) -> None:
    """The overview, and a page with all figures of each task: cells sort, and lead to their records."""

    def choices(contents: list[TaskContent]) -> dict[str, Any]:
        """What a reader chooses from."""
        frameworks = {key: one.title for content in contents for key, one in content.frameworks.items()}
        titles = dict.fromkeys(row.title for content in contents for row in content.rows)
        machines = dict.fromkeys(column.title for content in contents for column in content.results.presets)
        return {"contents": contents, "frameworks": frameworks, "titles": [*titles], "machines": machines}

    overview = choices(pages.contents)
    pages.write(addresses.OVERVIEW, "results.html", "Results", "Results", meaning=MEANING, columns=[], **overview)
    for content in pages.contents:
        columns = []
        for column in content.results.columns:
            pictures = [(column.picture(one.chart), one) for one in charts.draw(content.results.rows, column)]
            for href, picture in pictures:
                pages.save(href, picture.svg)
            name = re.sub(r"[^a-z0-9]+", "-", column.title.lower()).strip("-")  # as an element's id
            columns.append((column, name, pictures))
        text = f"{MEANING}{meaning(content.task)}"
        pages.write_of_task("results", content, meaning=text, columns=columns, **choices([content]))


# ---- A notebook that runs outside a checkout: before all others it has one cell that fetches what the notebook imports


def python(row: Row) -> tuple[int, ...]:
    """The version that a row's pins want: from ``HOSTED`` on they install into the Python of a hosted notebook."""
    return tuple(map(int, environments.load(row.environment).recipe.python.split(".")[:2]))


def standalone(row: Row, repository: str | None, commit: str | None) -> str:
    """The copy as a file; without a repository to fetch from it is the notebook as it is, for a checkout."""
    if repository is None:
        return row.notebook.read_text(encoding="utf-8")
    recipe = environments.load(row.environment).recipe
    serving = [name for name, build in recipe.builds.items() if build.codes(row.imports)]
    values = {
        "REPOSITORY": repository,
        "COMMIT": commit or "HEAD",
        "FOLDER": row.notebook.parent.relative_to(checkout.root).as_posix(),
        "PINS": f"environments/{row.environment}/requirements.in",
        # The newest pins ask for a driver that a hosted machine may not have
        "PINS_ON_GPU": f"environments/{row.environment}/{serving[-1] if serving else 'requirements'}.in",
        "PYTHON": python(row),
        "EXACTLY": python(row) < HOSTED,
    }
    first = FIRST_CELL.read_text(encoding="utf-8").replace("# given\n", f"{_assigned(values)}\n").strip()
    notebook = nbformat.read(row.notebook, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(first, id="fetch"))
    return nbformat.writes(notebook) + "\n"
