"""A Dask cluster as the place of a batch's runs: one a worker at a time, and a run whose worker is lost goes elsewhere once."""

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from rosetta.batch.batch import Batch, Executor, Numbered
from rosetta.cluster.connection import check, connect
from rosetta.cluster.member import GPU, RUN, Member, Unfit
from rosetta.cluster.members import LOOK_S, Members, explained, on_worker
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.run import kernels
from rosetta.run.devices import Slot
from rosetta.run.execute import Progress, Run, new_folder, not_run

ATTEMPTS = 2  # a run that kills its worker must not go through the whole cluster
LOST = (
    "its worker was lost, and so was that of the second attempt: killed, out of memory, or cut off from the scheduler"
)


@dataclass
class RemoteRun:
    """A run of the batch on its way through the cluster."""

    number: int
    plan: Plan
    lost_on: list[str] = field(default_factory=list)  # the hosts whose workers were lost while they had it
    member: Member | None = None  # that has it now
    future: Any = None
    begun: bool = False  # whether that one has told so
    beside: int = 0  # workers on the same processors

    @property
    def attempt(self) -> int:
        return len(self.lost_on) + 1


class Cluster(Executor, AbstractContextManager):
    """An executor of batches. Use as a context; raises RosettaError where no scheduler or no usable worker is found.

    It checks and prepares nothing: each worker looks for the user's data and interpreters, and makes its environments.
    where: the scheduler's address, or the file that it has written. data_dir: on the workers.
    asked: the user's interpreters and builds, as ``kernels.chosen`` takes them, on the workers too. note: tells the user something in a line.
    """

    def __init__(self, where: str, asked: dict[str, list[str]], data_dir: str | None, note: Callable[[str], None]):
        self.kernels, self.asked, self.data_dir = kernels.chosen(**asked, here=False), asked, data_dir
        self._client, self._topic = connect(where), f"rosetta-{uuid.uuid4().hex}"
        from distributed import as_completed

        self._ended = as_completed(loop=self._client.loop, with_results=True, raise_errors=False)
        self._messages: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._waiting: deque[RemoteRun] = deque()
        self._running: dict[str, RemoteRun] = {}  # by the key of the future
        self._alone = False  # whether the user has been told that no worker is left
        try:
            self._client.subscribe_topic(self._topic, lambda event: self._messages.put(event[1]))
            self._members = Members(self._client, note)
        except BaseException:
            self._client.close(timeout=5)
            raise

    def __exit__(self, *_) -> None:
        self._client.close(timeout=5)

    @property
    def slots(self) -> list[Slot]:
        return [member.slot for member in self._members.present.values()]

    def each(self, plans: Numbered, batch: Batch) -> Iterator[Record]:
        self._members.note = batch.screen.note
        self._waiting.extend(RemoteRun(number, plan) for number, plan in plans)
        try:
            while self._waiting or self._running:
                yield from filter(None, self._step(batch))
                time.sleep(LOOK_S)
        finally:
            if self._client.status == "running":
                self._client.cancel([run.future for run in self._running.values()], force=True)

    def _step(self, batch: Batch) -> Iterator[Record | None]:
        """Deal with what has happened since the last time."""
        ended = self._ended.next_batch(block=False)
        check(self._client)  # all futures have ended when it is gone
        self._tell(batch)
        for future, result in ended:
            if run := self._running.pop(future.key, None):
                yield self._end(run, result, batch)
        self._members.renew()
        for key, run in list(self._running.items()):
            if self._members.present.get(run.member.address) is not run.member:
                del self._running[key]
                self._client.cancel([run.future], force=True)  # or Dask would start it should a worker come back there
                yield self._lose(run, batch)
        self._dispatch(batch)

    def _dispatch(self, batch: Batch) -> None:
        """Give every free worker a run; one that was lost goes to another host if it can."""
        present = self._members.present
        busy = {run.member.address for run in self._running.values()}
        free = [member for address, member in present.items() if address not in busy]
        while free and self._waiting:
            run = self._waiting.popleft()
            member = next((member for member in free if member.host not in run.lost_on), free[0])
            free.remove(member)
            self._start(run, member)
        batch.journal.resize(len(present))
        if self._waiting and not present and not self._alone:  # clusters may give workers when they can
            self._members.note(
                f"no worker is left for {len(self._waiting)} runs: waiting for one (Ctrl-C ends, run_all.py resume goes on later)"
            )
        self._alone = not present

    def _start(self, run: RemoteRun, member: Member) -> None:
        sharing, key = self._members.beside(member), f"{self._topic}-{uuid.uuid4().hex}"
        run.member, run.begun, run.beside = member, False, len(sharing) - 1
        share = sharing.index(member.address), len(sharing)
        job = self._members.contents, run.plan.model_dump(mode="json"), share, self.asked, self.data_dir
        resources = {RUN: 1, GPU: 1} if self._members.gpu else {RUN: 1}
        run.future = self._client.submit(
            on_worker("run"), key, self._topic, *job, key=key, workers=[member.address], resources=resources
        )
        self._running[key] = run
        self._ended.add(run.future)

    def _tell(self, batch: Batch) -> None:
        """Progress of the runs; what a lost worker has told late does not count."""
        while not self._messages.empty():
            message = self._messages.get()
            if run := self._running.get(message["key"]):
                if not run.begun:
                    run.begun = True
                    batch.journal.begin(run.number, run.member.where)
                batch.progress(run.number, Progress(**message["progress"]))

    def _end(self, run: RemoteRun, result: Any, batch: Batch) -> Record | None:
        """A run has come back, or an exception in its place."""
        from distributed import KilledWorker

        error = result[1] if run.future.status == "error" else None
        if run.future.status == "cancelled" or isinstance(error, KilledWorker):
            return self._lose(run, batch)
        if isinstance(error, Unfit):
            self._members.present.pop(run.member.address, None)
            self._members.note(f"worker {run.member.title}: {error}")
            self._waiting.appendleft(run)
            return None
        if error:
            reason = f"the worker could not run it: {explained(error)}"
            return self._keep(run, not_run(run.plan, run.member.slot, self.kernels, "failed", reason), batch)
        return self._keep(run, _received(*result, batch.journal.folder), batch)

    def _lose(self, run: RemoteRun, batch: Batch) -> Record | None:
        """A worker is gone with its run, which starts again elsewhere or, after the second time, has crashed."""
        lost = f"{run.plan.title}: worker {run.member.title} is lost"
        if run.attempt == ATTEMPTS:
            self._members.note(lost)
            return self._keep(run, not_run(run.plan, run.member.slot, self.kernels, "crashed", LOST), batch)
        self._members.note(f"{lost}; the run starts again on another")
        run.lost_on.append(run.member.host)
        batch.journal.wait(run.number)
        self._waiting.appendleft(run)
        return None

    def _keep(self, run: RemoteRun, ended: Run, batch: Batch) -> Record:
        ended.record.attempts = run.attempt
        return batch.keep(run.number, ended, run.beside)


def _received(record: str, executed: bytes | None, log: bytes | None, folder: Path) -> Run:
    """A run that has come back as bytes, laid out as one of this machine's is."""
    run = Run(Record.model_validate_json(record), new_folder(folder))
    for file, content in ((run.executed, executed), (run.log, log)):
        if content is not None:
            with suppress(OSError):  # the disk is full: its record may still find a place
                file.write_bytes(content)
    return run
