"""What runs on a worker of a Dask cluster: one planned run at a time, from the worker's own checkout."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
from distributed import Worker, get_worker
from distributed.worker import WORKER_ANY_RUNNING

from rosetta import data
from rosetta.cluster import checkout
from rosetta.cluster.members import GPU, RUN, Member, Unfit
from rosetta.errors import RosettaError
from rosetta.plan import Plan
from rosetta.run import devices, machine
from rosetta.run.devices import Slot
from rosetta.run.execute import Progress, Run, execute, not_run
from rosetta.run.kernels import Kernels, parse_given
from rosetta.run.processes import kill_runs

LOOK_S = 1.0  # how often a worker looks whether its run is still wanted

_loaded = checkout.contents()["rosetta"]  # the code that this process works with, whatever is checked out later


class Unwanted(Exception):
    """Nobody waits for this run any more: the batch has ended, or the scheduler has lost this worker."""


async def greet(contents: dict[str, str], worker: Worker) -> Member | str:
    """What this worker is to a batch whose checkout has these contents, or in a line why it takes no run of it."""
    answer = await asyncio.to_thread(_describe, contents, worker)
    if isinstance(answer, Member) and RUN not in worker.state.total_resources:
        await worker.set_resources(**{RUN: 1})
    return answer


def _describe(contents: dict[str, str], worker: Worker) -> Member | str:
    differs = _differing(contents)
    if differs:  # what follows may mean something else there
        return checkout.another(differs)
    slot = devices.first()
    trouble = slot.lost()
    return Member(
        worker.address,
        socket.gethostname(),
        slot,
        tuple(machine.processors()),
        GPU in worker.state.total_resources,
        None if slot.gpu is None or trouble else machine.uuid(slot.gpu),
        trouble,
    )


def run(
    topic: str,
    plan: dict[str, Any],
    contents: dict[str, str],
    python: list[str],
    data_dir: str | None,
    share: tuple[int, int],
) -> tuple[str, bytes | None, bytes | None]:
    """Execute one run: its record as JSON, its executed notebook and its log. Raises Unfit where the worker takes none.

    All of it is plain data, since the scheduler unpacks the arguments and need not have a checkout.
    topic: of the events that tell its progress. share: the part of the processors, and of how many it is one.
    """
    worker, key = get_worker(), get_worker().get_current_task()

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return worker.status in WORKER_ANY_RUNNING and task is not None and task.state != "cancelled"

    with _surroundings(data_dir), _ending_when(lambda: not wanted()):
        slot, differs = devices.first(*share), _differing(contents)
        reason = checkout.another(differs) if differs else slot.lost()
        if reason:
            raise Unfit(reason)

        def watch(progress: Progress) -> None:
            if not wanted():
                raise Unwanted
            worker.log_event(topic, {"key": key, "progress": vars(progress)})

        ended = _execute(Plan.model_validate(plan), slot, python, watch, worker)
        try:
            files = [file.read_bytes() if file.is_file() else None for file in (ended.executed, ended.log)]
            return ended.record.model_dump_json(by_alias=True), *files
        finally:
            ended.close()


def _differing(contents: dict[str, str]) -> list[str]:
    """The parts of this checkout that are not as given; ``rosetta`` too if it was edited since this process began."""
    here = checkout.contents()
    return checkout.differing(contents, here | {"rosetta": here["rosetta"] if here["rosetta"] == _loaded else "edited"})


def _execute(plan: Plan, slot: Slot, python: list[str], watch: Callable[[Progress], None], worker: Worker) -> Run:
    kernels = Kernels(parse_given(python), here=False)
    watch(Progress("preparing"))
    try:
        kernels = Kernels(kernels.given)
        if not plan.synthetic:
            data.locate(plan.dataset)
    except RosettaError as error:
        return not_run(plan, slot, kernels, "failed", str(error))
    # Below Dask's own folder, which it clears away after a worker that was killed
    return execute(plan, slot, kernels, watch, Path(worker.local_directory))


@contextmanager
def _surroundings(data_dir: str | None) -> Iterator[None]:
    """The variables that a run shall start with: those of the user's shell, not those that Dask's nanny adds for array work.

    A single thread for BLAS and OpenMP, as the nanny has it, would spoil every figure of a CPU.
    """
    added = dask.config.get("distributed.nanny.pre-spawn-environ", {})
    chosen = {name: None for name, value in added.items() if os.environ.get(name) == str(value)}
    if data_dir:
        chosen["ROSETTA_DATA"] = data_dir
    before = {name: os.environ.get(name) for name in chosen}
    _set(chosen)
    try:
        yield
    finally:
        _set(before)


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _ending_when(unwanted: Callable[[], bool]) -> Iterator[None]:
    """Kill the run that goes on inside as soon as nobody waits for it: a thread of Dask's cannot be interrupted otherwise."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_S):
            if unwanted():
                kill_runs()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
