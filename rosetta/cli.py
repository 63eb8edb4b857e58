"""The command line. Modules that take long to import are imported by the command that needs them."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from rosetta.errors import RosettaError

LAST = "last"  # the latest batch

app = typer.Typer(
    add_completion=False,
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="The same network in every deep-learning framework: run the notebooks, collect the table. Without a command: run.",
)

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FRAMEWORK | FRAMEWORK[VARIANT]]...",
        help="Rows to run, e.g. pytorch 'keras[jax]' 'pytorch[*]'; all when none is named.",
    ),
]
TaskOption = Annotated[str | None, typer.Option(help="Task to run; the catalog's first when not given.")]
PythonOption = Annotated[
    list[str] | None,
    typer.Option(
        "--python",
        metavar="ENV=PATH",
        help="Use this interpreter for an environment (or all=PATH) and install nothing.",
    ),
]
OutOption = Annotated[
    Path | None, typer.Option(help="Folder for records, executed notebooks and results.md, instead of results/.")
]
DataOption = Annotated[
    Path | None, typer.Option(help="Folder with the extracted data set, instead of ROSETTA_DATA or the cache.")
]
SyntheticOption = Annotated[
    bool, typer.Option("--synthetic", help="Use generated stand-in data; marked so everywhere.")
]
GpusOption = Annotated[
    str | None,
    typer.Option(metavar="0,2|all|none", help="GPUs to use, as nvidia-smi numbers them; all when not given."),
]
Count = typer.Option(min=1)


@app.callback(invoke_without_command=True)
def default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        run()


@app.command()
def run(
    names: Names = None,
    task: TaskOption = None,
    preset: Annotated[
        str | None, typer.Option(help="smoke, quick or full; full where there is a GPU, quick where there is none.")
    ] = None,
    epochs: Annotated[int | None, Count] = None,
    train_size: Annotated[int | None, Count] = None,
    test_size: Annotated[int | None, Count] = None,
    batch_size: Annotated[int | None, Count] = None,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Run every row so many times, each with another seed.")] = 1,
    data_dir: DataOption = None,
    synthetic: SyntheticOption = False,
    out: OutOption = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds after which a run is stopped; ten times its estimate when not given."),
    ] = None,
    python: PythonOption = None,
    gpus: GpusOption = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Processors a run may use; all when not given.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time, of --preset smoke alone: timed runs never share a device."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS|FILE",
            help="Let the workers of a Dask cluster do the runs: its scheduler's address (tcp://host:8786) or file (.json).",
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="[BATCH]", help="Run only what a batch, the latest if none is named, still lacks."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="With --resume: run what is finished as well.")] = False,
) -> None:
    """Run notebooks, one child process each, and write results.md."""
    from rosetta import running

    given = {"EPOCHS": epochs, "N_TRAIN": train_size, "N_TEST": test_size, "BATCHSIZE": batch_size, "SEED": seed}
    if resume:
        own = (
            names,
            task,
            preset,
            *given.values(),
            seeds - 1,
            data_dir,
            synthetic,
            timeout,
            python,
            gpus,
            threads,
            jobs,
            cluster,
        )
        if any(value not in (None, 0, False) for value in own):
            raise RosettaError(
                "--resume goes on with a batch as it was ordered: with it only --out and --fresh are taken"
            )
        raise typer.Exit(_alone("run --resume", lambda: running.resume(resume, out, fresh)))
    if fresh:
        raise RosettaError("--fresh belongs to --resume; without it every row is run anyway")
    asked = running.order(
        names or [],
        task,
        preset=preset,
        overrides={name: value for name, value in given.items() if value is not None},
        seeds=seeds,
        synthetic=synthetic,
        timeout_s=timeout,
        data_dir=str(data_dir.absolute()) if data_dir else None,
        python=python or [],
        gpus=gpus,
        threads=threads,
        jobs=jobs,
        cluster=str(Path(cluster).absolute()) if cluster and cluster.endswith(".json") else cluster,
    )
    raise typer.Exit(_alone("run", lambda: running.run(asked, out)))


JobsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Runs at a time, each with its share of the processors; one a GPU, or one a processor, when not given.",
    ),
]


@app.command()
def verify(
    names: Names = None,
    task: TaskOption = None,
    data_dir: DataOption = None,
    synthetic: SyntheticOption = False,
    out: OutOption = None,
    python: PythonOption = None,
    gpus: GpusOption = None,
    jobs: JobsOption = None,
) -> None:
    """Prove that notebooks are the same network: five levels against the reference in NumPy; writes conformance.md."""
    from rosetta.verify import command

    options = command.Options(task, data_dir, synthetic, out, python or [], gpus, jobs)
    raise typer.Exit(_alone("verify", lambda: command.verify(names or [], options)))


@app.command()
def crossload(
    names: Names = None,
    task: TaskOption = None,
    data_dir: DataOption = None,
    synthetic: SyntheticOption = False,
    train_size: Annotated[int | None, Count] = None,
    test_size: Annotated[int | None, Count] = None,
    out: OutOption = None,
    python: PythonOption = None,
    gpus: GpusOption = None,
    jobs: JobsOption = None,
) -> None:
    """Let rows evaluate each other's trained weights, all by all; writes conformance.md."""
    from rosetta.verify import command

    options = command.Options(task, data_dir, synthetic, out, python or [], gpus, jobs)
    raise typer.Exit(
        _alone(
            "crossload", lambda: command.crossload(names or [], {"N_TRAIN": train_size, "N_TEST": test_size}, options)
        )
    )


@app.command()
def sweep(
    names: Names = None,
    task: TaskOption = None,
    threads: Annotated[
        str | None, typer.Option(metavar="1,2,...", help="Numbers of processors; 1, 2, 4 ... up to all when not given.")
    ] = None,
    batch_size: Annotated[str, typer.Option(metavar="16,64,...", help="Images a step.")] = "16,64,256,1024",
    steps: Annotated[int, typer.Option(min=1, help="Steps that are timed at once.")] = 100,
    repeats: Annotated[int, typer.Option(min=1, help="How often: the mean and the spread of so many.")] = 5,
    data_dir: DataOption = None,
    synthetic: SyntheticOption = False,
    out: OutOption = None,
    python: PythonOption = None,
    gpus: GpusOption = None,
    plot: Annotated[bool, typer.Option("--plot", help="Draw the picture, too.")] = False,
) -> None:
    """Time forward, forward and backward, and the whole training step for numbers of threads and batch sizes."""
    from rosetta.speed import command
    from rosetta.speed.sweep import Protocol

    options = command.Options(
        command.numbers("--threads", threads) if threads else command.usual_threads(),
        Protocol(command.numbers("--batch-size", batch_size), steps, repeats, synthetic),
        task,
        data_dir,
        out,
        tuple(python or ()),
        gpus,
        plot,
    )
    raise typer.Exit(_alone("sweep", lambda: command.sweep(names or [], options)))


@app.command("list")
def list_rows(task: TaskOption = None, python: PythonOption = None) -> None:
    """List the rows, their environments, and their state on this machine."""
    from rosetta import commands

    commands.list_rows(task, python or [])


@app.command()
def doctor(python: PythonOption = None) -> None:
    """Tell what this machine has: Pythons, disk, GPU, data, environments."""
    from rosetta import doctor as checks

    raise typer.Exit(checks.main(python or []))


@app.command()
def report(
    out: OutOption = None,
    pictures: Annotated[bool, typer.Option("--pictures", help="Draw the pictures of results.md anew, too.")] = False,
) -> None:
    """Write results.md and conformance.md from what earlier commands have found."""
    from rosetta import commands

    commands.write_report(out, pictures)


@app.command()
def lab(
    names: Names = None,
    python: PythonOption = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Where JupyterLab listens; 8888 or the next.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Open JupyterLab with a kernel for every framework; makes the environments that they need."""
    from rosetta import lab as work

    options = [f"--port={port}"] if port else []
    raise typer.Exit(work.lab(names or [], python or [], [*options, *([] if browser else ["--no-browser"])]))


@app.command()
def site(
    to: Annotated[
        Path,
        typer.Option(file_okay=False, metavar="DIR", help="Where to write it; an earlier site there is replaced."),
    ] = Path("site"),
    out: OutOption = None,
    repository: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="The checkout's home on the web, for links to it; git's origin when not given."
        ),
    ] = None,
) -> None:
    """Write the site to read frameworks side by side: static pages that need no server."""
    from rosetta import commands

    commands.write_site(to, out, repository)


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
def watch(
    batch: Annotated[str, typer.Argument(metavar="[BATCH]", help="The batch; the latest when none is named.")] = LAST,
    out: OutOption = None,
) -> None:
    """Show the live table of a batch that runs elsewhere, until it ends. Exit code 1: its runner is gone."""
    from rosetta.batch import watching

    raise typer.Exit(watching.watch(batch, out))


def _alone(what: str, work: Callable[[], int]) -> int:
    """The exit code of work that no other runner may disturb; Typer would end without a word at Ctrl-C."""
    from rosetta import lock

    try:
        with lock.only_runner(what):
            return work()
    except KeyboardInterrupt:
        rest = "; run_all.py run --resume runs the rest" if what.startswith("run") else ""
        print(f"run_all.py: interrupted; finished runs are kept{rest}", file=sys.stderr)
        return 130


def completed(arguments: list[str]) -> list[str]:
    """The arguments with what may be left out: the command ``run`` before options, the batch after ``--resume``."""
    if arguments and arguments[0].startswith("-") and arguments[0] != "--help":
        arguments = ["run", *arguments]
    whole = []
    for argument, following in zip(arguments, [*arguments[1:], None]):
        whole.append(argument)
        if argument == "--resume" and (following is None or following.startswith("-")):
            whole.append(LAST)
    return whole


def main() -> None:
    """Run the command line; what the user can mend is one line on standard error and exit code 2."""
    try:
        app(completed(sys.argv[1:]))
    except RosettaError as error:
        print(f"run_all.py: {error}", file=sys.stderr)
        sys.exit(2)
