"""The pages: what each shows, and its template. ``Pages`` writes files and knows where a link leads."""

import json
import re
from functools import partial
from itertools import permutations
from math import prod
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
from rosetta.tasks import PRESETS, Task
from rosetta.verify.conformance import Conformance

NAME = "Deep Learning Rosetta Stone"
NAVIGATION = {
    "Home": addresses.INDEX,
    "Results": addresses.OVERVIEW,
    "How we know": addresses.PROOF,
    "About": addresses.ABOUT,
}
GITHUB = re.compile(r"(?:https://|git@|ssh://git@)github\.com[:/](?P<name>[^/]+/[^/]+?)(?:\.git)?/?$")
LESSON = re.compile(r"^\| (?P<names>[^|\[*]+) \| (?P<what>.+?) \|(?: [^|]* \|)?$", re.MULTILINE)  # a row of its tables
CONSTANT = re.compile(r"^(\w+) = [^#\n]*#?(.*)$", re.MULTILINE)  # with the comment behind it
FIRST_CELL = Path(__file__).resolve().parent / "templates" / "first_cell.txt"
HOSTED = (3, 11)  # the Python from which on hosted notebooks such as Colab run an environment's pins
WIDTHS = (80, 54, 44)  # characters that two, three and four columns have room for
COLUMNS = 2  # that a comparison begins with
BITES = ("Other default", "Other meaning", "Shortest way")  # answers that a reader of another framework gets wrong
# How answers differ, as they are counted; the last: there is none
HOW = (
    ("the same or another name", ("Same", "Other name")),
    ("another default or meaning", ("Other default", "Other meaning")),
    ("the shortest way", ("Shortest way",)),
    ("none", ()),
)
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

    def __init__(self, catalog: Catalog, key: str, every: list[Record], badges: dict[str, Cell]):
        """every: records; those of this task whose rows the catalog still has are taken. badges: by row name, how far it is proven."""
        self.key, self.task, self.badges = key, catalog.task(key), badges
        self.rows = catalog.rows(key)  # that can run
        self.first = catalog.first(key, COLUMNS)  # names of the rows that a comparison begins with
        self.frameworks = {row.framework: catalog.frameworks[row.framework] for row in self.rows}
        self.results = TaskResults.of(catalog, key, every)
        kind, folder = self.task.kind, self.task.folder
        self.programs = {name: sections.notebook(folder / f"{name}.ipynb", kind) for name in self.frameworks}
        params, module = checkout.common / "params" / f"{key}.py", checkout.common / "reference" / f"{key}.py"
        self.reference = sections.reference(module, params, kind) if module.is_file() else None
        self.concepts = sections.concepts(folder)
        has_entries = (folder / "entries.toml").is_file()
        self.asked = entries.load(folder) if has_entries else None
        self.answers = {
            name: entries.answers(folder / f"{name}.ipynb", self.task) if has_entries else {} for name in self.programs
        }
        self.words = {
            name: entries.vocabulary(folder / f"{name}.ipynb", self.task) if has_entries else None
            for name in self.programs
        }
        shown, text = {*self.task.constants(), "WEIGHT_SHAPES"}, params.read_text(encoding="utf-8")
        self.constants = {name: comment.strip() for name, comment in CONSTANT.findall(text) if name in shown}

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


class Pages:
    """The site below ``out``, of the records below ``folder``.

    repository: address of its home on the web, for links to files that are no page.
    branch: of the repository, the one that the site is published from; ``colab`` is what opens a notebook of it, or None.
    address: where the site is published, with a slash at its end; None where that is not known.
    All templates have ``site``, ``to`` (the addresses, from the root of the site), ``lines`` (of Python, as HTML) and
    ``tables`` (of results).
    """

    def __init__(
        self,
        out: Path,
        folder: Path,
        repository: str | None,
        commit: str | None,
        branch: str | None = None,
        address: str | None = None,
    ):
        self.out, self.folder, self.repository, self.commit = out, folder, repository, commit
        self.questions: dict[
            tuple[Path, str], str
        ] = {}  # by a task's folder and the heading in its notebooks the entry's id
        github = GITHUB.match(repository or "") if branch else None
        self.colab = github and f"https://colab.research.google.com/github/{github['name']}/blob/{branch}/"
        self._templates = Templates(
            loader=PackageLoader("rosetta.site"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        site = {
            "name": NAME,
            "navigation": NAVIGATION,
            "repository": repository,
            "commit": commit,
            "address": address,
            "root": checkout.root,
        }
        self._templates.globals |= {"site": site, "to": addresses, "lines": html.lines, "tables": tables}

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


def write_compare(pages: Pages, content: TaskContent, tasks: list[Task]) -> None:
    """The compare page, and what it loads of each program and executed copy. tasks: all that have such a page."""
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
                "page": addresses.relative(addresses.framework(row.framework, row.task), page),
                "injected": html.lines(f"\n# {row.title}:\n{assigned}") if assigned else [],
                "executed": _write_outputs(pages, content, row, page),
            }
        )
    if content.reference:
        column = {"name": REFERENCE, "title": "Reference in NumPy", "program": REFERENCE}
        columns.append(column | {"page": network, "injected": [], "executed": False})
    programs = list(filter(None, [*content.programs.values(), content.reference]))
    codes = [section.code for program in programs for section in program.sections]
    settings = iter(sections.settings(codes, WIDTHS))
    for program in programs:
        steps: dict[str, list[dict]] = {}
        for section in program.sections:
            marked = {
                concept: [number for number, shown in enumerate(sections.shown(section, concept)) if shown]
                for concept in section.concepts
            }
            part = {"note": pages.markup(section.note, program.path.parent, page), "settings": []}
            for code in next(settings):
                setting = {
                    "width": sections.longest(code),
                    "code": html.lines(code, content.constants, network),
                    "concepts": {
                        concept: sections.follow(section.code, code, lines) for concept, lines in marked.items()
                    },
                    "calls": sections.calls(code),
                }
                part["settings"].append(setting)
            steps.setdefault(section.role, []).append(part)
        pages.save(f"code/{content.key}/{program.key}.js", _script("program", program.key, steps))
    shown = content.concepts.items()
    known = {"rows": columns, "concepts": {key: concept.title for key, concept in shown}}
    known["widths"] = WIDTHS
    known["entries"] = {key: addresses.relative(addresses.entry(key), page) for key, concept in shown if concept.entry}
    pages.write_of_task("compare", content, known=known, tasks=tasks)


def _write_outputs(pages: Pages, content: TaskContent, row: Row, page: str) -> bool:
    """What each step of a row's executed copy printed, as a script like that of its program; whether there is a copy."""
    record = most_telling([record for record in content.results.records if record.name == row.name])
    if record is None:
        return False
    about = f"{record.machine.name}, {record.preset}, {record.started:%Y-%m-%d}"
    href = addresses.relative(addresses.record(record, ".html"), page)
    steps = _printed(pages, content, row.framework, record)
    script = _script("outputs", row.name, {"about": about, "page": href, "steps": steps})
    pages.save(f"outputs/{content.key}/{row.name}.js", script)
    return True


def _assigned(values: dict[str, Any]) -> str:
    return "\n".join(f"{name} = {value!r}" for name, value in values.items())


def _script(what: str, key: str, content: dict) -> str:
    """A script that hands something to the compare page: pages opened from a disk may load nothing else."""
    return f"rosetta.{what}({json.dumps(key)}, {json.dumps(content, ensure_ascii=False, separators=(',', ':'))});\n"


def write_definition(pages: Pages, content: TaskContent) -> None:
    """The concept table, and the page that defines a task: its text, constants and weights."""
    for program in content.programs.values():
        sections.check(program, content.concepts)
    if "concepts" in content.folders:
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


def write_entries(
    pages: Pages,
    content: TaskContent,
    proofs: dict[str, Conformance],
    others: list[TaskContent],
    chosen: list[tuple[str, str]],
) -> None:
    """A page for each question: the answer of every framework, or why it has none. proofs: by row name.

    others: the tasks in whose programs lines may show it. chosen: the pairs of frameworks that have a page.
    """
    for key, entry in content.asked.entries.items():
        answers = []
        for name, framework in content.frameworks.items():
            rows = content.of_framework(name)
            lacks = content.lacks(name, key)
            checked = [proofs[row.name] for row in rows if row.name in proofs and proofs[row.name].passed]
            answers.append((name, framework, content.answers[name].get(key), lacks, checked))
        pages.write(
            addresses.entry(key),
            "entry.html",
            entry.question,
            "",
            content,
            key=key,
            entry=entry,
            frameworks=content.frameworks,
            pairs=chosen,
            answers=[one for one in answers if one[2] or one[3]],
            programs=[other for other in others if key in other.concepts],
            open=[framework.title for _, framework, answer, lacks, _ in answers if not (answer or lacks)],
        )


def write_record(pages: Pages, record: Record) -> None:
    """The record as it is, and a page of the executed notebook's code and what it printed."""
    pages.save(addresses.record(record), records.path(record, pages.folder).read_text(encoding="utf-8"))
    if record.notebook.executed:
        cells = html.printed(Executed(record).file(pages.folder))
        title = f"{record.title} on {record.machine.name}"
        pages.write(addresses.record(record, ".html"), "executed.html", title, record=record, cells=cells)


# ---- Frameworks


def write_framework(pages: Pages, key: str, contents: list[TaskContent]) -> None:
    """What it is, its words, what bites, its programs with what they printed, its records. contents: the tasks that it has."""
    framework, rows = contents[0].frameworks[key], [row for content in contents for row in content.of_framework(key)]
    programs = []
    for content in contents:
        notebook = f"notebooks/{content.key}/{key}.ipynb"
        pages.save(notebook, standalone(content.of_framework(key)[0], pages.repository, pages.commit))
        record = most_telling([one for one in content.results.records if one.framework == key])
        programs.append((content, notebook, record, _printed(pages, content, key, record)))
    pages.write(
        addresses.framework(key),
        "framework.html",
        framework.title,
        key=key,
        framework=framework,
        programs=programs,
        environments=_installed(rows),
        colab=pages.colab and python(rows[0]) >= HOSTED and pages.colab,
        comparisons={content.key: _comparisons(content, content.of_framework(key)) for content in contents},
        lessons=_lessons(framework.title),
        lessons_folder=checkout.docs,
    )


def _printed(pages: Pages, content: TaskContent, key: str, record: Record | None) -> dict[str, list[dict]]:
    """By role what each cell of a program printed in the executed copy of this record, and whether its code is today's."""
    if record is None or content.asked:
        return {}
    codes = {section.role: section.code for section in content.programs[key].sections}
    return {
        tag: [{"text": text, "same": source == codes[tag]}]
        for tag, source, text in html.printed(Executed(record).file(pages.folder))
        if tag in codes
    }


# ---- What the whole site has once: the choice of a framework, pairs, search


def write_choice(pages: Pages, contents: list[TaskContent], frameworks: dict[str, Framework]) -> None:
    """What speaks for a framework, each figure counted or measured here, a row a framework."""
    machine, imports = _imports([content for content in contents if content.task.kind.trains])
    programs = [content for content in contents if not content.asked]
    asked = [content for content in contents if content.asked]
    headings = [Heading("framework"), Heading("first release"), Heading("last release"), Heading("Python")]
    headings += [Heading(f"{what}, GB", "less") for what in ("download", "disk")] + [Heading("newest CUDA")]
    headings += [Heading("import, s", "less")]
    headings += [
        Heading(f"{content.task.title}: {what}", "less") for content in programs for what in ("lines", "API names")
    ]
    headings += [Heading(f"answers: {how}") for _ in asked for how, _ in HOW] + [Heading("rows proven")]
    rows = []
    for key, framework in frameworks.items():
        environment = environments.load(framework.environment)
        recipe, record = environment.recipe, imports.get(key)
        cuda = next((build.cuda for build in recipe.builds.values() if build.codes(framework.imports)), "")
        cells = [Cell(framework.title, to=addresses.framework(key), framework=key)]
        cells += [_count(framework.released), _count(framework.retired), Cell(recipe.python)]
        cells += [Cell(f"{size:.2g}", size) for size in (recipe.download_gb, recipe.disk_gb)] + [Cell(cuda)]
        cells += [Cell(f"{record.metrics.setup_s:.1f}", record.metrics.setup_s, record) if record else Cell("")]
        for content in programs:
            program = content.programs.get(key)
            codes = [section.code for section in program.sections] if program else []
            lines = sum(bool(line.strip()) for code in codes for line in code.splitlines())
            used = {name for code in codes for name, _ in entries.names(code, codes)}
            to = addresses.framework(key, content.key)
            cells += [Cell(str(number or ""), number or None, to if number else None) for number in (lines, len(used))]
        for content in asked:
            given = [answer.differs or "Same" for answer in content.answers.get(key, {}).values()]
            counted = [sum(one in hows for one in given) for _, hows in HOW[:-1]]
            cells += [*map(_count, counted), _count(len(content.asked.entries) - len(given))]
        badges = [
            badge
            for content in contents
            for row in content.of_framework(key)
            if (badge := content.badges.get(row.name))
        ]
        proven = sum(badge.badge == "good" for badge in badges)
        cells.append(Cell(f"{proven} of {len(badges)}", proven))
        rows.append(cells)
    pages.write(
        addresses.CHOICE, "choice.html", "Choose a framework", of=Table(headings, rows, "Frameworks"), machine=machine
    )


def _count(number: int | None) -> Cell:
    return Cell("" if number is None else str(number), number)


def _imports(contents: list[TaskContent]) -> tuple[str, dict[str, Record]]:
    """The machine without a GPU that has run most frameworks, and of each its newest run there that noted the time of its setup."""
    found: dict[str, dict[str, Record]] = {}
    for content in contents:
        for record in sorted(content.results.records, key=lambda one: one.started):
            if record.status == "ok" and not record.machine.gpus and record.metrics.setup_s is not None:
                found.setdefault(record.machine.name, {})[record.framework] = record
    return max(found.items(), key=lambda one: len(one[1]), default=("", {}))


def pairs(frameworks: dict[str, Framework], compared_to: str | None) -> list[tuple[str, str]]:
    """Who has a page of words beside words: living frameworks among each other, and each with the one that all are compared with."""
    living = {key for key, framework in frameworks.items() if not framework.retired} | {compared_to}
    return [
        (one, other)
        for one, other in permutations(frameworks, 2)
        if {one, other} <= living or compared_to in (one, other)
    ]


def write_pairs(pages: Pages, content: TaskContent, others: list[TaskContent], chosen: list[tuple[str, str]]) -> None:
    """A page for each pair: a line of each answer beside that of the other, and what bites. others: tasks with whole programs."""
    asked = content.asked.entries
    for known, shown in chosen:
        rows = [
            (key, entry.question, [_beside(content, framework, key) for framework in (known, shown)])
            for key, entry in asked.items()
        ]
        bites = [
            (framework, key, entry.question, answer.words)
            for key, entry in asked.items()
            for framework in (known if shown == content.asked.compared_to else shown,)
            if (answer := content.answers[framework].get(key)) and answer.differs in BITES
        ]
        one, other = content.frameworks[known], content.frameworks[shown]
        pages.write(
            addresses.pair(known, shown),
            "pair.html",
            f"From {one.title} to {other.title}",
            known=known,
            shown=shown,
            one=one,
            other=other,
            frameworks=content.frameworks,
            groups=[(group, [row for row in rows if asked[row[0]].group == group]) for group in content.asked.groups],
            bites=bites,
            compared_to=content.asked.compared_to,
            programs=[one for one in others if {known, shown} <= one.frameworks.keys()],
            folder=content.task.folder,
        )


def _beside(content: TaskContent, framework: str, key: str) -> tuple[str, str]:
    """The line that tells most of an answer, and how it differs where that bites."""
    answer = content.answers[framework].get(key)
    if answer is None:
        return "", "no answer"
    return content.words[framework].statements[key], answer.differs.lower() if answer.differs in BITES else ""


def write_search(
    pages: Pages,
    contents: list[TaskContent],
    frameworks: dict[str, Framework],
    texts: list[tuple[str, str]],
    chosen: list[tuple[str, str]],
    main: str,
) -> None:
    """What the search knows, as a script. texts: titles and addresses of documents and their sections. chosen: the pairs that have
    a page. main: the task whose programs stand side by side for any two frameworks.
    """
    entries = [
        {
            "id": key,
            "question": entry.question,
            "definition": entry.definition,
            "aliases": entry.aliases,
            "answers": {name: found for name in frameworks if (found := _known(content, name, key))},
        }
        for content in contents
        if content.asked
        for key, entry in content.asked.entries.items()
    ]
    words: dict[str, list[str]] = {}
    for key, framework in frameworks.items():
        for word in framework.words(key):
            words.setdefault(word, []).append(key)
    about = [
        (f"{one.task.title}: {one.heading(folder).lower()}", addresses.of_task(folder, one.key), None, ALSO[folder])
        for one in contents
        for folder in one.folders
    ]
    about += [(title, href, None, words) for title, href, words in OWN]
    about += [(title, href, None, "") for title, href in texts]
    about += [(framework.title, addresses.framework(key), key, "") for key, framework in frameworks.items()]
    found = [
        {"title": title, "about": "", "aliases": words, "href": href, "framework": key}
        for title, href, key, words in about
    ]
    found += [
        {
            "title": concept.title,
            "about": concept.about,
            "aliases": ", ".join(concept.aliases),
            "href": f"{addresses.of_task('concepts', one.key)}#{key}",
            "framework": None,
        }
        for one in contents
        for key, concept in one.concepts.items()
        if not concept.entry
    ]
    titles = {key: framework.title for key, framework in frameworks.items()}
    pairs = [f"{one}-to-{other}" for one, other in chosen]
    (programs,) = (one for one in contents if one.key == main)
    columns = {key: of[0].name for key in frameworks if (of := programs.of_framework(key))}
    beside = {"title": programs.task.title, "href": addresses.of_task("compare", main), "columns": columns}
    content = {
        "frameworks": titles,
        "words": words,
        "entries": entries,
        "pages": found,
        "pairs": pairs,
        "beside": beside,
    }
    pages.save("assets/known.js", f"rosettaSearch.learn({json.dumps(content, ensure_ascii=False)});\n")


def _known(content: TaskContent, framework: str, key: str) -> dict[str, Any] | None:
    """Of an answer: the line that tells most, its API names, the text; or why there is none."""
    if framework not in content.frameworks:
        return None
    answer, words = content.answers[framework].get(key), content.words[framework]
    if answer:
        named = list(dict.fromkeys([*words.names[key], *entries.keywords(answer.code)]))
        return {"line": words.statements[key], "names": named, "words": LINKED.sub(r"\1", answer.words)}
    lacks = content.lacks(framework, key)
    return lacks and {"line": "", "names": [], "words": "", "lacks": lacks}


# ---- Parts of pages


def most_telling(runs: list[Record]) -> Record | None:
    """Of the runs that left an executed notebook the longest on real data, and of those the newest."""
    return max(
        (record for record in runs if record.status == "ok" and record.notebook.executed),
        key=lambda record: (not record.dataset.synthetic, PRESETS.index(record.preset), record.started),
        default=None,
    )


def _comparisons(content: TaskContent, rows: list[Row]) -> list[tuple[str, list[str]]]:
    """What to compare a framework with, and the columns: the reference, the first other framework, its own variants."""
    if "compare" not in content.folders:
        return []
    first = rows[0].name
    pairs = [("with the reference", [first, REFERENCE])] if content.reference else []
    other = next((row for row in content.rows if row.framework != rows[0].framework and row.variant is None), None)
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


def write_results(pages: Pages, contents: list[TaskContent]) -> None:
    """The overview, and a page with all figures of each task: cells sort, and lead to their records."""
    overview = {"meaning": MEANING, "columns": [], **_of_rows(contents)}
    pages.write(addresses.OVERVIEW, "results.html", "Results", "Results", **overview)
    for content in contents:
        columns = []
        for column in content.results.columns:
            pictures = [(column.picture(one.chart), one) for one in charts.draw(content.results.rows, column)]
            for href, picture in pictures:
                pages.save(href, picture.svg)
            name = re.sub(r"[^a-z0-9]+", "-", column.title.lower()).strip("-")  # as an element's id
            columns.append((column, name, pictures))
        text = f"{MEANING}{meaning(content.task)}"
        pages.write_of_task("results", content, meaning=text, columns=columns, **_of_rows([content]))


def _of_rows(contents: list[TaskContent]) -> dict[str, Any]:
    """What both sorts of page show: main tables, frameworks to choose from, a title of a row as an example of a search."""
    frameworks = {key: one.title for content in contents for key, one in content.frameworks.items()}
    titles = list(dict.fromkeys(row.title for content in contents for row in content.rows))
    machines = list(dict.fromkeys(column.title for content in contents for column in content.results.presets))
    return {
        "contents": contents,
        "frameworks": frameworks,
        "example": titles[-1] if titles else "",
        "titles": titles,
        "machines": machines,
    }


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
