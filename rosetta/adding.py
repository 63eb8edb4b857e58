"""Adding a framework: ``new`` writes its files, ``env --lock`` makes its environment, ``check`` explains the first mistake of a row."""

import json
import keyword
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import tomlkit
from packaging import tags
from packaging.markers import default_environment
from packaging.pylock import Pylock
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from threadpoolctl import threadpool_limits
from uv import find_uv_bin

from rosetta import data, entries, files, notebook, plan, records, sections
from rosetta.batch import save
from rosetta.catalog import Catalog, Frameworks, Row
from rosetta.catalog import load as load_catalog
from rosetta.errors import RosettaError, unknown
from rosetta.figures import clock
from rosetta.journal import STYLES
from rosetta.kinds import KINDS
from rosetta.paths import checkout, from_root
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.run import devices, environments, machine, processes
from rosetta.run.environments import Environment, Tell, events, uv_error
from rosetta.run.execute import Progress, execute
from rosetta.run.kernels import chosen
from rosetta.run.processes import FOREIGN_VARIABLES
from rosetta.tasks import UNTIMED, Cost, Task
from rosetta.terminal import Console
from rosetta.verify import conformance
from rosetta.verify.command import Setting, log_of
from rosetta.verify.conformance import PROOFS
from rosetta.where import Where, assignments

# ---- new: a framework in its three places, as copies to be rewritten

HOMEPAGE, RELEASED = "https://example.org", 0  # to be rewritten: ``check`` refuses them
ENTRY = """
[frameworks.{name}]
title = "{name}"
environment = "{environment}"
imports = {imports}
released = {released}                                    # the year of its first release
homepage = "{homepage}"                # its documentation
"""
PACKAGES = """\
# {name}. run_all.py env {environment} --lock writes the versions.
{name}
numpy
ipykernel
"""
RECIPE = """\
python = "{python}"

[without_gpu]
{name} = "no build for a GPU has been tried yet"
"""
LIKEWISE = (
    ". If it brings packages that environments/{other} has, ask for the same versions: uv stores their files once. "
    "Copy what [variables] of that environment sets for them."
)
SHARED = """, in the place of `{name}`, and in the files of its builds for GPUs. The mark `# for {name}` keeps the proofs of the other rows."""
TITLE = re.compile(r"^# [^:\n]*", re.MULTILINE)
EXAMPLES = Path("tests", "toy_tasks")  # a small task of each kind, as its files lie in a checkout
DATA = "common/data/{}.py"  # one loader for all of them
FILES = {  # of a task, and what is left to do in each
    "common/params/{}.py": "the constants that all notebooks share; WEIGHT_SHAPES and EXPECTED of the network.",
    "common/reference/{}.py": "the network in NumPy, in float64: the definition that notebooks are held against.",
    "notebooks/{}/README.md": "what the task is: data, network, constants.",
    "notebooks/{}/task.toml": "title, presets, and what each step is in words that are true of every framework.",
    "notebooks/{}/entries.toml": "the questions: each with its definition, what proves it, and what people type for it.",
    DATA: "the loader: `load(n_train, n_test)` returns arrays, and generated ones where `loaded.is_synthetic()`; `locate` returns "
    "the folder of the real data, or says how to get them. Level 3 of the proof asks for 1,510 test examples.",
}


def new(name: str, task: str | None, like: str | None, environment: str | None, kind: str | None) -> int:
    """Write notebook, environment and catalog entry, and tell what is left to do. Nothing is overwritten.

    A framework that the catalog has gets a notebook in another task. like: the row whose notebook is copied. environment:
    a folder that is there is shared. kind: of a new task, whose files are written as well; the notebook is then the example's.
    Raises RosettaError before anything is written.
    """
    catalog = load_catalog()
    if kind and kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    if kind and (like or not task):
        raise RosettaError("--kind is of a new task: name it with --task, and leave out --like")
    _check_name("framework", name, "my_framework")
    if kind:
        _check_name("task", task, "mnist_mlp")
    model = _model(catalog, catalog.main if kind else task, like)
    key = task if kind else model.task
    target = checkout.notebooks / key / f"{name}.ipynb"
    for taken, there in [*((task, checkout.root / path.format(task)) for path in FILES if kind), (name, target)]:
        if there.exists():
            raise RosettaError(f"the name {taken} is taken: there is {from_root(there)}")
    texts: dict[Path, str] = {}  # the files to be written
    written, steps, answered = [], [], []
    if kind:
        for path, left in FILES.items():
            toy = checkout.root / EXAMPLES / path.format("toy" if path == DATA else f"toy_{kind}")
            if toy.is_file():
                texts[checkout.root / path.format(task)] = _renamed(files.text(toy), task, kind, name)
                written.append(f"{path.format(task)}: the example of kind {kind}")
                steps.append(f"{path.format(task)}: {left}")
        folder = checkout.root / EXAMPLES / "notebooks" / f"toy_{kind}"
        code = _renamed(files.text(folder / "numpy.py"), task, kind, name)
        copy, like_title, copied = example(code, folder, task, kind, name), "the example", "the example of its kind"
    else:
        notebook.cut(model.notebook, catalog.kind(model))  # a notebook that breaks the contract is not copied
        copy, like_title = json.loads(files.text(model.notebook)), model.title
        copied = f"a copy of {model.notebook.name}"
        title = copy["cells"][0]
        title["source"] = TITLE.sub(f"# {name}", "".join(title["source"]), count=1).splitlines(keepends=True)
        if answered := list(entries.answers(model.notebook, catalog.task(key)))[1:]:
            tags = [set(cell["metadata"].get("tags", [])) for cell in copy["cells"]]
            out = {place for number, of in enumerate(tags) if of & set(answered) for place in (number - 1, number)}
            copy["cells"] = [cell for number, cell in enumerate(copy["cells"]) if number not in out]
            copied += f" with its first answer; the other {len(answered)} are open"
    if name not in catalog.frameworks:
        places, of_places, left = _places(catalog, name, environment or name, model)
        texts, written, steps = texts | places, written + of_places, steps + left
    elif environment:
        raise RosettaError(f"catalog.toml has [frameworks.{name}], which says its environment: leave the option out")
    texts[target] = json.dumps(copy, indent=1, ensure_ascii=False) + "\n"  # last: there is no notebook without an entry
    for file, text in texts.items():
        files.write_atomically(file, text)
    steps += [
        f"{from_root(target)}: rewrite each cell and the text above it. Keep the headings and the tags. The concepts in a "
        f"cell's metadata name lines of {like_title}: name your own."
        + (" Each open question gets a cell below its heading: check tells which are open." if answered else ""),
        f"python3 run_all.py check {key}/{name}: this explains the first mistake, until there is none.",
        f"python3 run_all.py verify {key}/{name} --out results: this keeps the proof.",
        "python3 run_all.py report: this renews the generated pages. Then commit all of it.",
    ]
    for line in (*written, f"{from_root(target)}: {copied}", "What is left to do:"):
        print(line)
    for number, step in enumerate(steps, start=1):
        print(f"  {number}. {step}")
    return 0


def _check_name(what: str, name: str, like: str) -> None:
    if not (name.isascii() and name.isidentifier() and name.islower()) or keyword.iskeyword(name):
        raise RosettaError(f"{name} cannot be a {what}'s name: use small letters, digits and _, as in {like}")


def _renamed(text: str, task: str, kind: str, framework: str) -> str:
    """A file of the example, with the names of the new task in it."""
    text = re.sub(r"\btoy\b", task, text.replace(f"toy_{kind}", task))
    return re.sub(r"^numpy = ", f"{framework} = ", text, flags=re.MULTILINE)


def example(code: str, folder: Path, task: str, kind: str, framework: str) -> dict[str, Any]:
    """A notebook of this code, plain NumPy with a line ``# %% TAG`` above each cell. folder: of the example."""
    say = f"- Say what is particular to {framework} here."
    texts = {role.name: f"## {role.heading}\n\n{say}" for role in KINDS[kind].roles}
    if (folder / "entries.toml").is_file():
        texts |= entries.texts(folder, f"Say what is particular to {framework} here. [API]({HOMEPAGE})")
    cells = [("markdown", f"# {framework}: {task}\n\nSay what the framework is, and link its documentation.", {})]
    for tag, source in re.findall(r"# %% ([\w-]+)\n(.*?)(?=\n# %% |\Z)", code, re.DOTALL):
        cells += [("markdown", texts[tag], {}), ("code", source.strip(), {"tags": [tag]})]
    more = {"markdown": {}, "code": {"execution_count": None, "outputs": []}}
    made = [
        {"cell_type": of, "id": f"cell-{number}", "metadata": metadata, "source": source.splitlines(keepends=True)}
        | more[of]
        for number, (of, source, metadata) in enumerate(cells)
    ]
    return {"cells": made, "metadata": notebook.METADATA, "nbformat": 4, "nbformat_minor": 5}


def _model(catalog: Catalog, task: str | None, like: str | None) -> Row:
    """The row whose notebook is copied: ``like``, or the first of the task."""
    rows = catalog.select([like] if like else [], task)
    tasks = list(dict.fromkeys(row.task for row in rows))
    if len(tasks) > 1:
        raise RosettaError(f"there are the tasks {', '.join(tasks)}: say with --task to which one to add it")
    if not rows:
        raise RosettaError(
            f"task {task or catalog.main} has no row yet that could be copied: write its first notebook by hand"
        )
    return rows[0] if like else catalog.select(catalog.first(tasks[0], 1), tasks[0])[0]


def _places(catalog: Catalog, name: str, environment: str, model: Row) -> tuple[dict[Path, str], list[str], list[str]]:
    """The texts of the environment and the entry; what is written there, and what is left to do."""
    folder = checkout.environments / environment
    if not re.fullmatch(r"[a-z][\w-]*", environment):
        raise RosettaError(f"--environment {environment} is no name of a folder below environments/")
    shared = environment in environments.names()
    if folder.exists() and not shared:
        raise RosettaError(f"{from_root(folder)} is there, but it has no environment.toml: delete it, or name another")
    imports, builds, texts = [name], [], {}
    if shared:
        recipe = environments.load(environment).recipe
        rows, builds = [row for row in catalog.rows() if row.environment == environment], list(recipe.builds)
        # The module whose builds for GPUs these rows have in common
        imports += [module for row in rows for module in row.imports if recipe.covers_gpus((module,))][:1]
        for build in (None, *builds):
            asked, _ = environments.load(environment, build).requirements
            there = files.text(asked)
            if canonicalize_name(name) not in map(environments.name_of, there.splitlines()):
                texts[asked] = f"{there.rstrip()}\n{name}  # for {name}\n".lstrip()
    else:
        python = environments.load(model.environment).recipe.python
        texts[folder / "requirements.in"] = PACKAGES.format(name=name, environment=environment)
        texts[folder / "requirements.txt"] = f"# Not locked yet: run_all.py env {environment} --lock\n"
        texts[folder / "environment.toml"] = RECIPE.format(python=python, name=name)
    entry = ENTRY.format(
        name=name, environment=environment, imports=json.dumps(imports), released=RELEASED, homepage=HOMEPAGE
    )
    texts[checkout.catalog] = f"{files.text(checkout.catalog).rstrip()}\n{entry}"
    files.parse(Frameworks, texts[checkout.catalog], checkout.catalog.name)
    written = [
        f"{from_root(folder)}/: {'shared with the rows that it has' if shared else 'new'}",
        f"catalog.toml: the entry [frameworks.{name}]",
    ]
    return (
        texts,
        written,
        [
            f"environments/{environment}/requirements.in: name the package of {name} there"
            + (SHARED.format(name=name) if shared else LIKEWISE.format(other=model.environment)),
            f"catalog.toml: in [frameworks.{name}] write title, released and homepage, and the modules that it imports.",
            f"python3 run_all.py env {environment} --lock: this resolves, installs and imports the packages, and says which proofs "
            "are due then.",
            *(
                f"python3 run_all.py env {environment} --lock --build {environment}={build}: the same for GPUs."
                for build in builds
            ),
        ],
    )


# ---- env: environments, and with --lock their packages

GLIBC = "2.28"  # that a build for GPUs may ask for, unless it says more
IMPORT_S = 600


def make_environments(names: Sequence[str], builds: Sequence[str], again: bool, locked: bool) -> int:
    """Make environments unless they are ready, or anew if ``again``. Exit code 1 if one cannot be made; the others are.

    builds: ENVIRONMENT=NAME, where it is not the build for the CPU. locked: resolve packages first, try imports afterwards.
    """
    build_of = assignments("--build", builds, "ENVIRONMENT=NAME")
    if others := set(build_of) - set(names):
        raise RosettaError(f"--build names {', '.join(sorted(others))}, which is not to be made: name it as ENV, too")
    failed = False
    for environment in [environments.load(name, build_of.get(name)) for name in dict.fromkeys(names)]:
        with tempfile.TemporaryDirectory(prefix="rosetta-") as folder:
            log = Path(folder) / "install.log"
            try:
                if locked:
                    print(_lock_and_try(environment, log, events(print), again))
                else:
                    environment.provision(log, events(print), again)
                    print(f"{environment.title}: ready")
            except RosettaError as error:
                failed = True
                print(f"run_all.py: {error}", file=sys.stderr)
    return 1 if failed else 0


def _lock_and_try(environment: Environment, log: Path, tell: Tell, again: bool) -> str:
    """Lock and make an environment and import what its frameworks import; what came of it, in one line.

    Its sizes are written into ``environment.toml`` where that has none. Raises RosettaError where a step fails.
    """
    due = _due(environment.name)
    download_gb = lock(environment, tell)
    environment = environments.load(environment.name, environment.build)  # as it is written now
    environment.provision(log, tell, again)
    imports = _imports(environment.name)
    for modules, variables in imports:
        named = ", ".join(modules)
        tell(f"importing {named}")
        variables = environment.variables(modules, locked=True) | {"PYTHONNOUSERSITE": "1"} | variables
        done = processes.ask(environment.python, f"import {named}", IMPORT_S, variables)
        if done is None:
            raise RosettaError(f"{environment.title}: import {named} did not end within {IMPORT_S} s")
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise RosettaError(
                f"{environment.title} is made, but import {named} fails: {last[:300]}; "
                "mend requirements.in, or imports in catalog.toml"
            )
    on_disk = sum(file.lstat().st_blocks * 512 for file in environment.venv.rglob("*") if not file.is_dir())
    sizes = {"disk_gb": float(f"{on_disk / 1e9:.2g}"), "download_gb": download_gb}
    file, where = environment.folder / "environment.toml", "measured"
    recipe = tomlkit.parse(files.text(file))
    if environment.build is None and not sizes.keys() & recipe.keys():
        recipe.update(sizes)
        files.write_atomically(file, tomlkit.dumps(recipe))
        where = f"written into {from_root(file)}"
    names = dict.fromkeys(module for modules, _ in imports for module in modules)
    told = ", ".join(f"{name} = {value:g}" for name, value in sizes.items())
    line = f"{environment.title}: ready; imports {', '.join(names) or 'nothing yet'}; {told} ({where})"
    if now := {name: seconds for name, seconds in _due(environment.name).items() if name not in due}:
        line += f"\n{len(now)} proofs are due now, about {clock(sum(now.values()))}: run_all.py verify {' '.join(map(shlex.quote, now))} --out results"
    else:
        line += "\nno proof has become due by it"
    return line


def _due(environment: str) -> dict[str, float]:
    """The rows of an environment whose committed proof is of something else than today's, and the seconds that it took."""
    catalog = load_catalog()
    return {
        row.full_name: line.seconds
        for task in catalog.tasks
        for row, line in conformance.lines(catalog, task, conformance.read(checkout.results, task))
        if row.environment == environment and line.stale
    }


def lock(environment: Environment, tell: Tell) -> float:
    """Write the lock of an environment, and the versions that it chose where none is asked for; 10^9 bytes to download.

    What the earlier lock has stays as it is while it still fits.
    """
    asked, locked = environment.requirements
    tell(f"locking {environment.title}")
    version = environment.python_version
    glibc = environment.gpu_build and environment.gpu_build.glibc or GLIBC
    platform = f"x86_64-manylinux_{glibc.replace('.', '_')}"  # of the builds for GPUs
    usual = ["--python-platform", platform] if environment.build else ["--universal"]
    flags = environment.recipe.lock_flags or [*usual, "--python-version", version]
    flags = [flag.replace("{python}", str(environments.find_python(version) or version)) for flag in flags]
    brought = "" if environment.build else "\n".join(environment.recipe.brought.values())
    flags += [asked.name, *(["-"] if brought else [])]
    markers = default_environment() | {"python_version": version, "python_full_version": f"{version}.99"}
    with tempfile.TemporaryDirectory(prefix="rosetta-") as folder:
        new, sizes = Path(folder) / locked.name, Path(folder) / "pylock.toml"
        new.write_text(files.text(locked), encoding="utf-8")
        with_hashes = [*flags, "--generate-hashes", "--no-header", "-o", str(new)]
        _compile(environment, with_hashes, brought)
        before = files.text(asked)
        after = pinned(before, files.text(new), markers)
        if after != before:
            files.write_atomically(asked, after)
            _compile(environment, with_hashes, brought)  # leaves out what was there for other Pythons
        text = files.text(new)
        if "://" in text:
            raise RosettaError(
                f"the lock of {environment.title} would name an address: ask in {asked.name} for versions"
            )
        _compile(environment, [*flags, "--format", "pylock.toml", "-c", str(new), "-o", str(sizes)], brought)
        packages = Pylock.from_dict(tomllib.loads(files.text(sizes)))
    python = tuple(map(int, version.split(".")))
    fitting = [*tags.cpython_tags(python), *tags.compatible_tags(python, f"cp{python[0]}{python[1]}")]
    download = sum(getattr(file, "size", 0) or 0 for _, file in packages.select(environment=markers, tags=fitting))
    files.write_atomically(locked, text)
    return float(f"{download / 1e9:.2g}")


def _compile(environment: Environment, arguments: list[str], more: str) -> None:
    """Call ``uv pip compile``. more: requirements on its standard input."""
    unwanted = *FOREIGN_VARIABLES, "UV_FIND_LINKS"  # which adds local builds to an index: a lock would record them
    env = {name: value for name, value in os.environ.items() if name not in unwanted}
    command = [find_uv_bin(), "pip", "compile", "--quiet", *arguments]
    done = subprocess.run(command, cwd=environment.folder, env=env, input=more, capture_output=True, text=True)
    if done.returncode:
        raise RosettaError(f"{environment.title} cannot be locked: {uv_error(done.stderr)}")


def pinned(requirements: str, lock: str, markers: dict[str, str]) -> str:
    """The text of requirements, with the versions of a lock where it asks for none exactly.

    markers: of the environment; they tell which of several versions fits it.
    """
    locked = [Requirement(line.rstrip("\\ ")) for line in lock.splitlines() if line[:1].isalnum()]
    fitting = [one for one in locked if one.marker is None or one.marker.evaluate(markers)]
    versions = {canonicalize_name(one.name): one.specifier for one in fitting}
    lines = []
    for line in requirements.splitlines(keepends=True):
        text, mark, comment = line.partition("#")
        with suppress(InvalidRequirement):  # an option, or nothing but a comment
            asked = Requirement(text.strip())
            exact = any(one.operator in ("==", "===") for one in asked.specifier)
            if not exact and canonicalize_name(asked.name) in versions:
                asked.specifier = versions[canonicalize_name(asked.name)]
                line = str(asked) + text[len(text.rstrip()) :] + mark + comment
        lines.append(line)
    return "".join(lines)


def _imports(name: str) -> list[tuple[tuple[str, ...], dict[str, str]]]:
    """What the frameworks of an environment and their variants import, whether they have a notebook yet or not, each with its
    variables: Keras imports what they name."""
    variants = [each for one in load_catalog().frameworks.values() for each in one.complete_variants.values()]
    imports = [(each.imports, each.variables) for each in variants if each.environment == name]
    return [pair for number, pair in enumerate(imports) if pair not in imports[:number]]


# ---- check: a row through everything that is asked of it, one line each, to the first mistake

STEPS = ("contract", "concepts", "smoke", "verify", "cost")  # methods of ``_Row``; what takes least time comes first
CORES = 2  # that costs are for
NOISE = 1.5  # times: a cost that is nearer to the written one than that is not written again
EPOCHS = 2  # of the run of a row that trains, so that there is a test between epochs and a loss to fall


def check(name: str, where: Where, cost_alone: bool) -> int:
    """Check a row, or every row that the name stands for. Exit code 1 at the first mistake, which is explained.

    What runs leave goes to a new folder, which is kept and named where something is wrong. cost_alone: measure what a run costs,
    and nothing else.
    """
    catalog, console = load_catalog(), Console()
    rows = catalog.select([name], where.task)
    scratch = Path(tempfile.mkdtemp(prefix="rosetta-check-"))
    for row in rows:
        if row.full_name != name:
            console.say(f"{row.full_name}:")
        checked = _Row(catalog, row, replace(where, names=(row.full_name,), out=scratch, jobs=1), console)
        for step in ("smoke", "cost") if cost_alone else STEPS:
            console.say(f"  {step} ...", "dim")
            started = time.monotonic()
            try:
                told = getattr(checked, step)()
            except RosettaError as error:
                if step == "cost" and not cost_alone:  # it can be measured later
                    console.say(f"  {step:<9} skipped  {error}", STYLES["skipped"])
                    continue
                console.say(f"  {step:<9} FAILED  {error}", STYLES["failed"])
                if any(scratch.iterdir()):
                    console.say(f"  What the run left is in {scratch}", "dim")
                else:
                    scratch.rmdir()
                return 1
            console.say(f"  {step:<9} ok  {told}  ({time.monotonic() - started:.0f} s)")
    shutil.rmtree(scratch, ignore_errors=True)
    if not cost_alone:
        keep = f"run_all.py verify {shlex.quote(name)} --out results"
        console.say(f"Now {keep} keeps the proof, then run_all.py report renews the pages.")
    return 0


class _Row:
    """One row, with its steps. Each returns in a few words what came of it, and raises RosettaError for a mistake."""

    def __init__(self, catalog: Catalog, row: Row, where: Where, console: Console):
        self.catalog, self.row, self.where, self.console = catalog, row, where, console
        self.task = catalog.task(row.task)
        self.ran: tuple[Plan, Record] | None = None  # by the step ``smoke``

    def contract(self) -> str:
        entry, place = self.catalog.frameworks[self.row.framework], f"catalog.toml: frameworks.{self.row.framework}"
        if entry.homepage == HOMEPAGE:
            raise RosettaError(f"{place}.homepage is still {entry.homepage}: name the framework's documentation")
        if entry.released == RELEASED:
            raise RosettaError(f"{place}.released is still {entry.released}: name the year of its first release")
        if not environments.load(self.row.environment).recipe.covers_gpus(self.row.imports):
            raise RosettaError(
                f"environments/{self.row.environment}/environment.toml does not say what a GPU is to {self.row.imports[0]}: "
                "give [without_gpu] a line of it, or a build's code; or name in `imports` the module that it computes through"
            )
        for trouble in entries.contract(self.row.notebook, self.task):
            raise RosettaError(trouble)
        module = self.row.imports[0].partition(".")[0]
        if not re.search(rf"^(?:import|from) {module}\b", "\n".join(self.row.code.values()), re.MULTILINE):
            raise RosettaError(
                f"{from_root(self.row.notebook)} does not import {module}: is it still the copy that it began as?"
            )
        if not (self.task.folder / "entries.toml").is_file():
            return ", ".join(self.task.kind.names)
        answered, asked = entries.answers(self.row.notebook, self.task), entries.load(self.task.folder).entries
        left = [key for key in asked if key not in answered and key not in self.row.facts.lacks]
        return f"{len(answered)} of {len(asked)} entries answered" + (f"; open: {', '.join(left)}" if left else "")

    def concepts(self) -> str:
        concepts = sections.concepts(self.task.folder)
        program = sections.notebook(self.row.notebook, self.task.kind)
        sections.check(program, concepts)
        if lacking := [name for name in concepts if not sections.excerpts(program, name)]:
            raise RosettaError(
                f"{from_root(self.row.notebook)}: no cell marks the lines of {', '.join(lacking)}: "
                'name them in the metadata of a cell, {"concepts": {NAME: [TEXT OF A LINE, ...]}}'
            )
        return f"{len(concepts)} marked"

    def smoke(self) -> str:
        """The smallest preset, with a test after each epoch."""
        where, trains = self.where, self.task.kind.trains
        slot = devices.timed(where.gpus, min(CORES, len(machine.processors())))[0]
        overrides = {"EPOCHS": EPOCHS} if trains else {}
        (planned,) = plan.make(self.catalog, [self.row], UNTIMED, overrides, gpu=slot.on_gpu, synthetic=where.synthetic)
        planned = planned.model_copy(update={"test_each_epoch": trains})
        data.locate_all([planned], where.data_dir)
        tell = events(lambda note: self.console.say(f"    {note}", "dim"))

        def watch(progress: Progress) -> None:
            if progress.note and progress.state == "preparing":
                tell(progress.note)

        run = execute(planned, slot, chosen(where.python, where.build), watch)
        save(run, where.out)
        run.close()
        record = run.record
        if record.status != "ok":
            raise RosettaError(f"{record.status}: {record.error}{_log(records.path(record, where.out, '.log'))}")
        for trouble in misreported(record, self.task):
            raise RosettaError(trouble)
        self.ran = planned, record
        told = ", ".join(f"{quantity.heading} {quantity.cell([record])}" for quantity in self.task.main)
        return f"{told}; but {doubted}" if (doubted := doubt(record)) else told

    def verify(self) -> str:
        # Beside other programs, BLAS threads that wait for each other make it last four times as long
        with threadpool_limits(1):
            _, proof = Setting(self.where).verify(self.row, lambda note: self.console.say(f"    {note}", "dim"))
        if proof.skipped:
            raise RosettaError(proof.skipped)
        for levels, reason, known in proof.failures(PROOFS[self.task.kind_name].LEVELS):
            raise RosettaError("; ".join([f"{levels}: {reason}", *known]) + _log(log_of(self.where.out, self.row)))
        told = f"levels {', '.join(str(finding.level) for finding in proof.findings)} pass"
        if doubted := doubt(self.ran[1]):  # no level explains it
            raise RosettaError(f"{told}, but in the run before {doubted}")
        return told

    def cost(self) -> str:
        """Measured by the smallest preset, and written down."""
        planned, record = self.ran
        if planned.on_gpu:
            raise RosettaError(f"not measured: it is for {CORES} processors, so for --gpus none")
        if record.disturbed:
            again = f"run_all.py check {shlex.quote(self.row.full_name)} --cost"
            raise RosettaError(f"not written, because {record.disturbed}: {again} when the machine is idle")
        cost = measured_cost(planned, record)
        where = "written into" if write_cost(self.task, self.row, cost) else "near to that in"
        return f"start_s = {cost.start_s:g}, item_ms = {cost.item_ms:g}: {where} {self.task.file}"


def _log(file: Path) -> str:
    """Where to read more, at the end of a message."""
    return f" (log: {file})" if file.is_file() else ""


def misreported(record: Record, task: Task) -> Iterator[str]:
    """What is wrong with the figures of a run that ended well, one line each. A run that trains must have tested each epoch."""
    metrics, params = record.metrics, record.params
    for name, wanted in task.expected(record.name).items():
        if getattr(metrics, name) != wanted:
            yield f"it reports {getattr(metrics, name)} {name}, and those of this network are {wanted}"
    for name in dict.fromkeys(task.kind.timed.values()):
        if not getattr(metrics, name):
            yield f"there is no {name}: the cells of that step took no time"
    if not task.kind.trains:
        return
    sizes = {"train": params["N_TRAIN"], "test": params["N_TEST"]}
    if record.dataset.sizes != sizes:
        yield f"it loaded {record.dataset.sizes} examples instead of {sizes}: N_TRAIN and N_TEST go to the loader"
    hits = metrics.accuracy * params["N_TEST"]  # of classes; generated labels may have another score
    if task.data and abs(hits - round(hits)) > 1e-6 * max(hits, 1):
        yield f"its accuracy is {hits:.3f} of {params['N_TEST']} test examples: it must count whole ones, the last batch too"
    if len(metrics.epoch_accuracy) != params["EPOCHS"]:
        yield f"{len(metrics.epoch_accuracy)} of {params['EPOCHS']} epochs were tested: log.epoch takes evaluate as well"
    elif metrics.epoch_accuracy[-1] != metrics.accuracy:
        yield (
            f"the test after the last epoch found {metrics.epoch_accuracy[-1]:.4f}, the one at the end {metrics.accuracy:.4f}: "
            "training went on between them, or a test is left in training mode (dropout)"
        )


def doubt(record: Record) -> str | None:
    """What is wrong with a run that trains, unless it is chance or a mistake that ``verify`` can name: its loss does not fall."""
    losses = getattr(record.metrics, "loss", [])
    if all(later < earlier for earlier, later in pairwise(losses)):
        return None
    return f"the loss of its epochs does not fall: {', '.join(f'{loss:.4f}' for loss in losses)}"


def measured_cost(plan: Plan, record: Record) -> Cost:
    """What a run costs, roughly, from one without a GPU: the time of an item, and what is left of the run's time."""
    rate = getattr(record.metrics, "examples_per_s", None)
    item_ms = 1000 / rate if rate else Cost().item_ms
    start_s = max(record.metrics.wall_s - plan.kind.items(plan.constants) * item_ms / 1000, 1)
    return Cost(start_s=float(f"{start_s:.2g}"), item_ms=float(f"{item_ms:.2g}"))


def write_cost(task: Task, row: Row, cost: Cost) -> bool:
    """Write a row's cost into its line in ``task.toml``, unless that has one that is near. Whether it was written."""
    file, old = task.folder / "task.toml", row.facts.cost
    pairs = (cost.start_s, old.start_s), (cost.item_ms, old.item_ms)
    near = all(max(pair) <= NOISE * min(pair) for pair in pairs)
    if near and "cost" in row.facts.model_fields_set:
        return False
    new = tomlkit.parse(f"row = {{ cost = {{ start_s = {cost.start_s:g}, item_ms = {cost.item_ms:g} }} }}\n")["row"]
    content = tomlkit.parse(files.text(file))
    line = content.setdefault("rows", tomlkit.table()).setdefault(row.name, new)
    line.setdefault("cost", new["cost"]).update(new["cost"])  # what it has of a GPU stays
    files.write_atomically(file, tomlkit.dumps(content))
    return True
