"""What runs on a worker of a Dask cluster: one planned run at a time, from the worker's own checkout."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
from distributed import Worker
from distributed.worker import WORKER_ANY_RUNNING

from rosetta import data
from rosetta.cluster import checkout
from rosetta.cluster.member import GPU, RUN, Member, Unfit
from rosetta.errors import RosettaError
from rosetta.plan import Plan
from rosetta.run import devices, machine
from rosetta.run.devices import Slot
from rosetta.run.execute import Progress, Run, execute, not_run
from rosetta.run.kernels import chosen
from rosetta.run.processes import kill_runs

LOOK_S = 1.0  # how often a worker looks whether its run is still wanted

_loaded = checkout.contents()["rosetta"]  # the code that this process works with, whatever is checked out later


class Unwanted(BaseException):  # no Exception: those of a run end as its record
    """Nobody waits for this run any more: the batch has ended, or the scheduler has lost this worker."""


async def greet(worker: Worker, contents: dict[str, str], gpu: bool) -> Member | None:
    """What this worker is to a batch; None where it keeps out, as a worker without a GPU does where others have one.

    contents: of the batch's checkout. gpu: whether its workers have the resource GPU. Raises Unfit.
    """
    member = await asyncio.to_thread(_describe, worker, contents, gpu)
    if member and RUN not in worker.state.total_resources:
        await worker.set_resources(**{RUN: 1})
    return member


async def run(worker: Worker, key: str, topic: str, *job: Any) -> tuple[str, bytes | None, bytes | None]:
    """Execute one run: its record as JSON, its executed notebook and its log. Raises Unfit where the worker takes none.

    key: of Dask's task. topic: of the events that tell its progress. job: what ``_run`` takes. The run is killed as soon as
    nobody waits for it: Dask cannot interrupt a thread.
    """

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return worker.status in WORKER_ANY_RUNNING and task is not None and task.state != "cancelled"

    def watch(progress: Progress) -> None:
        if not wanted():
            raise Unwanted
        worker.log_event(topic, {"key": key, "progress": vars(progress)})

    running = asyncio.ensure_future(asyncio.to_thread(_run, worker, watch, *job))
    while not running.done():
        with suppress(asyncio.CancelledError):  # the worker closes
            await asyncio.wait([running], timeout=LOOK_S)
        if not wanted():
            kill_runs()
    return running.result()


def _run(
    worker: Worker,
    watch: Callable[[Progress], None],
    contents: dict[str, str],
    plan: dict[str, Any],
    share: tuple[int, int],
    asked: dict[str, list[str]],
    data_dir: str | None,
) -> tuple[str, bytes | None, bytes | None]:
    """plan: as plain data, since the scheduler unpacks it too. share: the part of the processors, and of how many it is one."""
    with _surroundings(data_dir):
        _check_same(contents)
        slot = devices.first(*share)
        if reason := slot.lost():
            raise Unfit(reason)
        ended = _execute(Plan.model_validate(plan), slot, asked, watch, worker)
        try:
            files = [file.read_bytes() if file.is_file() else None for file in (ended.executed, ended.log)]
            return ended.record.model_dump_json(by_alias=True), *files
        finally:
            ended.close()


def _execute(
    plan: Plan, slot: Slot, asked: dict[str, list[str]], watch: Callable[[Progress], None], worker: Worker
) -> Run:
    watch(Progress("preparing"))
    try:
        kernels = chosen(**asked)
        data.locate_all([plan])
    except RosettaError as error:
        return not_run(plan, slot, chosen(**asked, here=False), "failed", str(error))
    # Below Dask's own folder, which it clears away after a worker that was killed
    return execute(plan, slot, kernels, watch, Path(worker.local_directory))


def _describe(worker: Worker, contents: dict[str, str], gpu: bool) -> Member | None:
    _check_same(contents)  # what follows may mean something else in another checkout
    if gpu and GPU not in worker.state.total_resources:
        return None
    slot = devices.first()
    if gpu and not slot.on_gpu:
        raise Unfit(f"it has the resource {GPU} but sees no GPU: mend its driver or start it without --resources")
    if reason := slot.lost():
        raise Unfit(reason)
    uuids = frozenset(machine.uuid(name) for name in slot.gpus)
    return Member(worker.address, socket.gethostname(), slot, tuple(machine.processors()), uuids)


def _check_same(contents: dict[str, str]) -> None:
    """Raises Unfit where this checkout has other contents, or its ``rosetta`` was edited since this process began."""
    ours = checkout.contents()
    if ours["rosetta"] != _loaded:
        ours["rosetta"] = "edited"
    if parts := " and ".join(f"{name}/" for name in contents if ours.get(name) != contents[name]):
        raise Unfit(
            f"its checkout has another {parts} than this one: bring both to one commit and start the worker anew"
        )


@contextmanager
def _surroundings(data_dir: str | None) -> Iterator[None]:
    """The variables that a run shall start with: those of the user's shell, not those that Dask's nanny adds for array work.

    A single thread for BLAS and OpenMP, as the nanny has it, would spoil every figure of a CPU.
    """
    before, added = dict(os.environ), dask.config.get("distributed.nanny.pre-spawn-environ", {})
    for name in [name for name, value in added.items() if before.get(name) == str(value)]:
        del os.environ[name]
    if data_dir:
        os.environ["ROSETTA_DATA"] = data_dir
    try:
        yield
    finally:
        os.environ.pop("ROSETTA_DATA", None)
        os.environ.update(before)
