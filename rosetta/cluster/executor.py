"""A Dask cluster as the place of a batch's runs: one a worker at a time, and a run whose worker is lost goes elsewhere once."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rosetta.batch.batch import Batch, Numbered
from rosetta.cluster.members import GPU, Member, Members, explained
from rosetta.cluster.scheduler import Answered, Scheduler, Told, WorkerLost
from rosetta.interrupts import terminate_as_interrupt
from rosetta.plan import Plan
from rosetta.records import Record
from rosetta.run.devices import Slot
from rosetta.run.execute import Progress, Run, new_folder, not_run
from rosetta.run.kernels import Kernels, parse_given

ATTEMPTS = 2  # a run that kills its worker must not go through the whole cluster
LOST = (
    "its worker was lost, and so was that of the second attempt: killed, out of memory, or cut off from the scheduler"
)


@dataclass
class RemoteRun:
    """A run of the batch on its way through the cluster."""

    number: int
    plan: Plan
    lost_on: list[Member] = field(default_factory=list)  # the workers that were lost while they had it
    member: Member | None = None  # that has it now
    begun: bool = False  # whether that one has told so
    beside: int = 0  # workers on the same processors
    future: Any = None

    @property
    def attempt(self) -> int:
        return len(self.lost_on) + 1


@dataclass(frozen=True)
class Call:
    """One attempt of a run, to know its answer by."""

    run: RemoteRun
    attempt: int


class Cluster:
    """An executor of batches. Use as a context; raises RosettaError where no scheduler or no usable worker is found.

    where: the scheduler's address, or the file that it has written. data_dir: on the workers.
    python: the user's interpreters, as ``--python`` takes them, on the workers too. note: tells the user something in a line.
    """

    def __init__(self, where: str, python: list[str], data_dir: str | None, note: Callable[[str], None]):
        self.kernels, self.python, self.data_dir = Kernels(parse_given(python), here=False), python, data_dir
        self._scheduler = Scheduler(where)
        try:
            self._members = Members(self._scheduler, note)
        except BaseException:
            self._scheduler.close()
            raise
        self._waiting: deque[RemoteRun] = deque()
        self._running: dict[str, RemoteRun] = {}  # by the worker's address
        self._alone = False  # whether the user has been told that no worker is left

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_) -> None:
        self._scheduler.close()

    @property
    def slots(self) -> list[Slot]:
        return [member.slot for member in self._members.present.values()]

    @property
    def gpu(self) -> bool:
        """Whether its runs go to workers with the resource GPU alone."""
        return self._members.gpu

    def prepare(self, plans: Numbered, folder: Path) -> None:
        """Nothing: each worker finds its data and makes its environments when a run asks for them."""

    def each(self, plans: Numbered, batch: Batch) -> Iterator[Record]:
        self._members.note = batch.screen.note
        self._waiting.extend(RemoteRun(number, plan) for number, plan in plans)
        with terminate_as_interrupt():
            try:
                while self._waiting or self._running:
                    self._dispatch(batch)
                    self._tell_of_no_worker()
                    record = self._next(batch)
                    if record:
                        yield record
            finally:
                self._scheduler.cancel(run.future for run in self._running.values())

    def _tell_of_no_worker(self) -> None:
        """Once each time that all are gone; a new one is waited for, since clusters may give workers when they can."""
        if self._members.present:
            self._alone = False
        elif not self._alone:
            self._alone = True
            self._members.note(
                f"no worker is left for {len(self._waiting)} runs: waiting for one (Ctrl-C ends, --resume goes on later)"
            )

    def _dispatch(self, batch: Batch) -> None:
        """Give every free worker a run; one that was lost goes to another host if it can."""
        free = [member for address, member in self._members.present.items() if address not in self._running]
        while free and self._waiting:
            run = self._waiting.popleft()
            hosts = {member.host for member in run.lost_on}
            member = next((member for member in free if member.host not in hosts), free[0])
            free.remove(member)
            self._start(run, member)
        batch.journal.resize(len(self._members.present))

    def _start(self, run: RemoteRun, member: Member) -> None:
        sharing = self._members.beside(member)
        job = {
            "topic": self._scheduler.topic,
            "number": run.number,
            "attempt": run.attempt,
            "plan": run.plan.model_dump(mode="json"),
            "contents": self._members.contents,
            "python": self.python,
            "data_dir": self.data_dir,
            "share": (sharing.index(member.address), len(sharing)),
        }
        run.member, run.begun, run.beside = member, False, len(sharing) - 1
        call, resources = Call(run, run.attempt), {GPU: 1} if self.gpu else {}
        run.future = self._scheduler.submit(member.address, "run", job, call, resources)
        self._running[member.address] = run

    def _next(self, batch: Batch) -> Record | None:
        """Wait for the next event and deal with it; returns the record of a run that has ended by it."""
        event = self._scheduler.next(timeout=1.0)
        if isinstance(event, Told):
            self._tell(event.message, batch)
        elif isinstance(event, Answered) and isinstance(event.call, Call):
            run = event.call.run
            if event.call.attempt == run.attempt and self._running.get(run.member.address) is run:
                return self._ended(run, event.result, batch)
        elif event is not None:
            gone = self._members.changed(event)
            if gone and gone.address in self._running:
                return self._lost(self._running[gone.address], batch)
        return None

    def _tell(self, message: dict[str, Any], batch: Batch) -> None:
        """Progress of a run; what a lost worker has told late does not count."""
        number, attempt = message["number"], message["attempt"]
        for run in self._running.values():
            if (run.number, run.attempt) == (number, attempt):
                if not run.begun:
                    run.begun = True
                    batch.journal.begin(number, run.member.where)
                batch.progress(number, Progress(**message["progress"]))

    def _ended(self, run: RemoteRun, result: Any, batch: Batch) -> Record | None:
        """A worker has answered: with the run, with why it takes none, or with an exception."""
        if isinstance(result, WorkerLost):
            return self._lost(run, batch)
        del self._running[run.member.address]
        if isinstance(result, BaseException):
            reason = f"the worker could not run it: {explained(result)}"
            return self._keep(run, not_run(run.plan, run.member.slot, self.kernels, "failed", reason), batch)
        if "unfit" in result:
            self._members.drop(run.member.address)
            self._members.note(f"worker {run.member.title}: {result['unfit']}")
            self._waiting.appendleft(run)
            return None
        return self._keep(run, _received(result, batch.journal.folder), batch)

    def _lost(self, run: RemoteRun, batch: Batch) -> Record | None:
        """A worker is gone with its run, which starts again elsewhere or, after the second time, has crashed."""
        del self._running[run.member.address]
        self._scheduler.cancel([run.future])  # or Dask would start it should a worker come back to this address
        lost = f"{run.plan.title}: worker {run.member.title} is lost"
        if run.attempt == ATTEMPTS:
            self._members.note(lost)
            record = not_run(run.plan, run.member.slot, self.kernels, "crashed", LOST)
            return self._keep(run, record, batch)
        self._members.note(f"{lost}; the run starts again on another")
        run.lost_on.append(run.member)
        batch.journal.wait(run.number)
        self._waiting.appendleft(run)
        return None

    def _keep(self, run: RemoteRun, ended: Run, batch: Batch) -> Record:
        ended.record.attempts = run.attempt
        return batch.keep(run.number, ended, run.beside)


def _received(result: dict[str, Any], folder: Path) -> Run:
    """A run that has come back as bytes, laid out as one of this machine's is."""
    run = Run(Record.model_validate_json(result["record"]), new_folder(folder))
    for file, content in ((run.executed, result["executed"]), (run.log, result["log"])):
        if content is not None:
            with suppress(OSError):  # the disk is full: its record may still find a place
                file.write_bytes(content)
    return run
