"""A batch on the workers of a Dask cluster: ``run_all.py run --cluster``. Needs the optional extra ``cluster``.

Dask carries runs and answers, notices lost workers, and keeps a worker at one run at a time by a resource; docs/cluster.md says
why the rest is here. The first half works in the runner, the second on a worker, in a checkout like this one.
"""

import asyncio
import json
import logging
import os
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from rosetta import data, files, shell
from rosetta.errors import RosettaError
from rosetta.paths import checkout
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.run import devices, kernels, machine
from rosetta.run.devices import Slot
from rosetta.run.execute import Progress, Run, execute, new_folder, not_run
from rosetta.run.processes import kill_runs
from rosetta.terminal import Console

GPU = "GPU"  # the resource that marks a worker with a GPU of its own
RUN = "rosetta-run"  # the resource of which every worker gets one, so that Dask gives it one run at a time
LOOK_S = 0.1  # between two looks of the runner at the cluster
WANTED_S = 1.0  # between two looks of a worker whether its run is still wanted
RECIPES = (".toml", ".in", ".txt", ".py")  # what decides an environment, unlike what is installed beside it
LOST = (
    "its worker was lost, and so was that of the second attempt: killed, out of memory, or cut off from the scheduler"
)


class Unfit(RosettaError):
    """Why a worker takes no run."""


@dataclass(frozen=True)
class Member:
    """A worker with a checkout like this one, as it describes itself."""

    address: str
    host: str
    slot: Slot
    processors: tuple[int, ...]
    uuids: frozenset[str]  # of its GPUs

    @property
    def title(self) -> str:
        """For messages, where it must not be taken for another on its host."""
        return f"{self.address} ({self.host})"


@dataclass
class RemoteRun:
    """A run of the batch on its way through the cluster."""

    number: int
    plan: Plan
    member: Member | None = None  # that has it now
    future: Any = None
    beside: int = 0  # workers on the same processors
    lost_on: str | None = None  # the host of its first worker, if that was lost


def connect(where: str) -> Any:
    """A client of the scheduler, to be used as a context. Raises RosettaError within seconds.

    where: the scheduler's address, or the file that it has written.
    """
    try:
        address = json.loads(Path(where).read_text())["address"] if where.endswith(".json") else where
    except (OSError, ValueError, LookupError, TypeError):
        raise RosettaError(f"--cluster: {where} is no file that dask scheduler --scheduler-file has written") from None
    try:
        import dask.config
        from dask.utils import parse_timedelta
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ModuleNotFoundError:
        start = f"uv run --extra cluster run_all.py run --cluster {where}"
        raise RosettaError(f"--cluster needs Dask, which this Python lacks; start it as: {start}") from None
    # Where the user has not changed it: Dask's own 30 s are long for a person who waits
    dask.config.update_defaults({"distributed": {"comm": {"timeouts": {"connect": "4s"}}}})
    limit_s = parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))
    for name in ("distributed", "distributed.client"):  # the user is told in our own words
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with socket.create_connection(get_address_host_port(address), limit_s) as probe:
            if not address.startswith("tls:"):
                probe.recv(1)  # a scheduler speaks first; Dask would wait without end for a server that keeps silent
        return Client(address, set_as_default=False)
    except ValueError:
        raise RosettaError(f"--cluster takes tcp://HOST:PORT or a scheduler's file (.json), not {address}") from None
    except Exception as error:  # whatever else listens there
        reason = f"({getattr(error, 'strerror', None) or 'no answer'}); docs/cluster.md says how to start one"
        raise RosettaError(f"no Dask scheduler answers at {address} {reason}") from None


def contents() -> dict[str, str]:
    """SHA-256 of each part of a checkout that decides what a run does, by its name."""
    parts = {
        "notebooks": (file for file in checkout.notebooks.glob("*/*") if file.suffix in (".ipynb", ".toml")),
        "common": checkout.common.rglob("*.py"),
        "environments": (file for file in checkout.environments.glob("*/*") if file.suffix in RECIPES),
        "rosetta": (checkout.root / "rosetta").rglob("*.py"),
    }
    return {name: files.digest(part, checkout.root) for name, part in parts.items()}


_loaded = contents()["rosetta"]  # the code that this process works with, whatever is checked out later


class Cluster:
    """Executes the runs of a batch: one a worker at a time; a run whose worker is lost goes elsewhere once.

    Raises RosettaError where no usable worker is there. Each worker looks for the user's data and interpreters itself, and makes
    its environments.
    asked: the user's interpreters and builds, as ``kernels.chosen`` takes them, on the workers too. data_dir: on the workers.
    """

    def __init__(self, client: Any, asked: dict[str, list[str]], data_dir: str | None, console: Console):
        self.kernels, self.console = kernels.chosen(**asked, here=False), console
        self._client, self._topic = client, f"rosetta-{uuid.uuid4().hex}"
        self._job = contents(), asked, data_dir
        self._members: dict[str, Member] = {}  # workers that may be used, by address
        self._running: dict[str, RemoteRun] = {}  # by the key of the future
        self._waiting: deque[RemoteRun] = deque()
        self._messages: SimpleQueue = SimpleQueue()
        for topic in (self._topic, "all"):  # progress of runs; workers that come and go
            client.subscribe_topic(topic, lambda event: self._messages.put(event[1]))
        if not client.scheduler_info()["workers"]:
            self._note(f"no worker is at {client.scheduler.address} yet: waiting for the first (Ctrl-C ends)")
        while not (workers := client.scheduler_info()["workers"]):
            self._check()
            time.sleep(LOOK_S)
        self._gpu = any(GPU in worker["resources"] for worker in workers.values())  # whether runs need that resource
        refused = self._greet(workers)
        if not self._members:
            several = f" (and {len(refused) - 1} more such)" if len(refused) > 1 else ""
            raise RosettaError(f"no worker of the cluster can be used: {refused[0]}{several}")
        for reason in refused:
            self._note(reason)

    @property
    def slots(self) -> list[Slot]:
        return [member.slot for member in self._members.values()]

    def each(self, plans: list[tuple[int, Plan]], batch: Any) -> Iterator[Record]:
        """Execute the plans, each with its line of the journal; yields what the ``Batch`` has kept."""
        from distributed import as_completed

        self._waiting.extend(RemoteRun(number, plan) for number, plan in plans)
        ended, alone = as_completed(loop=self._client.loop, with_results=True, raise_errors=False), False
        while self._waiting or self._running:
            returned = {future.key: (future.status, result) for future, result in ended.next_batch(block=False)}
            self._check()  # all futures have ended when the scheduler is gone
            self._listen(batch)
            for key, run in list(self._running.items()):
                if key in returned:
                    status, result = returned[key]
                    outcome = LOST if status == "cancelled" else result[1] if status == "error" else result
                elif self._members.get(run.member.address) is not run.member:
                    run.future.cancel(force=True)  # or Dask would start it should a worker come back there
                    outcome = LOST
                else:
                    continue
                del self._running[key]
                if record := self._settle(run, outcome, batch):
                    yield record
            self._dispatch(ended)
            batch.journal.status.slots = max(len(self._members), 1)
            if self._waiting and not self._members and not alone:  # clusters may give workers when they can
                waiting = f"no worker is left for {len(self._waiting)} runs: waiting for one"
                self._note(f"{waiting} (Ctrl-C ends, run_all.py resume goes on later)")
            alone = not self._members
            time.sleep(LOOK_S)

    def _note(self, text: str) -> None:
        self.console.say(text, "yellow")

    def _check(self) -> None:
        """Raises RosettaError when the scheduler is gone."""
        if self._client.status != "running":
            lost = f"the scheduler at {self._client.scheduler.address} is gone"
            raise RosettaError(f"{lost}; finished runs are kept, and run_all.py resume goes on once it is back")

    def _greet(self, addresses: Iterable[str]) -> list[str]:
        """Ask workers what they are. Returns why some of them cannot be used, a line each."""
        question, refused = (on_worker("greet"), self._job[0], self._gpu), []
        try:
            answers = self._client.run(*question, workers=list(addresses), on_error="return")
        except OSError as error:
            return [f"the scheduler does not answer: {error}"]
        for address, answer in answers.items():
            if isinstance(answer, Exception):
                refused.append(f"worker {address}: {explained(answer)}")
            elif answer and (rivals := [one for one in self._members.values() if one.uuids & answer.uuids]):
                same = f"sees the same GPU as {rivals[0].title}: give each its own CUDA_VISIBLE_DEVICES"
                refused.append(f"worker {answer.title} {same}")
            elif answer:  # else it keeps out
                self._members[address] = answer
        return refused

    def _listen(self, batch: Any) -> None:
        """Workers have come or left; runs have gone on. What a lost worker says late of its run does not count."""
        come: set[str] = set()
        while not self._messages.empty():
            message = self._messages.get()
            if message.get("action") == "add-worker" and message["worker"] not in self._members:
                come.add(message["worker"])
            elif message.get("action") == "remove-worker":
                come.discard(message["worker"])
                self._members.pop(message["worker"], None)
            elif "progress" in message and (run := self._running.get(message["key"])):
                progress, slot = Progress(**message["progress"]), run.member.slot
                if progress.state == "preparing" and not progress.note:
                    host = run.member.host
                    batch.journal.begin(run.number, f"{host} {slot.title}" if slot.on_gpu else host)
                batch.journal.progress(run.number, progress)
        for reason in self._greet(come) if come else ():
            self._note(reason)

    def _dispatch(self, ended: Any) -> None:
        """Give every idle worker a run; one that was lost goes to another host if it can. ended: is told of the new futures."""
        busy = {run.member.address for run in self._running.values()}
        idle = [member for address, member in self._members.items() if address not in busy]
        while idle and self._waiting:
            run, key = self._waiting.popleft(), f"{self._topic}-{uuid.uuid4().hex}"
            run.member = next((member for member in idle if member.host != run.lost_on), idle[0])
            idle.remove(run.member)
            shared = run.member.host, run.member.processors
            sharing = sorted(one.address for one in self._members.values() if (one.host, one.processors) == shared)
            share, run.beside = (sharing.index(run.member.address), len(sharing)), len(sharing) - 1
            run.future = self._client.submit(
                on_worker("run"),
                *(key, self._topic, run.plan.model_dump(mode="json"), share, *self._job),
                key=key,
                workers=[run.member.address],
                resources={RUN: 1, GPU: 1} if self._gpu else {RUN: 1},
            )
            self._running[key] = run
            ended.add(run.future)

    def _settle(self, run: RemoteRun, outcome: Any, batch: Any) -> Record | None:
        """Keep a run, or let it wait for another worker. outcome: what has come back, an exception, or LOST."""
        if isinstance(outcome, Unfit):
            self._members.pop(run.member.address, None)
            self._note(f"worker {run.member.title}: {outcome}")
            self._waiting.appendleft(run)
            return None
        if outcome == LOST:
            lost = f"{run.plan.title}: worker {run.member.title} is lost"
            if not run.lost_on:  # a run that kills its workers must not go through the whole cluster
                self._note(f"{lost}; the run starts again on another")
                run.lost_on = run.member.host
                batch.journal.wait(run.number)
                self._waiting.appendleft(run)
                return None
            self._note(lost)
            ended = not_run(run.plan, run.member.slot, self.kernels, "crashed", LOST)
        elif isinstance(outcome, BaseException):
            fault = "" if isinstance(outcome, RosettaError) else "the worker could not run it: "
            ended = not_run(run.plan, run.member.slot, self.kernels, "failed", fault + explained(outcome))
        else:
            record, *outputs = outcome
            ended = Run(record, new_folder(batch.journal.folder))
            for file, content in zip((ended.executed, ended.log), outputs):
                if content is not None:
                    with suppress(OSError):  # the disk is full: its record may still find a place
                        file.write_bytes(content)
        ended.record.attempts = 2 if run.lost_on else 1
        return batch.keep(run.number, ended, run.beside)


def on_worker(name: str) -> Callable:
    """A function that calls one of this module on the worker where it is called.

    Being a nested one it travels as code, so that the scheduler, which unpacks it too, need not have a checkout.
    """

    async def call(*arguments, dask_worker=None):  # Dask fills that in for ``Client.run``
        from distributed import get_worker

        from rosetta import cluster

        return await getattr(cluster, name)(dask_worker or get_worker(), *arguments)

    return call


def explained(error: BaseException) -> str:
    """In a line, what is the matter with a worker that answers with an exception."""
    if isinstance(error, RosettaError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return (
            f"it cannot import {error.name}: start it with uv run --extra cluster and with PYTHONPATH set to a checkout "
            "of the same commit"
        )
    return f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"


# ---- From here on: on a worker


async def greet(worker: Any, expected: dict[str, str], gpu: bool) -> Member | None:
    """What this worker is to a batch; None where it keeps out, as a worker without a GPU does where others have one.

    expected: the contents of the batch's checkout. gpu: whether its workers have the resource GPU. Raises Unfit.
    """
    _check_same(expected)  # what follows may mean something else in another checkout
    if gpu and GPU not in worker.state.total_resources:
        return None
    slot = devices.first()
    if gpu and not slot.on_gpu:
        raise Unfit(f"it has the resource {GPU} but sees no GPU: mend its driver or start it without --resources")
    if reason := slot.lost():
        raise Unfit(reason)
    if RUN not in worker.state.total_resources:
        await worker.set_resources(**{RUN: 1})
    uuids = frozenset(machine.uuid(name) for name in slot.gpus)
    return Member(worker.address, socket.gethostname(), slot, tuple(machine.processors()), uuids)


def _check_same(expected: dict[str, str]) -> None:
    """Raises Unfit where this checkout has other contents, or its ``rosetta`` was edited since this process began."""
    here = contents()
    if here["rosetta"] != _loaded:
        here["rosetta"] = "edited"
    if parts := " and ".join(f"{name}/" for name in expected if here.get(name) != expected[name]):
        raise Unfit(
            f"its checkout has another {parts} than this one: bring both to one commit and start the worker anew"
        )


async def run(worker: Any, key: str, topic: str, *job: Any) -> tuple[Record, bytes | None, bytes | None]:
    """Execute one run: its record, its executed notebook and its log. Raises Unfit where the worker takes none.

    key: of Dask's task. topic: of the events that tell its progress. job: what ``_run`` takes. The run is killed as soon as
    nobody waits for it: Dask cannot interrupt a thread.
    """
    from distributed.worker import WORKER_ANY_RUNNING

    def wanted() -> bool:
        """Not where the batch has ended, or the scheduler has lost this worker."""
        task = worker.state.tasks.get(key)
        return worker.status in WORKER_ANY_RUNNING and task is not None and task.state != "cancelled"

    def watch(progress: Progress) -> None:
        if wanted():
            worker.log_event(topic, {"key": key, "progress": vars(progress)})

    running = asyncio.ensure_future(asyncio.to_thread(_run, worker.local_directory, watch, *job))
    while not running.done():
        with suppress(asyncio.CancelledError):  # the worker closes
            await asyncio.wait([running], timeout=WANTED_S)
        if not wanted():
            kill_runs()
    return running.result()


def _run(
    folder: str,
    watch: Callable[[Progress], None],
    planned: dict[str, Any],
    share: tuple[int, int],
    expected: dict[str, str],
    asked: dict[str, list[str]],
    data_dir: str | None,
) -> tuple[Record, bytes | None, bytes | None]:
    """folder: of the worker: Dask clears it away after one that was killed. planned: the plan as plain data, since the scheduler
    unpacks it too. share: the part of the processors, and of how many it is one."""
    with _surroundings(data_dir):
        _check_same(expected)
        slot, plan = devices.first(*share), Plan.model_validate(planned)
        if reason := slot.lost():
            raise Unfit(reason)
        watch(Progress("preparing"))
        chosen = kernels.chosen(**asked)
        data.locate_all([plan])
        ended = execute(plan, slot, chosen, watch, Path(folder))
        outputs = [file.read_bytes() if file.is_file() else None for file in (ended.executed, ended.log)]
        ended.close()
        return ended.record, *outputs


@contextmanager
def _surroundings(data_dir: str | None) -> Iterator[None]:
    """The variables of the user's shell, without those that Dask's nanny adds for array work, and the folder of the data.

    A single thread for BLAS and OpenMP, as the nanny has it, would spoil every figure of a CPU.
    """
    import dask

    before, added = dict(os.environ), dask.config.get("distributed.nanny.pre-spawn-environ", {})
    shell.settle()
    for name in [name for name, value in added.items() if before.get(name) == str(value)]:
        del os.environ[name]
    if data_dir:
        os.environ["ROSETTA_DATA"] = data_dir
    try:
        yield
    finally:
        os.environ.pop("ROSETTA_DATA", None)
        os.environ.update(before)
