"""The connection to a running Dask scheduler: whatever is wrong with it is told in one line, within seconds."""

import logging
import socket
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

from pydantic import BaseModel

from rosetta import files
from rosetta.errors import RosettaError

# Dask's setting, where the user has not changed it: its own 30 s are long for a person who waits
CONNECT = {"distributed": {"comm": {"timeouts": {"connect": "4s"}}}}
NOT_INSTALLED = "--cluster needs Dask, which this Python lacks; start it as: uv run --extra cluster run_all.py run --cluster {where}"


class SchedulerFile(BaseModel):
    """What a Dask scheduler writes of itself, as far as it is of use here."""

    address: str


def connect(where: str) -> Any:
    """A client of the scheduler. where: its address, or the file that it has written. Raises RosettaError."""
    address = _address(where)
    try:
        import dask.config
        from dask.utils import parse_timedelta
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ModuleNotFoundError:
        raise RosettaError(NOT_INSTALLED.format(where=where)) from None
    dask.config.update_defaults(CONNECT)
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


def check(client: Any) -> None:
    """Raises RosettaError when the scheduler is gone."""
    if client.status != "running":
        lost = f"the scheduler at {client.scheduler.address} is gone"
        raise RosettaError(f"{lost}; finished runs are kept, and run_all.py resume goes on once it is back")


def _address(where: str) -> str:
    """The scheduler's address, read from its file where that is given; Dask would wait for a missing file without end."""
    if not where.endswith(".json"):
        return where
    try:
        return files.load(SchedulerFile, Path(where)).address
    except RosettaError as error:
        raise RosettaError(f"--cluster: {error}; dask scheduler --scheduler-file writes one") from None
