"""The command line. Modules that take long to import are imported by the command that needs them."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from rosetta import inputs, lock, streams, user
from rosetta.adding import cli as adding
from rosetta.errors import RosettaError
from rosetta.measure import cli as measuring
from rosetta.options import (
    LAST,
    AgainOption,
    BatchName,
    BatchOption,
    BranchOption,
    BuildOption,
    ClusterOption,
    DataOption,
    EnvironmentNames,
    EpochsOption,
    GpusOption,
    LockOption,
    Names,
    OutOption,
    PresetOption,
    PythonOption,
    RealOption,
    RepositoryOption,
    RunNames,
    SeedOption,
    SetOption,
    ShownOption,
    SyntheticOption,
    TaskOption,
    TasksOption,
    TestOption,
    TimeoutOption,
    TrainOption,
    constants,
    results_folder,
)
from rosetta.paths import ROOT
from rosetta.printable import printable
from rosetta.verify import cli as proving

RESUME = "finished runs are kept; run_all.py resume runs the rest"

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The same task in every deep-learning framework: run the notebooks, collect the tables. Without a command: run.",
)


@app.callback(invoke_without_command=True)
def default(
    version: Annotated[bool, typer.Option("--version", help="Tell the version and the commit.")] = False,
) -> None:
    if version:
        from rosetta import commands

        print(commands.version())


@app.command()
def run(
    names: RunNames = None,
    task: TasksOption = None,
    all_tasks: Annotated[bool, typer.Option("--all-tasks", help="Rows of every task.")] = False,
    preset: PresetOption = None,
    epochs: EpochsOption = None,
    train_size: TrainOption = None,
    test_size: TestOption = None,
    batch_size: BatchOption = None,
    seed: SeedOption = None,
    set_: SetOption = None,
    seeds: Annotated[int, typer.Option(min=1, help="Run every row so many times, each with another seed.")] = 1,
    data_dir: DataOption = None,
    synthetic: SyntheticOption = False,
    real: RealOption = None,
    out: OutOption = None,
    timeout: TimeoutOption = None,
    python: PythonOption = None,
    build: BuildOption = None,
    gpus: GpusOption = None,
    gpus_per_run: Annotated[int, typer.Option(min=1, help="GPUs that each run is given.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Processors a run may use; all when not given.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time, of --preset smoke alone: timed runs never share a device."),
    ] = None,
    cluster: ClusterOption = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Tell what would run, and how long it takes; run nothing.")
    ] = False,
    rows: Annotated[bool, typer.Option("--rows", help="With --plan: a line for each row.")] = False,
) -> None:
    """Run notebooks, one child process each, and write records and tables: those of the main task where nothing is named."""
    from rosetta import batch, files
    from rosetta.journal import Order

    given = {"EPOCHS": epochs, "N_TRAIN": train_size, "N_TEST": test_size, "BATCHSIZE": batch_size, "SEED": seed}
    asked = {
        "rows": batch.row_names(names or [], task or [], all_tasks),
        "named": bool(names),
        "preset": preset,
        "overrides": {name: value for name, value in given.items() if value is not None} | constants(set_ or []),
        "seeds": seeds,
        "synthetic": synthetic,
        "data": real,
        "timeout_s": timeout,
        "data_dir": str(data_dir.absolute()) if data_dir else None,
        "python": python or [],
        "build": build or [],
        "gpus": gpus,
        "gpus_per_run": gpus_per_run,
        "threads": threads,
        "jobs": jobs,
        "cluster": str(Path(cluster).absolute()) if cluster and cluster.endswith(".json") else cluster,
    }
    if real not in (None, batch.REAL):
        raise RosettaError(f"--data takes {batch.REAL}, not {real}; --data-dir names a folder")
    if real and synthetic:
        raise RosettaError(f"--data {real} and synthetic data (--synthetic, or ROSETTA_DATA) contradict each other")
    if rows and not plan:
        raise RosettaError("--rows goes with --plan")
    order = files.part(Order, asked, "the command line")
    if plan:
        raise typer.Exit(batch.show_plan(order, out, rows))
    raise typer.Exit(lock.alone("run", lambda: batch.run(order, out), results_folder(out), RESUME))


@app.command()
def resume(
    batch: BatchName = LAST,
    out: OutOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run what is finished as well.")] = False,
) -> None:
    """Run what a batch still lacks, as it was ordered, and what has changed since."""
    from rosetta.batch import resume

    raise typer.Exit(lock.alone("resume", lambda: resume(batch, out, fresh), results_folder(out), RESUME))


app.add_typer(measuring.app, name="measure")
app.command()(measuring.sweep)
app.command()(proving.verify)
app.command()(proving.crossload)
app.command()(adding.new)
app.command()(adding.check)
app.command()(adding.upgrade)
app.command()(inputs.weights)
app.add_typer(inputs.app, name="data")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def test(context: typer.Context) -> None:
    """Pass the tests of the project itself, on all processors; options go to pytest. --all tests every row, as CI does."""
    os.chdir(ROOT)
    # One file after the other on each, since a file's tests share what is slow to make
    os.execv(sys.executable, [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "loadfile", *context.args])


@app.command("list")
def list_rows(task: TaskOption = None, python: PythonOption = None, build: BuildOption = None) -> None:
    """List the rows, their environments, and their state on this machine."""
    from rosetta import commands
    from rosetta.run import kernels

    commands.list_rows(task, kernels.chosen(python or [], build or []))


@app.command()
def doctor(
    names: Names = None,
    task: TaskOption = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Compute a small convolution in every environment that fits; makes them first."),
    ] = False,
    python: PythonOption = None,
    build: BuildOption = None,
    gpus: GpusOption = None,
) -> None:
    """Tell what this machine has: Pythons, disk, GPU, data, and which build of each environment; --check tries them."""
    from rosetta.doctor import diagnosis, firstcheck
    from rosetta.run import kernels

    given = kernels.chosen(python or [], build or [])
    if not check and (names or task or gpus):
        raise RosettaError("doctor looks at the whole machine: rows, --task and --gpus go with --check")
    if check:
        raise typer.Exit(lock.alone("doctor --check", lambda: firstcheck.main(names or [], task, given, gpus)))
    raise typer.Exit(diagnosis.main(given))


@app.command()
def env(
    names: EnvironmentNames, again: AgainOption = False, locked: LockOption = False, build: BuildOption = None
) -> None:
    """Make environments, for the CPU unless --build says otherwise; runs make what they need by themselves."""
    from rosetta import commands

    raise typer.Exit(lock.alone("env", lambda: commands.make_environments(names, build or [], again, locked)))


@app.command()
def report(
    out: ShownOption = None,
    pictures: Annotated[bool, typer.Option("--pictures", help="Draw the pictures of the results anew, too.")] = False,
) -> None:
    """Write the pages of a results folder anew; of the committed one results.md and the tables in other pages, too."""
    from rosetta import commands

    commands.write_report(out, pictures, typer.main.get_command(app))


@app.command()
def lab(
    names: Names = None,
    task: TaskOption = None,
    python: PythonOption = None,
    build: BuildOption = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Where JupyterLab listens; 8888 or the next.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    allow_root: Annotated[
        bool, typer.Option("--allow-root", help="Also as root, as in a container; JupyterLab refuses that otherwise.")
    ] = False,
    synthetic: SyntheticOption = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--in", metavar="FOLDER", help="Folder of the copies, lab when not given; . opens the notebooks themselves."
        ),
    ] = None,
) -> None:
    """Open copies of the notebooks in JupyterLab, each with its kernel; makes the environments that they need."""
    from rosetta import lab as work
    from rosetta.run import kernels

    given = kernels.chosen(python or [], build or [])
    options = [f"--port={port}"] if port else []
    options += ([] if browser else ["--no-browser"]) + (["--allow-root"] if allow_root else [])
    raise typer.Exit(work.lab(names or [], task, given, options, synthetic, folder))


@app.command()
def site(
    to: Annotated[
        Path,
        typer.Option(file_okay=False, metavar="DIR", help="Where to write it; an earlier site there is replaced."),
    ] = Path("site"),
    out: ShownOption = None,
    repository: RepositoryOption = None,
    branch: BranchOption = None,
) -> None:
    """Write the site to read frameworks side by side: static pages that need no server."""
    from rosetta import commands

    commands.write_site(to, out, repository, branch)


@app.command()
def compare(
    before: Annotated[
        str, typer.Argument(metavar="A", help="A results folder, or a git revision: results/ as it was.")
    ],
    after: Annotated[str, typer.Argument(metavar="B", help="The same; what changed from A to B is told.")],
    factor: Annotated[
        float | None,
        typer.Option(help="How many times a figure must change to count: 1.1 when not given; more for single runs."),
    ] = None,
) -> None:
    """Tell what changed beyond noise from A to B. Exit code 0: nothing became worse, 1: something did."""
    from rosetta import commands

    raise typer.Exit(commands.compare_records(before, after, factor))


@app.command()
def watch(batch: BatchName = LAST, out: OutOption = None) -> None:
    """Show the live table of a batch that runs elsewhere, until it ends. Exit code 1: it ended without all its runs."""
    from rosetta import journal

    raise typer.Exit(journal.watch(batch, out))


def completed(arguments: list[str]) -> list[str]:
    """The arguments with the command ``run``, which may be left out."""
    named = arguments and (arguments[0] in ("-h", "--help", "--version") or not arguments[0].startswith("-"))
    return arguments if named else ["run", *arguments]


def main() -> None:
    """Run the command line; what the user can mend is one line on standard error and exit code 2."""
    streams.keep_on()
    user.complete()
    try:
        app(completed(sys.argv[1:]))
    except RosettaError as error:
        print(f"run_all.py: {printable(str(error))}", file=sys.stderr)
        sys.exit(2)
