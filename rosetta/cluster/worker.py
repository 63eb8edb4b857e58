"""What runs on a worker of a Dask cluster: one planned run at a time, from the worker's own checkout.

Both functions take and return plain data, so that a worker with another version of this file can still be told apart.
"""

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
from rosetta.errors import RosettaError
from rosetta.plan import Plan
from rosetta.run import devices, machine
from rosetta.run.devices import Slot
from rosetta.run.execute import Progress, Run, execute, not_run
from rosetta.run.kernels import Kernels, parse_given
from rosetta.run.processes import kill_runs

LOOK_S = 1.0  # how often a worker looks whether its run is still wanted

_loaded = checkout.contents()["rosetta"]  # the code that this process works with, whatever is checked out later
_turn = threading.Lock()  # a worker may have several threads, but timed runs do not go on side by side


class Unwanted(Exception):
    """Nobody waits for this run any more: the batch has ended, or the scheduler has lost this worker."""


def greet(contents: dict[str, str], worker: Worker) -> dict[str, Any]:
    """What this worker is to a batch whose checkout has these contents."""
    differs = _differing(contents)
    if differs:  # what follows may mean something else there
        return {"host": socket.gethostname(), "differs": differs}
    slot = devices.first()
    trouble = slot.lost()
    return {
        "host": socket.gethostname(),
        "differs": [],
        "trouble": trouble,
        "machine": slot.machine.model_dump(),
        "gpus": slot.gpus,
        "uuid": machine.uuid(slot.gpus[0]) if slot.on_gpu and not trouble else None,
        "processors": machine.processors(),
        "resources": dict(worker.state.total_resources),
    }


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Execute one run: its record and files, or under "unfit" why this worker cannot take runs any more."""
    worker, task = get_worker(), get_worker().get_current_task()

    def wanted() -> bool:
        state = worker.state.tasks.get(task)
        return worker.status in WORKER_ANY_RUNNING and state is not None and state.state != "cancelled"

    with _one_at_a_time(wanted), _surroundings(job["data_dir"]), _ending_when(lambda: not wanted()):
        differs = _differing(job["contents"])
        if differs:
            return {"unfit": checkout.another(differs)}
        slot = devices.first(*job["share"])
        reason = slot.lost()
        if reason:
            return {"unfit": reason}

        def watch(progress: Progress) -> None:
            if not wanted():
                raise Unwanted
            worker.log_event(
                job["topic"], {"number": job["number"], "attempt": job["attempt"], "progress": vars(progress)}
            )

        ended = _execute(Plan.model_validate(job["plan"]), slot, job["python"], watch, worker)
        try:
            return {"record": ended.record.model_dump_json(by_alias=True)} | {
                name: file.read_bytes() if file.is_file() else None
                for name, file in (("executed", ended.executed), ("log", ended.log))
            }
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
def _one_at_a_time(wanted: Callable[[], bool]) -> Iterator[None]:
    while not _turn.acquire(timeout=LOOK_S):
        if not wanted():
            raise Unwanted
    try:
        yield
    finally:
        _turn.release()


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
