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
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from rosetta import data, files
from rosetta.errors import RosettaError
from rosetta.paths import checkout
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.run import devices, kernels, machine
from rosetta.run.devices import Slot
from rosetta.run.execute import Progress, Run, execute, new_folder, not_run
from rosetta.run.processes import kill_runs

GPU = "GPU"  # the resource that marks a worker with a GPU of its own
RUN = "rosetta-run"  # the resource of which every worker gets one, so that Dask gives it one run at a time
ATTEMPTS = 2  # a run that kills its worker must not go through the whole cluster
LOOK_S = 0.1  # between two looks of the runner at the cluster
WANTED_S = 1.0  # between two looks of a worker whether its run is still wanted
RECIPES = (".toml", ".in", ".txt", ".py")  # what decides an environment, unlike what is installed beside it
LOST = (
    "its worker was lost, and so was that of the second attempt: killed, out of memory, or cut off from the scheduler"
)


class Unfit(Exception):
    """Why a worker takes no run, in a line."""


@dataclass(frozen=True)
class Member:
    """A worker with a checkout like this one, as it describes itself."""

    address: str
    host: str
    slot: Slot
    processors: tuple[int, ...]
    uuids: frozenset[str]  # of its GPUs

    @property
    def where(self) -> str:
        """For the batch's table."""
        return f"{self.host} {self.slot.title}" if self.slot.on_gpu else self.host

    @property
    def title(self) -> str:
        """For messages, where it must not be taken for another on its host."""
        return f"{self.address} ({self.host})"


@dataclass
class RemoteRun:
    """A run of the batch on its way through the cluster."""

    number: int
    plan: Plan
    lost_on: list[str] = field(default_factory=list)  # the hosts whose workers were lost while they had it
    member: Member | None = None  # that has it now
    future: Any = None
    beside: int = 0  # workers on the same processors


def connect(where: str) -> Any:
    """A client of the scheduler. where: its address, or the file that it has written. Raises RosettaError within seconds."""
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
    try:  # at once: Dask would try again until its limit
        socket.create_connection(get_address_host_port(address), limit_s).close()
    except ValueError:
        raise RosettaError(f"--cluster takes tcp://HOST:PORT or a scheduler's file (.json), not {address}") from None
    except OSError as error:
        reason = f"({error.strerror or 'no answer'}); docs/cluster.md says how to start one"
        raise RosettaError(f"no Dask scheduler answers at {address} {reason}") from None
    client: Future = Future()

    def start() -> None:
        try:
            client.set_result(Client(address, set_as_default=False))
        except Exception as error:
            client.set_exception(error)

    # Dask sets no limit to a server that accepts a connection and then keeps silent
    Thread(target=start, daemon=True).start()
    try:
        return client.result(limit_s + 1)
    except Exception:
        raise RosettaError(
            f"what listens at {address} does not answer as a Dask scheduler of this version does"
        ) from None


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


class Cluster(AbstractContextManager):
    """Executes the runs of a batch: one a worker at a time; a run whose worker is lost goes elsewhere once.

    Use as a context; raises RosettaError where no scheduler or no usable worker is there. Each worker looks for the user's data and
    interpreters itself, and makes its environments.
    where: the scheduler's address, or the file that it has written. data_dir: on the workers. note: tells the user a line.
    asked: the user's interpreters and builds, as ``kernels.chosen`` takes them, on the workers too.
    """

    def __init__(self, where: str, asked: dict[str, list[str]], data_dir: str | None, note: Callable[[str], None]):
        self.kernels = kernels.chosen(**asked, here=False)
        self._client, self._topic, self._note = connect(where), f"rosetta-{uuid.uuid4().hex}", note
        self._job = contents(), asked, data_dir
        self._members: dict[str, Member] = {}  # workers that may be used, by address
        self._running: dict[str, RemoteRun] = {}  # by the key of the future
        self._waiting: deque[RemoteRun] = deque()
        # Progress of runs; workers that come and go
        self._messages = {self._topic: SimpleQueue(), "all": SimpleQueue()}
        self._alone = False  # whether the user knows that no worker is left
        try:
            for topic, queue in self._messages.items():
                self._client.subscribe_topic(topic, lambda event, queue=queue: queue.put(event[1]))
            if not self._client.scheduler_info()["workers"]:
                note(f"no worker is at {self._client.scheduler.address} yet: waiting for the first (Ctrl-C ends)")
            while not (workers := self._client.scheduler_info()["workers"]):
                self._check()
                time.sleep(LOOK_S)
            # Whether runs need that resource
            self._gpu = any(GPU in worker["resources"] for worker in workers.values())
            refused = self._greet(workers)
            if not self._members:
                several = f" (and {len(refused) - 1} more such)" if len(refused) > 1 else ""
                raise RosettaError(f"no worker of the cluster can be used: {refused[0]}{several}")
            for reason in refused:
                note(reason)
        except BaseException:
            self._client.close(timeout=5)
            raise

    def __exit__(self, *_) -> None:
        self._client.close(timeout=5)

    @property
    def slots(self) -> list[Slot]:
        return [member.slot for member in self._members.values()]

    def each(self, plans: list[tuple[int, Plan]], batch: Any) -> Iterator[Record]:
        """Execute the plans, each with its line of the journal; yields what the ``Batch`` has kept."""
        from distributed import as_completed

        ended = as_completed(loop=self._client.loop, with_results=True, raise_errors=False)
        self._note = batch.screen.note
        self._waiting.extend(RemoteRun(number, plan) for number, plan in plans)
        try:
            while self._waiting or self._running:
                came_back = ended.next_batch(block=False)
                self._check()  # all futures have ended when the scheduler is gone
                self._tell(batch)
                runs = [
                    (run, LOST if future.status == "cancelled" else result[1] if future.status == "error" else result)
                    for future, result in came_back
                    if (run := self._running.pop(future.key, None))
                ]
                self._renew_members()
                for run in list(self._running.values()):
                    if self._members.get(run.member.address) is not run.member:
                        del self._running[run.future.key]
                        # Or Dask would start it should a worker come back there
                        self._client.cancel([run.future], force=True)
                        runs.append((run, LOST))
                yield from filter(None, (self._settle(run, result, batch) for run, result in runs))
                ended.update(self._dispatch(batch))
                time.sleep(LOOK_S)
        finally:
            if self._client.status == "running":
                self._client.cancel([run.future for run in self._running.values()], force=True)

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

    def _renew_members(self) -> None:
        """Workers have come, or left."""
        come, changes = dict[str, None](), self._messages["all"]
        while not changes.empty():
            change = changes.get()
            if change.get("action") == "add-worker" and change["worker"] not in self._members:
                come[change["worker"]] = None
            elif change.get("action") == "remove-worker":
                come.pop(change["worker"], None)
                self._members.pop(change["worker"], None)
        for reason in self._greet(come) if come else ():
            self._note(reason)

    def _dispatch(self, batch: Any) -> list:
        """Give every idle worker a run; one that was lost goes to another host if it can. Returns the new futures."""
        busy, futures = {run.member.address for run in self._running.values()}, []
        idle = [member for address, member in self._members.items() if address not in busy]
        while idle and self._waiting:
            run, key = self._waiting.popleft(), f"{self._topic}-{uuid.uuid4().hex}"
            run.member = next((member for member in idle if member.host not in run.lost_on), idle[0])
            idle.remove(run.member)
            place = run.member.host, run.member.processors
            sharing = sorted(one.address for one in self._members.values() if (one.host, one.processors) == place)
            share, run.beside = (sharing.index(run.member.address), len(sharing)), len(sharing) - 1
            run.future = self._client.submit(
                on_worker("run"),
                *(key, self._topic, run.plan.model_dump(mode="json"), share, *self._job),
                key=key,
                workers=[run.member.address],
                resources={RUN: 1, GPU: 1} if self._gpu else {RUN: 1},
            )
            self._running[key] = run
            futures.append(run.future)
        batch.journal.status.slots = max(len(self._members), 1)
        if self._waiting and not self._members and not self._alone:  # clusters may give workers when they can
            self._note(
                f"no worker is left for {len(self._waiting)} runs: waiting for one (Ctrl-C ends, run_all.py resume goes on later)"
            )
        self._alone = not self._members
        return futures

    def _tell(self, batch: Any) -> None:
        """Show the progress of the runs; what a lost worker has said late does not count."""
        while not self._messages[self._topic].empty():
            message = self._messages[self._topic].get()
            if run := self._running.get(message["key"]):
                if message["progress"]["state"] == "preparing" and not message["progress"]["note"]:
                    batch.journal.begin(run.number, run.member.where)
                batch.progress(run.number, Progress(**message["progress"]))

    def _settle(self, run: RemoteRun, result: Any, batch: Any) -> Record | None:
        """Keep a run, or let it wait for another worker. result: what has come back, an exception, or LOST."""
        from distributed import KilledWorker

        if isinstance(result, Unfit):
            self._members.pop(run.member.address, None)
            self._note(f"worker {run.member.title}: {result}")
            self._waiting.appendleft(run)
            return None
        if result == LOST or isinstance(result, KilledWorker):
            again = len(run.lost_on) + 1 < ATTEMPTS
            lost = f"{run.plan.title}: worker {run.member.title} is lost"
            self._note(f"{lost}; the run starts again on another" if again else lost)
            if again:
                run.lost_on.append(run.member.host)
                batch.journal.wait(run.number)
                self._waiting.appendleft(run)
                return None
            ended = not_run(run.plan, run.member.slot, self.kernels, "crashed", LOST)
        elif isinstance(result, BaseException):
            reason = f"the worker could not run it: {explained(result)}"
            ended = not_run(run.plan, run.member.slot, self.kernels, "failed", reason)
        else:
            record, *outputs = result
            ended = Run(Record.model_validate_json(record), new_folder(batch.journal.folder))
            for file, content in zip((ended.executed, ended.log), outputs):
                if content is not None:
                    with suppress(OSError):  # the disk is full: its record may still find a place
                        file.write_bytes(content)
        ended.record.attempts = len(run.lost_on) + 1
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
    if isinstance(error, Unfit):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("rosetta"):
        return "it finds no checkout of this runner, or an older one: start it with PYTHONPATH set to one of the same commit"
    if isinstance(error, ModuleNotFoundError):
        return f"its Python lacks {error.name}: start it from the runner's environment (uv run --extra cluster)"
    return f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"


# ---- From here on: on a worker


class Unwanted(BaseException):  # no Exception: those of a run end as its record
    """Nobody waits for this run any more: the batch has ended, or the scheduler has lost this worker."""


async def greet(worker: Any, expected: dict[str, str], gpu: bool) -> Member | None:
    """What this worker is to a batch; None where it keeps out, as a worker without a GPU does where others have one.

    expected: the contents of the batch's checkout. gpu: whether its workers have the resource GPU. Raises Unfit.
    """
    member = await asyncio.to_thread(_describe, worker, expected, gpu)
    if member and RUN not in worker.state.total_resources:
        await worker.set_resources(**{RUN: 1})
    return member


def _describe(worker: Any, expected: dict[str, str], gpu: bool) -> Member | None:
    _check_same(expected)  # what follows may mean something else in another checkout
    if gpu and GPU not in worker.state.total_resources:
        return None
    slot = devices.first()
    if gpu and not slot.on_gpu:
        raise Unfit(f"it has the resource {GPU} but sees no GPU: mend its driver or start it without --resources")
    if reason := slot.lost():
        raise Unfit(reason)
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


async def run(worker: Any, key: str, topic: str, *job: Any) -> tuple[str, bytes | None, bytes | None]:
    """Execute one run: its record as JSON, its executed notebook and its log. Raises Unfit where the worker takes none.

    key: of Dask's task. topic: of the events that tell its progress. job: what ``_run`` takes. The run is killed as soon as
    nobody waits for it: Dask cannot interrupt a thread.
    """
    from distributed.worker import WORKER_ANY_RUNNING

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
            await asyncio.wait([running], timeout=WANTED_S)
        if not wanted():
            kill_runs()
    return running.result()


def _run(
    worker: Any,
    watch: Callable[[Progress], None],
    planned: dict[str, Any],
    share: tuple[int, int],
    expected: dict[str, str],
    asked: dict[str, list[str]],
    data_dir: str | None,
) -> tuple[str, bytes | None, bytes | None]:
    """planned: as plain data, since the scheduler unpacks it too. share: the part of the processors, and of how many it is one."""
    with _surroundings(data_dir):
        _check_same(expected)
        slot, plan = devices.first(*share), Plan.model_validate(planned)
        if reason := slot.lost():
            raise Unfit(reason)
        watch(Progress("preparing"))
        try:
            chosen = kernels.chosen(**asked)
            data.locate_all([plan])
            # Below Dask's own folder, which it clears away after a worker that was killed
            ended = execute(plan, slot, chosen, watch, Path(worker.local_directory))
        except RosettaError as error:
            ended = not_run(plan, slot, kernels.chosen(**asked, here=False), "failed", str(error))
        try:
            outputs = [file.read_bytes() if file.is_file() else None for file in (ended.executed, ended.log)]
            return ended.record.model_dump_json(by_alias=True), *outputs
        finally:
            ended.close()


@contextmanager
def _surroundings(data_dir: str | None) -> Iterator[None]:
    """The variables that a run shall start with: those of the user's shell, not those that Dask's nanny adds for array work.

    A single thread for BLAS and OpenMP, as the nanny has it, would spoil every figure of a CPU.
    """
    import dask

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
