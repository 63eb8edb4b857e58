"""Where a data set lies on this machine, and how it gets there: one file, downloaded once, checked, and unpacked if it is an archive."""

import contextlib
import errno
import hashlib
import http.client
import os
import shutil
import ssl
import sys
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from collections import namedtuple

from common.data.errors import DataError
from common.data.loaded import VARIABLE

TIMEOUT_S = 30  # without a byte from the server
PACE_S, SLOWEST = 60, 60 * 1024  # at least so many bytes in so many seconds
BLOCK = 1 << 16  # bytes read at once, at most
POLL_S = 0.2  # between two looks at a lock that another process holds
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # of a cluster's file system, say
BUNDLE = "REQUESTS_CA_BUNDLE"  # the variable that many Python programs read, pip and requests among them

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
    if sys.platform == "darwin":
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


def damaged(archive, path, reason):
    """The DataError for a file of the archive that is there but is not what it should be. reason: continues "FILE ..."."""
    cache = cache_folder()
    if not os.path.abspath(path).startswith(cache + os.sep):
        advice = "%s %s there anew" % ("unpack" if archive.folder else "put", archive.urls[0])
    else:
        advice = "delete %s and run again" % os.path.join(cache, _name(archive))
    return DataError("%s %s: it is damaged; %s" % (path, reason, advice))


def _name(archive):
    """What is downloaded, as messages and the lock name it."""
    return archive.folder or archive.members[0]


def _missing(archive, folder):
    return [name for name in archive.members if not os.path.isfile(os.path.join(folder, name))]


def _bring(archive, cache, folder):
    """Download, check and unpack, one process at a time; the one that waited finds the work done."""
    os.makedirs(cache, exist_ok=True)
    target = os.path.join(cache, _name(archive))
    with locked(target + ".lock", "another process is downloading %s: waiting for it\n" % _name(archive)):
        if not _missing(archive, folder):
            return
        part = os.path.join(cache, os.path.basename(archive.urls[0]) + ".part")
        _download(archive, part)
        if not archive.folder:
            os.rename(part, target)
            return
        unpack(archive, part, folder)
        os.remove(part)


@contextlib.contextmanager
def locked(path, waiting):
    """Hold the lock file at path, which is made and stays; the system lets go of it when this process ends.

    The waiting line is written once to standard error while another process holds it. Raises OSError when the file cannot be
    written.
    """
    import fcntl  # here, because Windows has none

    with open(path, "a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EACCES):  # another process has it
                    sys.stderr.write(waiting)
                    sys.stderr.flush()
                    waiting = ""
                    time.sleep(POLL_S)
                    continue
                if error.errno not in NO_LOCKS:
                    raise
            break
        yield


def _download(archive, part):
    """Complete the file at part from the first address that offers the archive that was meant."""
    wrong = []
    for url in archive.urls:
        try:
            begun = os.path.exists(part)
            _fetch(url, part, archive.size)
            if begun and not _is_meant(archive, part):  # what an earlier attempt has left may be of another file
                os.remove(part)
                _fetch(url, part, archive.size)
            if _is_meant(archive, part):
                return
            os.remove(part)  # the next address, or the next run, starts afresh
            wrong.append("%s came with another SHA-256 than %s and was deleted" % (url, archive.sha256))
        except DataError as error:
            wrong.append(str(error))
    raise Unreachable("%s; run again when the network is there, or %s" % ("; ".join(wrong), _advice()))


def _is_meant(archive, part):
    digest = hashlib.sha256()
    with open(part, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest() == archive.sha256


def _advice():
    return (
        "give the folder of the files: --data-dir of run_all.py, or the variable %s ('synthetic' needs none)" % VARIABLE
    )


# ---- One file over HTTP


def _fetch(url, path, size):
    """Complete the file at path to size bytes from the url; bytes that are there already are not asked for again.

    Raises DataError, which says what is wrong but not what to do, when the server cannot be reached, stops early or offers a
    file of another size (what has come is kept for the next attempt). Raises OSError when the file cannot be written.
    """
    have = os.path.getsize(path) if os.path.exists(path) else 0
    if have > size:
        os.remove(path)
        have = 0
    if have == size:
        return
    with _explained(url):
        try:
            answer = _ask(url, have)
        except urllib.error.HTTPError as error:
            if not have or error.code != 416:
                raise
            os.remove(path)  # the server has no such range: with what is kept it would say so for ever
            answer = _ask(url, 0)
    with contextlib.closing(answer):
        if answer.getcode() != 206:  # the whole file, whatever range was asked for
            have = 0
        length = answer.headers.get("Content-Length")
        offered = have + int(length) if (length or "").strip().isdigit() else length
        if length is not None and offered != size:  # a login page, say, or a new edition: not a byte of it is stored
            raise DataError("%s offers %s bytes instead of %d: it is not the file that is meant" % (url, offered, size))
        have = _append(url, path, have, size, answer)
    if have < size:
        raise DataError("%s stopped after %d of %d bytes" % (url, have, size))


def _ask(url, have):
    """The server's answer, without the bytes that are there already.

    Trusted are the certificates that Python or SSL_CERT_FILE names, and the file or folder that REQUESTS_CA_BUNDLE names.
    """
    context, bundle = ssl.create_default_context(), os.environ.get(BUNDLE)
    if bundle:
        try:
            context.load_verify_locations(**{"capath" if os.path.isdir(bundle) else "cafile": bundle})
        except OSError as error:
            raise OSError("cannot read %s, which %s names: %s" % (bundle, BUNDLE, error.strerror or error)) from None
    request = urllib.request.Request(url, headers={"Range": "bytes=%d-" % have} if have else {})
    return urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context)


def _append(url, path, have, size, answer):
    """Write the answer's bytes from position have on; returns how many bytes the file has then."""
    since, before, said = time.perf_counter(), have, None
    with open(path, "r+b" if have else "wb") as file:
        file.seek(have)
        while have < size:
            with _explained(url):
                block = answer.read1(min(BLOCK, size - have))  # what has come, be it a byte
            if not block:
                break
            file.write(block)
            have += len(block)
            said = _show(os.path.basename(url), have, size, said)
            if time.perf_counter() - since > PACE_S:
                if have - before < SLOWEST:
                    raise DataError("%s sends less than %d kB in %d s" % (url, SLOWEST // 1024, PACE_S))
                since, before = time.perf_counter(), have
    return have


def _show(name, have, size, said):
    """Write a line every 10 % to standard error, in a terminal each over the last; said: the last step that was written."""
    step = 10 * have // size
    if step != said:
        end = "\r" if sys.stderr.isatty() and step < 10 else "\n"
        sys.stderr.write("%s %3d %%  %.1f of %.1f MB%s" % (name, 100 * have // size, have / 1e6, size / 1e6, end))
        sys.stderr.flush()
    return step


@contextlib.contextmanager
def _explained(url):
    """Turn an error of the network into one line."""
    try:
        yield
    except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: of an address that is none
        reason = " ".join(str(error).split()) or type(error).__name__
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            reason += "; behind a company's proxy, %s=FILE names its certificate" % BUNDLE
        # Without urllib's own traceback, which would fill a screen
        raise DataError("cannot download %s (%s)" % (url, reason)) from None


# ---- The archive


def unpack(archive, path, folder):
    """Copy the members of the archive at path into a new folder, which appears complete or not at all.

    Other members are not looked at. Raises DataError for an archive that is damaged or lacks a member, OSError when the files
    cannot be written.
    """
    unfinished = folder + ".unpacking"
    shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
    os.makedirs(unfinished)
    try:
        with tarfile.open(path, "r:gz") as packed:
            for name in archive.members:
                member = packed.getmember("%s/%s" % (archive.folder, name))
                if not member.isfile():
                    raise tarfile.ReadError("%s is no regular file" % member.name)
                with packed.extractfile(member) as source, open(os.path.join(unfinished, name), "wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
        shutil.rmtree(folder, ignore_errors=True)  # of one that lacks members
        os.rename(unfinished, folder)
    except (EOFError, KeyError, zlib.error, tarfile.TarError) as error:
        reason = error.args[0] if isinstance(error, KeyError) else error
        raise DataError("%s is damaged (%s): delete it and run again" % (path, reason)) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
