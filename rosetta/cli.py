"""The command line. Modules that take long to import are imported by the command that needs them."""

import os
import sys
import time
import tomllib
from functools import wraps
from pathlib import Path
from typing import Any

import click

from rosetta import lock, shell, streams
from rosetta.errors import RosettaError, needs_extra, unknown
from rosetta.paths import DATA, SYNTHETIC, checkout, portable
from rosetta.streams import printable
from rosetta.where import Where, constants

RESUME = "finished runs are kept; run_all.py resume runs the rest"
FOLDER = click.Path(path_type=Path)


def option(name: str, help: str, value: str | None = None, **more):
    """An option of a command. name: with that of its parameter behind it, where they differ. value: what stands for its value."""
    return click.option(*name.split(), help=help, metavar=value, **more)


def count(name: str, help: str, default: int | None = None, least: int = 1):
    """An option that takes a whole number."""
    return option(name, help, "N", type=click.IntRange(least), default=default)


class Ordered(click.Group):
    """Lists its commands in the order in which they stand here."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, context: click.Context, name: str) -> click.Command:
        if name in self.commands:
            return self.commands[name]
        if name.isidentifier() and (checkout.notebooks / name).is_dir():
            raise RosettaError(f"{name} is a task, no command: run_all.py run --task {name}")
        framework = name.partition("[")[0].rpartition("/")[2]
        if framework.isidentifier() and any(checkout.notebooks.glob(f"*/{framework}.ipynb")):
            raise RosettaError(f"{name} is a row, no command: run_all.py run {name}")
        raise unknown("command", name, self.commands)


# ---- What several commands take

WHERE = {
    "names": click.argument("names", nargs=-1, metavar="[ROW]..."),
    "task": option("--task", "Rows of this task alone.", "TASK"),
    "data_dir": option(
        "--data-dir", "Folder with the extracted data set, instead of ROSETTA_DATA or the cache.", type=FOLDER
    ),
    "synthetic": option(
        "--synthetic",
        "Use generated stand-in data, as ROSETTA_DATA=synthetic does; marked so everywhere.",
        is_flag=True,
        callback=lambda context, parameter, value: value or os.environ.get(DATA) == SYNTHETIC,
    ),
    "out": option(
        "--out",
        "Folder for records, executed notebooks and tables; runs, which git ignores, when not given. results renews "
        "the committed ones.",
        "DIR",
        type=FOLDER,
    ),
    "python": option(
        "--python",
        "Use this interpreter for an environment (or all=PATH) and install nothing.",
        "ENV=PATH",
        multiple=True,
    ),
    "build": option(
        "--build",
        "Use this build of an environment instead of the newest that fits the GPU; may be repeated.",
        "ENV=NAME",
        multiple=True,
    ),
    "gpus": option("--gpus", "GPUs to use, as nvidia-smi numbers them; all when not given.", "0,2|all|none"),
    "jobs": count(
        "--jobs",
        "Runs at a time, each with its share of the processors; one a GPU, or one a processor, when not given.",
    ),
}
shown = option(
    "--out results",
    "Folder of the records; results, the committed ones, when not given.",
    "DIR",
    type=FOLDER,
    callback=lambda context, parameter, value: (value or checkout.results).absolute(),
)
batch_name = click.argument("batch", required=False, default="last", metavar="[BATCH]")
constant = option(
    "--set set_", "Any constant of the task, such as LR=0.1; may be repeated.", "NAME=VALUE", multiple=True
)
train_size = count("--train-size N_TRAIN", "Training examples, instead of the preset's.")
test_size = count("--test-size N_TEST", "Test examples, instead of the preset's.")


def taken(options: dict[str, Any], set_: tuple[str, ...]) -> dict[str, Any]:
    """The constants of the task that a command was given, by ``--set`` or by an option that is named after one; it loses those."""
    values = {name: options.pop(name) for name in list(options) if name.isupper()}
    return {name: value for name, value in values.items() if value is not None} | constants(set_)


def where(names: str):
    """The options of these names, which the command is given as one ``Where``."""
    chosen = names.split()

    def decorate(command):
        @wraps(command)
        def gathered(**options):
            return command(where=Where(**{name: options.pop(name) for name in chosen}), **options)

        for name in reversed(chosen):
            gathered = WHERE[name](gathered)
        return gathered

    return decorate


# ---- Runs


@click.group(
    cls=Ordered,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The same task in every deep-learning framework: run the notebooks, collect the tables. Without a command: run.",
)
@option("--version", "Tell the version and the commit.", is_flag=True)
def app(version: bool) -> None:
    if version:
        from rosetta.run.execute import commit

        project = tomllib.loads((checkout.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        print(f"{project['name']} {project['version']} {commit()}".strip())


@app.command()
@click.argument("names", nargs=-1, metavar="[ROW]...")
@option("--task tasks", "Rows of this task, not of the main one; may be repeated.", "TASK", multiple=True)
@option("--all-tasks", "Rows of every task.", is_flag=True)
@option("--preset", "smoke, quick, epoch or full; full on a GPU, quick without one.", "NAME")
@count("--epochs EPOCHS", "Training epochs, instead of the preset's.")
@train_size
@test_size
@count("--batch-size BATCHSIZE", "Examples a step, instead of the task's.")
@count("--seed SEED", "Instead of the task's: weights, order and dropout.", least=0)
@constant
@count("--seeds", "Run every row so many times, each with another seed.", default=1)
@option(
    "--data",
    "Stop where a data set cannot be downloaded. Otherwise its rows compute on generated data, marked SYNTHETIC.",
    "real",
)
@option(
    "--timeout timeout_s",
    "Stop a run after so many seconds; ten times its estimate when not given.",
    "SECONDS",
    type=click.FloatRange(1),
)
@where("data_dir synthetic out python build gpus")
@count("--gpus-per-run", "GPUs that each run is given.", default=1)
@count("--threads", "Processors a run may use; all when not given.")
@count("--jobs", "Runs at a time, of --preset smoke alone: timed runs never share a device.")
@option(
    "--cluster",
    "Let the workers of a Dask cluster do the runs: its scheduler's address (tcp://host:8786) or file (.json).",
    "ADDRESS|FILE",
)
@option("--plan", "Tell what would run, and how long it takes; run nothing.", is_flag=True)
@option("--rows", "With --plan: a line for each row.", is_flag=True)
def run(names, tasks, all_tasks, set_, where, cluster, plan, rows, **asked) -> None:
    """Run notebooks and write records and tables.

    Each run is a process of its own. Without names: the rows of the main task. A name is FRAMEWORK, FRAMEWORK[VARIANT] or
    FRAMEWORK[*], of the main task unless --task, --all-tasks or TASK/ in front of it says otherwise.
    """
    from rosetta import batch, catalog, files
    from rosetta.journal import Order

    if all_tasks and tasks:
        raise RosettaError("--all-tasks names every task: leave out --task")
    asked |= {
        "rows": [row.full_name for row in catalog.load().to_run(names, tasks, all_tasks)],
        "named": bool(names),
        "overrides": taken(asked, set_),
        "synthetic": where.synthetic,
        "data_dir": str(where.data_dir.absolute()) if where.data_dir else None,
        "python": list(where.python),
        "build": list(where.build),
        "gpus": where.gpus,
        "cluster": str(Path(cluster).absolute()) if cluster and cluster.endswith(".json") else cluster,
    }
    if asked["data"] not in (None, batch.REAL):
        raise RosettaError(f"--data takes {batch.REAL}, not {asked['data']}; --data-dir names a folder")
    if asked["data"] and where.synthetic:
        raise RosettaError(
            f"--data {batch.REAL} and synthetic data (--synthetic, or ROSETTA_DATA) contradict each other"
        )
    if rows and not plan:
        raise RosettaError("--rows goes with --plan")
    order = files.part(Order, asked, "the command line")
    if plan:
        sys.exit(batch.show_plan(order, where.results, rows))
    sys.exit(lock.alone("run", lambda: batch.run(order, where.results), where.results, RESUME))


@app.command()
@batch_name
@where("out")
@option("--fresh", "Run what is finished as well.", is_flag=True)
def resume(batch: str, where: Where, fresh: bool) -> None:
    """Run what a batch still lacks, and what has changed since."""
    from rosetta.batch import resume

    sys.exit(lock.alone("resume", lambda: resume(batch, where.results, fresh), where.results, RESUME))


@app.command()
@batch_name
@where("out")
def watch(batch: str, where: Where) -> None:
    """Show the live table of a batch until it ends.

    The batch may run in another terminal. Exit code 1: it ended without all its runs.
    """
    from rosetta import journal

    sys.exit(journal.watch(batch, where.results))


@app.command("list")
@where("task python build")
def list_rows(where: Where) -> None:
    """List the rows, their environments and their state here."""
    from rosetta import doctor

    doctor.list_rows(where)


@app.command()
@where("names task gpus python build")
@option("--check", "Compute a small convolution in every environment that fits; makes them first.", is_flag=True)
def doctor(where: Where, check: bool) -> None:
    """Show what this machine has and lacks; --check computes on it.

    Pythons, disk, GPU, data, and which build of each environment this machine gets.
    """
    from rosetta import doctor

    if check:
        sys.exit(lock.alone("doctor --check", lambda: doctor.check(where)))
    if where.names or where.task or where.gpus:
        raise RosettaError("doctor looks at the whole machine: rows, --task and --gpus go with --check")
    sys.exit(doctor.tell(where))


@app.command()
@click.argument("names", nargs=-1, required=True, metavar="ENV...")
@option("--again", "Make them anew, also if they are ready, from files that are fetched anew.", is_flag=True)
@option(
    "--lock locked",
    "First write the lock of their requirements; afterwards import what their frameworks import.",
    is_flag=True,
)
@where("build")
def env(names: tuple[str, ...], again: bool, locked: bool, where: Where) -> None:
    """Make environments; runs make what they need by themselves.

    They are for the CPU unless --build says otherwise.
    """
    from rosetta import adding

    sys.exit(lock.alone("env", lambda: adding.make_environments(names, where.build, again, locked)))


# ---- Proofs and measurements


@app.command()
@where("names task data_dir synthetic out python build gpus jobs")
@option("--all every", "Also rows that have not changed since they were verified.", is_flag=True)
@count(
    "--drawn",
    "So many unchanged rows, drawn at random, too; fewer where their proofs took over 10 minutes.",
    default=0,
    least=0,
)
def verify(where: Where, every: bool, drawn: int) -> None:
    """Prove that notebooks are the same network.

    Each is compared, level by level, with the reference in NumPy.
    """
    from rosetta.verify import command

    sys.exit(lock.alone("verify", lambda: command.verify(where, every, drawn), where.results))


@app.command()
@where("names task data_dir synthetic out python build gpus jobs")
@train_size
@test_size
@constant
def crossload(where: Where, set_: tuple[str, ...], **asked) -> None:
    """Let rows compute with the same weights, and compare.

    Rows that train evaluate each other's weights, all by all.
    """
    from rosetta.verify import command

    changed = taken(asked, set_)
    sys.exit(lock.alone("crossload", lambda: command.crossload(where, changed), where.results))


measured = where("names task data_dir synthetic out python build gpus")


@app.group(cls=Ordered)
def measure() -> None:
    """Measure how fast rows and this machine are."""


@measure.command()
@measured
@count("--steps", "Of an epoch, a pass or a repeat; a tenth of it where a step takes seconds.", default=50)
@count("--epochs", "Epochs, or passes where nothing is trained; the first is not counted.", default=6, least=2)
def fastest(where: Where, steps: int, epochs: int) -> None:
    """Every notebook's loop against the fastest idiomatic one of its framework, an epoch, a pass or a repeat each by turns."""
    from rosetta.measure import commands

    sys.exit(lock.alone("fastest", lambda: commands.fastest(where, steps, epochs), where.results))


@measure.command()
@measured
@option("--threads", "Numbers of processors; 1, 2, 4 ... up to all when not given.", "1,2,...")
@option("--axis", "Values of a parameter instead of the task's, e.g. BATCHSIZE=16,64.", "NAME=VALUE,...", multiple=True)
@count("--steps", "Steps that are timed at once; 100 or the protocol's when not given.")
@count("--repeats", "How often: the mean and the spread of so many; 5 or the protocol's when not given.")
@option("--plot", "Draw the picture, too.", is_flag=True)
@option("--protocol", "Repeat a published benchmark; its task's task.toml says its points.", "NAME")
@option("--minutes", "Of a protocol: the cheapest points that fit into so much time.", "N", type=click.FloatRange(0.1))
def sweep(where: Where, **how) -> None:
    """Time the phases of a training step.

    Forward, forward and backward, and the whole step, for numbers of threads and along the task's axes. A task that trains
    nothing has passes; a task of networks can repeat a published protocol.
    """
    from rosetta.measure import commands

    sys.exit(lock.alone("sweep", lambda: commands.sweep(where, **how), where.results))


@measure.command()
@where("out")
@count("--size", "Rows and columns of the matrices that are multiplied.", default=2048)
@count("--repeats", "How often.", default=10)
def floor(where: Where, size: int, repeats: int) -> None:
    """The arithmetic of a training step, and how fast this processor does as much in NumPy's matrix product."""
    from rosetta.measure import commands

    sys.exit(lock.alone("floor", lambda: commands.floor(size, repeats, where.results), where.results))


@app.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@option(
    "--factor",
    "How many times a figure must change to count: 1.1 when not given; more for single runs.",
    "NUMBER",
    type=float,
)
def compare(before: str, after: str, factor: float | None) -> None:
    """Show differences larger than noise from A to B.

    A and B are results folders, or git revisions: results/ as it was then. Exit code 0: nothing became worse, 1: something did.
    """
    from rosetta.compare import compare_names

    sys.exit(compare_names(before, after, factor))


# ---- Pages


@app.command()
@shown
@option("--pictures draw", "Draw the pictures of the results anew, too.", is_flag=True)
def report(results: Path, draw: bool) -> None:
    """Write the pages of a results folder anew.

    Of the committed folder also results.md and the tables in other pages.
    """
    from rosetta import records
    from rosetta.catalog import load
    from rosetta.measure import protocols, tables
    from rosetta.report import pages
    from rosetta.verify import conformance

    catalog, files, every = load(), [], [record for _, record in records.read_all(results)]
    if draw:
        with needs_extra("report --pictures"):
            from rosetta.measure import pictures
            from rosetta.report import charts

            files += charts.write(catalog, results)
            files += pictures.draw_protocols(catalog, every, results) + pictures.draw_sweeps(catalog, every, results)
    files += [conformance.write_page(catalog, key, results) for key in catalog.tasks]
    files += [*tables.write(catalog, every, results), protocols.write(catalog, every, results)]
    files += pages.write(catalog, results)  # after those that it links to
    if results == checkout.results:
        files += pages.write_blocks(catalog, app)
    for file in files:
        print(portable(str(file)))


@app.command()
@option(
    "--to",
    "Where to write it; an earlier site there is replaced.",
    "DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default="site",
)
@shown
@option("--repository", "The checkout's home on the web, for links to it; git's origin when not given.", "URL")
@option("--branch", "GitHub's branch that the site is published from: notebooks of it open in Colab.", "NAME")
@option("--address", "Where the site is published: pages name their own address, and a site map lists them.", "URL")
@option("--check", "Follow every link and address of the pages; exit 1 where one leads nowhere.", is_flag=True)
def site(to: Path, results: Path, repository: str | None, branch: str | None, address: str | None, check: bool) -> None:
    """Write the site, static pages to read frameworks side by side."""
    with needs_extra("site"):
        from rosetta.site import addresses, build
    started = time.perf_counter()
    address = address and address.rstrip("/") + "/"
    first = build.write(to.absolute(), results, repository, branch, address)
    print(f"{portable(str(first))}, in {time.perf_counter() - started:.1f} s")
    if check and (wrong := addresses.wrong(first.parent)):
        print("\n".join(wrong))
        print(f"run_all.py: {len(wrong)} links or pages of the site are wrong: see the lines above", file=sys.stderr)
        sys.exit(1)


@app.command()
@where("names task synthetic python build")
@option(
    "--in folder", "Folder of the copies, lab when not given; . opens the notebooks themselves.", "FOLDER", type=FOLDER
)
@option("--port", "Where JupyterLab listens; 8888 or the next.", "N", type=click.IntRange(1, 65535))
@option("--browser/--no-browser", "Open a browser.", default=True)
@option("--allow-root", "Also as root, as in a container; JupyterLab refuses that otherwise.", is_flag=True)
def lab(where: Where, folder: Path | None, port: int | None, browser: bool, allow_root: bool) -> None:
    """Open copies of the notebooks in JupyterLab.

    Each opens with its framework's kernel. Environments that they need are made.
    """
    from rosetta.lab import lab

    options = [f"--port={port}"] if port else []
    options += ([] if browser else ["--no-browser"]) + (["--allow-root"] if allow_root else [])
    sys.exit(lab(where, options, folder))


# ---- Adding


@app.command()
@click.argument("framework", metavar="FRAMEWORK")
@where("task")
@option("--like", "The row whose notebook is copied; the first of the catalog's `compared`.", "ROW")
@option(
    "--environment",
    "The folder below environments/; the framework's name when not given. Share one that exists if the framework "
    "computes through a package that is there: a copy of it may take gigabytes.",
    "NAME",
)
@option(
    "--kind", "Add the task of --task as well, from a small example of this kind: train, infer, speed, entries.", "KIND"
)
def new(framework: str, where: Where, like: str | None, environment: str | None, kind: str | None) -> None:
    """Add a framework: its notebook, environment and catalog entry; with --kind a task, too.

    They are copies to be rewritten; what is left to do is told. FRAMEWORK is the name of its notebook and catalog entry, as in my_framework.
    """
    from rosetta import adding

    sys.exit(lock.alone("new", lambda: adding.new(framework, where.task, like, environment, kind)))


@app.command()
@click.argument("row", metavar="ROW")
@where("task data_dir synthetic python build gpus")
@option("--cost", "Measure only what a run costs; for a machine that is idle.", is_flag=True)
def check(row: str, where: Where, cost: bool) -> None:
    """Check a new row, step by step, to its first mistake.

    Steps: the notebook's contract, its concepts, a smoke run, all levels of verify, and what a run costs, which is written
    down. It stops at the first mistake and explains it, with exit code 1. The results folder stays as it is.
    """
    from rosetta import adding

    sys.exit(lock.alone("check", lambda: adding.check(row, where, cost)))


@app.command()
@where("names task")
def tidy(where: Where) -> None:
    """Take from notebooks what an editor has saved: outputs, numbers, the kernel."""
    from rosetta import catalog, notebook

    def work() -> int:
        rows = catalog.load().select(where.names, where.task)
        for file in dict.fromkeys(row.notebook for row in rows):
            if notebook.tidy(file):
                print(f"{portable(str(file))}: tidied")
        return 0

    sys.exit(lock.alone("tidy", work))


@app.group(cls=Ordered)
def data() -> None:
    """Make published weights, or a folder of pictures, for tasks."""


@data.command()
@click.argument("task", metavar="TASK")
@click.argument("file", type=FOLDER, metavar="FILE")
@option("--from source", "Who publishes it.", "NAME", required=True)
@option("--to", "Where to write.", "FILE.npz", type=FOLDER, default="weights.npz")
@where("python build")
def weights(task: str, file: Path, source: str, to: Path, where: Where) -> None:
    """Make canonical weights, which every notebook of a task takes, from a published FILE."""
    from rosetta.run import kernels, scripts

    pythons = kernels.chosen(where.python, where.build)
    sys.exit(lock.alone("weights", lambda: scripts.convert_weights(task, source, file, to, pythons)))


@data.command()
@click.argument("to", type=FOLDER, metavar="DEST")
@option("--n", "How many.", "N", type=click.IntRange(1, 10_000), default=2000)
@count("--size", "Pixels a side.", default=256)
@option("--by-class", "In a folder for each class.", is_flag=True)
@where("data_dir synthetic")
def images(to: Path, n: int, size: int, by_class: bool, where: Where) -> None:
    """Write test images of CIFAR-10, enlarged, as JPEG files into DEST, a new or empty folder."""
    from common.data import pictures
    from common.data.errors import DataError

    try:
        pictures.write(str(to), n, size, where.data_dir, where.synthetic or None, by_class)
    except DataError as error:
        raise RosettaError(str(error)) from None
    about = f"{n:,} pictures{' of SYNTHETIC data' if where.synthetic else ''}"
    print(f"{to}: {about}. A run takes them by --set IMAGES={to.absolute()}")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
@click.pass_context
def test(context: click.Context) -> None:
    """Pass the tests of the project itself, on all processors.

    Options go to pytest. --all tests every row, as CI does.
    """
    os.chdir(checkout.root)
    # One file after the other on each, since a file's tests share what is slow to make
    os.execv(sys.executable, [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "loadfile", *context.args])


def completed(arguments: list[str]) -> list[str]:
    """The arguments with the command ``run``, which may be left out."""
    named = arguments and (arguments[0] in ("-h", "--help", "--version") or not arguments[0].startswith("-"))
    return arguments if named else ["run", *arguments]


def main() -> None:
    """Run the command line; what the user can mend is one line on standard error and exit code 2."""
    streams.keep_on()
    shell.settle()
    try:
        for word in sys.argv[1:]:
            if (readable := word.encode(errors="replace").decode()) != word:
                raise RosettaError(f"{readable} is no text in UTF-8: give it another name")
        app(completed(sys.argv[1:]), prog_name="run_all.py")
    except RosettaError as error:
        print(f"run_all.py: {printable(str(error))}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # of a disk that fails, say
        name = f"{portable(str(error.filename))}: " if error.filename else ""
        print(f"run_all.py: {printable(name + (error.strerror or str(error)))}", file=sys.stderr)
        sys.exit(2)
