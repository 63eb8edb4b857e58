"""Where a data set lies on this machine, and how it gets there: one file, downloaded once, checked, and unpacked if it is an archive."""

import hashlib
import os
import sys
from collections import namedtuple

from common.data.errors import DataError
from common.data.loaded import VARIABLE
from common.data.lock import locked
from common.data.transfer import fetch_file
from common.data.unpack import unpack

# urls: of copies of a gzipped tar, tried in this order, the publisher's first; size: in bytes; sha256: 64 hex digits, the same for
# all copies; folder: the one it holds; members: files needed of that folder.
# Of a file that is used as it comes, the folder is "" and the only member its name
Archive = namedtuple("Archive", "urls size sha256 folder members")


class Unreachable(DataError):
    """A data set that is not on this machine and could not be downloaded."""


def locate(archive, data_dir=None, fetch=True):
    """The folder (absolute path) that holds the archive's members, which is the first given of these, and no other:

    data_dir, then the variable ROSETTA_DATA: the extracted folder or the one that holds it; never written to.
    Then the user's cache: the archive is downloaded into it when it is not there; with fetch=False that is an error.
    Raises DataError when a given folder lacks members, and its subclass Unreachable when they cannot be brought into the cache.
    """
    if data_dir:
        return _given(archive, os.fspath(data_dir), "")
    if os.environ.get(VARIABLE):
        return _given(archive, os.environ[VARIABLE], " given as %s" % VARIABLE)
    cache = cache_folder()
    folder = os.path.join(cache, archive.folder)
    if not _missing(archive, folder):
        return folder
    if not fetch:
        raise Unreachable(
            "%s is not there yet: a run would download %s (%.0f MB)"
            % (os.path.join(cache, _name(archive)), archive.urls[0], archive.size / 1e6)
        )
    try:
        _bring(archive, cache, folder)
    except OSError as error:
        raise Unreachable(
            "cannot store %s in %s: %s; make room or allow writing there, or %s"
            % (_name(archive), cache, error.strerror or error, _advice())
        ) from None
    return folder


def cache_folder():
    """The folder for downloads of this user: ``rosetta`` in the place that the operating system has for caches."""
    if sys.platform == "win32":
        parent = os.environ.get("LOCALAPPDATA") or os.path.join("~", "AppData", "Local")
    elif sys.platform == "darwin":
        parent = os.path.join("~", "Library", "Caches")
    else:
        parent = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    return os.path.join(os.path.abspath(os.path.expanduser(parent)), "rosetta")


def _given(archive, path, source):
    """The folder with all members: the path that the user gave, or the archive's folder in it. source: where, for the message."""
    path = os.path.abspath(os.path.expanduser(path))
    candidates = [path, os.path.join(path, archive.folder)]
    missing = min((_missing(archive, folder) for folder in candidates), key=len)
    for folder in candidates:
        if not _missing(archive, folder):
            return folder
    wrong = "%slacks %s" % ("(and %s in it) " % archive.folder if archive.folder else "", ", ".join(missing))
    raise DataError(
        "the folder %s%s %s; %s %s there, or give no folder to have it downloaded"
        % (
            path,
            source,
            wrong if os.path.isdir(path) else "does not exist",
            "unpack" if archive.folder else "put",
            archive.urls[0],
        )
    )


def _name(archive):
    """What is downloaded, as messages and the lock name it."""
    return archive.folder or archive.members[0]


def _missing(archive, folder):
    return [name for name in archive.members if not os.path.isfile(os.path.join(folder, name))]


def _bring(archive, cache, folder):
    """Download, check and unpack, one process at a time; the one that waited finds the work done."""
    os.makedirs(cache, exist_ok=True)
    target = os.path.join(cache, _name(archive))
    with locked(target + ".lock", "another process is downloading %s: waiting for it" % _name(archive)):
        if not _missing(archive, folder):
            return
        part = os.path.join(cache, os.path.basename(archive.urls[0]) + ".part")
        _download(archive, part)
        if not archive.folder:
            os.rename(part, target)
            return
        unpack(part, archive.folder, archive.members, folder)
        os.remove(part)


def _download(archive, part):
    """Complete the file at part from the first address that offers the archive that was meant."""
    wrong = []
    for url in archive.urls:
        try:
            fetch_file(url, part, archive.size)
            _check(archive, url, part)
            return
        except DataError as error:
            wrong.append(str(error))
    raise Unreachable("%s; run again when the network is there, or %s" % ("; ".join(wrong), _advice()))


def _check(archive, url, part):
    """Delete the file when it is not the archive that was meant, so that the next address or run starts afresh."""
    digest = hashlib.sha256()
    with open(part, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    if digest.hexdigest() != archive.sha256:
        os.remove(part)
        raise DataError(
            "%s came with the SHA-256 %s instead of %s and was deleted" % (url, digest.hexdigest(), archive.sha256)
        )


def _advice():
    return (
        "give the folder of the files: --data-dir of run_all.py, or the variable %s ('synthetic' needs none)" % VARIABLE
    )
