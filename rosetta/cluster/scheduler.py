"""The connection to a running Dask scheduler: its workers come and go, and each call goes to a worker of our choice."""

import json
import logging
import queue
import socket
import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rosetta.errors import RosettaError

CONNECT_S = 4.0
PROTOCOLS = ("tcp", "tls", "ucx", "ws", "wss")
NOT_INSTALLED = "--cluster needs Dask, which this Python lacks; start it as: uv run --extra cluster run_all.py run --cluster {where}"


@dataclass(frozen=True)
class Joined:
    """A worker has come."""

    address: str


@dataclass(frozen=True)
class Left:
    """A worker is gone, as far as the scheduler can see."""

    address: str


@dataclass(frozen=True)
class Told:
    """A worker has told something of the call that it is at."""

    message: dict[str, Any]


@dataclass(frozen=True)
class Answered:
    """A call has ended: with the function's result, or the exception that came in its place."""

    call: Any  # what ``submit`` or ``ask`` was given to know it by
    result: Any


class WorkerLost(Exception):
    """The worker is gone before the call has ended."""


class Scheduler:
    """Calls and workers of a Dask cluster; ``next`` tells what has happened, in its order.

    where: its address, or the file that it has written. Raises RosettaError where it cannot be reached.
    """

    def __init__(self, where: str):
        self.address, self.topic = _address(where), f"rosetta-{uuid.uuid4().hex}"
        _check_reachable(self.address)
        try:
            import distributed
        except ModuleNotFoundError:
            raise RosettaError(NOT_INSTALLED.format(where=where)) from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the user is told in our own words
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        self._events: queue.SimpleQueue = queue.SimpleQueue()
        self._client = _connected(
            lambda: distributed.Client(self.address, timeout=CONNECT_S, set_as_default=False), self.address
        )
        self._client.subscribe_topic("all", self._of_workers)
        self._client.subscribe_topic(self.topic, lambda event: self._events.put(Told(event[1])))

    def close(self) -> None:
        self._client.close(timeout=5)

    @property
    def connected(self) -> bool:
        return self._client.status == "running"

    def next(self, timeout: float) -> Joined | Left | Told | Answered | None:
        """What has happened next, None if nothing within these seconds. Raises RosettaError when the scheduler is gone."""
        try:
            event = self._events.get(timeout=timeout)
        except queue.Empty:
            event = None
        if not self.connected:  # all calls have ended by that
            raise RosettaError(
                f"the scheduler at {self.address} is gone; finished runs are kept, and --resume goes on once it is back"
            )
        return event

    def workers(self) -> list[str]:
        """The addresses of the workers that are there now."""
        return list(self._client.scheduler_info()["workers"])

    def ask(self, address: str, name: str, *arguments: Any) -> None:
        """Call a function of the worker's ``rosetta.cluster.worker`` beside what it does; the answer is an event, known by the address."""

        def wait() -> None:
            try:
                result = self._client.run(by_name(name), *arguments, workers=[address])[address]
            except Exception as error:
                result = error
            self._events.put(Answered(address, result))

        threading.Thread(target=wait, daemon=True).start()

    def submit(self, address: str, name: str, argument: dict[str, Any], call: Any, resources: dict[str, float]):
        """Let a worker call a function of its ``rosetta.cluster.worker``; returns what ``cancel`` takes. The result is an event."""
        from distributed import CancelledError, KilledWorker

        future = self._client.submit(
            by_name(name),
            argument,
            key=f"{self.topic}-{uuid.uuid4().hex}",
            workers=[address],
            allow_other_workers=False,
            resources=resources or None,
            pure=False,
        )

        def ended(future) -> None:
            try:
                result = future.result()
            except (KilledWorker, CancelledError):
                result = WorkerLost()
            except Exception as error:
                result = error
            self._events.put(Answered(call, result))

        future.add_done_callback(ended)
        return future

    def cancel(self, futures: Iterable) -> None:
        if self.connected:
            self._client.cancel(list(futures), force=True)

    def _of_workers(self, event: tuple[float, dict[str, Any]]) -> None:
        kinds = {"add-worker": Joined, "remove-worker": Left}
        message = event[1]
        if message.get("action") in kinds:
            self._events.put(kinds[message["action"]](message["worker"]))


def by_name(name: str) -> Callable:
    """A function that calls one of ``rosetta.cluster.worker`` in the process where it is called.

    Being a nested one it travels as code, so that the scheduler, which unpacks it too, need not have a checkout.
    """

    def call(*arguments, dask_worker=None):  # Dask fills that in for what is called beside a worker's tasks
        from rosetta.cluster import worker

        return getattr(worker, name)(*arguments, *([dask_worker] if dask_worker else []))

    return call


def _connected(connect: Callable[[], Any], address: str) -> Any:
    """What ``connect`` returns, in seconds: Dask sets no limit to a server that accepts a connection and then keeps silent."""
    outcome: queue.SimpleQueue = queue.SimpleQueue()

    def attempt() -> None:
        try:
            outcome.put(connect())
        except Exception as error:
            outcome.put(error)

    threading.Thread(target=attempt, daemon=True).start()
    try:
        client = outcome.get(timeout=CONNECT_S + 1)
    except queue.Empty:
        client = TimeoutError()
    if isinstance(client, Exception):
        raise RosettaError(f"what listens at {address} does not answer as a Dask scheduler of this version does")
    return client


def _check_reachable(address: str) -> None:
    """Tell within seconds, and before Dask is loaded, that nobody is there."""
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        known = parts.scheme in PROTOCOLS and parts.hostname and parts.port
    except ValueError:
        known = False
    if not known:
        raise RosettaError(f"--cluster takes tcp://HOST:PORT or a scheduler's file (.json), not {address}")
    try:
        socket.create_connection((parts.hostname, parts.port), CONNECT_S).close()
    except OSError as error:
        reason = error.strerror or "no answer"
        raise RosettaError(
            f"no Dask scheduler answers at {address} ({reason}); docs/cluster.md says how to start one"
        ) from None


def _address(where: str) -> str:
    """The scheduler's address; looked up where its file is given."""
    if not where.endswith(".json"):
        return where
    try:
        return str(json.loads(Path(where).read_text(encoding="utf-8"))["address"])
    except OSError as error:
        raise RosettaError(
            f"--cluster {where}: {error.strerror}; the scheduler writes it: dask scheduler --scheduler-file"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise RosettaError(f"--cluster {where} is not a Dask scheduler's file") from None
