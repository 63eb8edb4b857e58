"""A lock between processes that share a folder; the system lets go of it when its process ends, however that happens."""

import contextlib
import errno
import sys
import time

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # of a cluster's file system, say
BUSY = (errno.EAGAIN, errno.EACCES)  # what Linux and macOS, and what Windows says of a lock that another process holds
POLL_S = 0.2


@contextlib.contextmanager
def locked(path, waiting):
    """Hold the lock file at path, which is made and stays; the waiting line is written once to standard error when it is held.

    Raises OSError when the file cannot be written.
    """
    with open(path, "a") as file:
        said = False
        while not _take(file):
            if not said:
                sys.stderr.write(waiting + "\n")
                sys.stderr.flush()
                said = True
            time.sleep(POLL_S)
        yield


def _take(file):
    """True when the lock is ours (or the file system knows none), False when another process has it."""
    try:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in BUSY:
            return False
        if error.errno not in NO_LOCKS:
            raise
    return True
