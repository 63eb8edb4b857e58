"""Take the expected files out of a tar archive, or nothing at all."""

import os
import shutil
import tarfile
import zlib

from common.data.errors import DataError


def unpack(path, name, members, folder):
    """Unpack the members of the folder called name in the gzipped tar at path, as the new folder.

    The folder appears complete or not at all; one that is there is replaced. Raises DataError for an archive that is
    damaged, lacks a member, or holds a link, a device or a path that leads out; OSError when the files cannot be written.
    """
    unfinished = folder + ".unpacking"
    _remove(unfinished)  # of a process that was killed
    os.makedirs(unfinished)
    try:
        _copy_members(path, {name + "/" + member: os.path.join(unfinished, member) for member in members})
        _remove(folder)
        os.rename(unfinished, folder)
    finally:
        _remove(unfinished)


def _remove(folder):
    if os.path.lexists(folder):
        shutil.rmtree(folder)


def _copy_members(path, targets):
    """Copy members of the archive to files; targets: path of each by its name in the archive."""
    missing = set(targets)
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                _refuse_unsafe(member, path)
                if member.name in targets:
                    _copy(archive.extractfile(member), targets[member.name])
                    missing.discard(member.name)
    except (EOFError, zlib.error, tarfile.TarError) as error:
        raise DataError("%s is damaged (%s): delete it and run again" % (path, error)) from None
    if missing:
        raise DataError("%s is damaged (it lacks %s): delete it and run again" % (path, ", ".join(sorted(missing))))


def _refuse_unsafe(member, path):
    parts = member.name.replace("\\", "/").split("/")
    if member.name.startswith(("/", "\\")) or ":" in parts[0] or ".." in parts:
        raise DataError(
            "%s holds the path %s, which leads out of its folder: nothing was unpacked" % (path, member.name)
        )
    if not (member.isfile() or member.isdir()):
        raise DataError("%s holds %s, which is no regular file: nothing was unpacked" % (path, member.name))


def _copy(source, target):
    with source, open(target, "wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
