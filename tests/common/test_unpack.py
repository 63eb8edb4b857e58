"""An archive that is not as it should be leaves no file behind."""

import tarfile

import pytest

from tests.common.archives import describe, entry, left, refused, tar

UNSAFE = {
    "parent": entry("tiny/../../outside"),
    "absolute": entry("/tmp/outside"),
    "drive": entry("C:/outside"),
    "backslashes": entry("tiny\\..\\..\\outside"),
    "symlink": entry("tiny/more", tarfile.SYMTYPE, target="/etc/passwd"),
    "hardlink": entry("tiny/more", tarfile.LNKTYPE, target="tiny/one.bin"),
    "expected member": entry("tiny/two.bin", tarfile.SYMTYPE, target="/etc/passwd"),
    "device": entry("tiny/more", tarfile.CHRTYPE),
    "pipe": entry("tiny/more", tarfile.FIFOTYPE),
}


@pytest.mark.parametrize("kind", sorted(UNSAFE))
def test_an_archive_with_an_unsafe_member_is_not_unpacked(cache, server, kind):
    server.content = tar(UNSAFE[kind])
    assert "nothing was unpacked" in refused(describe(server.content, server.port))
    assert left(cache) == ["tiny.tar.gz.part"]


@pytest.mark.parametrize(
    "content, reason",
    [
        (tar()[:60000], "is damaged"),
        (tar(files={"one.bin": b"1"}), "lacks tiny/two.bin"),
        (b"no archive", "is damaged"),
    ],
    ids=["truncated", "member missing", "no archive"],
)
def test_an_archive_that_cannot_be_read_is_not_unpacked(cache, server, content, reason):
    server.content = content
    assert reason in refused(describe(content, server.port))
    assert left(cache) == ["tiny.tar.gz.part"]
