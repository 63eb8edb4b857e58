"""Downloads: whatever happens, the folder is complete or absent, and the message is one line."""

import builtins
import errno
import fcntl
import io
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time

import pytest

from common.data import download
from common.data.download import locate
from tests.common.archives import FILES, NOWHERE, complete, describe, entry, left, refused, tar
from tests.fault_table import fault, seen


def test_a_download_leaves_the_expected_files_and_happens_once(archive, cache, server):
    folder = locate(archive)
    assert folder == str(cache / "tiny") and complete(folder)
    assert left(cache) == ["tiny"]
    assert locate(archive) == locate(archive, fetch=False) == folder
    assert server.asked == [None]


def test_a_folder_that_lacks_a_file_is_downloaded_again(archive, cache, server):
    (cache / "tiny").mkdir(parents=True)
    (cache / "tiny" / "one.bin").write_bytes(FILES["one.bin"])
    assert complete(locate(archive))


def test_without_fetch_the_message_says_what_a_run_would_download(cache):
    message = refused(NOWHERE._replace(size=170052171), fetch=False)
    assert "not there yet" in message and NOWHERE.urls[0] in message and "170 MB" in message
    assert not cache.exists()


def test_a_broken_download_goes_on_where_it_stopped(archive, cache, server):
    server.stops_after = 1000
    message = refused(archive)
    assert "1000 of %d bytes" % archive.size in message or "IncompleteRead" in message
    assert left(cache) == ["tiny.tar.gz.part"]
    server.stops_after = None
    assert complete(locate(archive))
    assert server.asked == [None, "bytes=1000-"]


def part_of(cache, content):
    """Leave this of an earlier download."""
    cache.mkdir(parents=True)
    (cache / "tiny.tar.gz.part").write_bytes(content)


@pytest.mark.parametrize(
    "change, ranges, requests",
    [
        (lambda content: content[:1000], False, ["bytes=1000-"]),
        (lambda content: content, True, []),
        (lambda content: content + b"surplus", True, [None]),
        (lambda content: b"of another file", True, ["bytes=15-", None]),
    ],
    ids=["a server that ignores the range", "whole", "longer", "of another file"],
)
def test_what_is_left_of_a_download_serves_only_where_it_is_right(archive, cache, server, change, ranges, requests):
    part_of(cache, change(server.content))
    server.ranges = ranges
    assert complete(locate(archive))
    assert server.asked == requests


def test_folders_of_a_process_that_was_killed_are_cleaned(archive, cache):
    (cache / "tiny.unpacking").mkdir(parents=True)
    (cache / "tiny.unpacking" / "one.bin").write_bytes(b"half")
    assert complete(locate(archive))
    assert left(cache) == ["tiny"]


def test_two_processes_download_once(archive, cache, server):
    code = "from common.data.download import Archive, locate; print(locate(%r))" % (archive,)
    server.may_answer.clear()
    first = start(code)
    while not server.asked:
        assert first.poll() is None
        time.sleep(0.01)
    second = start(code)
    assert second.stderr.readline() == "another process is downloading tiny: waiting for it\n"
    time.sleep(3 * download.POLL_S)  # time enough to say it again, which it must not
    server.may_answer.set()
    for process, said in ((first, "tiny.tar.gz 100 %  0.1 of 0.1 MB\n"), (second, "")):
        out, err = process.communicate(timeout=30)
        assert out.strip() == str(cache / "tiny") and err.endswith(said) and "waiting" not in err
    assert complete(str(cache / "tiny")) and server.asked == [None]


@pytest.mark.parametrize("error, works", [(errno.ENOSYS, True), (errno.EIO, False)])
def test_a_file_system_without_locks_is_used_without(archive, cache, monkeypatch, error, works):
    def no_lock(*args):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(fcntl, "flock", no_lock)
    if works:
        assert complete(locate(archive))
    else:
        assert os.strerror(error) in refused(archive)


def start(code):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(download.__file__))))
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=root, universal_newlines=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


# Servers and archives that are not as they should be


def test_a_wrong_checksum_deletes_the_file(archive, cache):
    message = refused(archive._replace(sha256="0" * 64))
    assert "another SHA-256 than " + "0" * 64 in message and archive.urls[0] in message
    assert left(cache) == []


def test_another_size_is_refused_before_anything_is_stored(archive, cache):
    assert "instead of %d" % (archive.size + 1) in refused(archive._replace(size=archive.size + 1))
    assert left(cache) == []


def test_offline_is_one_line_with_the_url_and_the_ways_out(cache):
    with socket.socket() as listener:  # a port that no server has, since it is bound but does not listen
        listener.bind(("127.0.0.1", 0))
        archive = describe(b"content", listener.getsockname()[1])
        message = refused(archive)
    for part in (archive.urls[0], "--data-dir", "ROSETTA_DATA", "refused"):
        assert part in message


@pytest.mark.parametrize("begins", [False, True])
def test_a_server_that_falls_silent_does_not_hang_the_run(archive, cache, server, monkeypatch, begins):
    monkeypatch.setattr(download, "TIMEOUT_S", 0.05)
    server.pause_s = 1
    if not begins:
        server.may_answer.clear()
    message = refused(archive)
    assert "timed out" in message and "--data-dir" in message


@fault("a download cannot be resumed", "a server that answers 416 to a range, beside a part of the file")
def test_a_range_that_the_server_does_not_have_begins_the_download_anew(archive, cache, server):
    part_of(cache, server.content[:1000])
    server.status = 416
    assert complete(locate(archive))
    assert server.asked == ["bytes=1000-", None]
    return "nothing; the download begins anew", "the whole file"


@pytest.mark.parametrize("length", ["many", "-5", "1e3", ""])
def test_a_length_that_is_none_is_one_line(archive, cache, server, length):
    server.headers = {"Content-Length": length}
    message = refused(archive)
    assert "it is not the file that is meant" in message and left(cache) == []
    if length == "many":
        kept = "everything; nothing was started"
        seen("a download of no length", "a server whose `Content-Length` is `many`", message, kept)


@fault("a download leads nowhere", "a redirect to `http://[nowhere/`")
def test_a_redirect_that_leads_nowhere_is_one_line(archive, cache, server):
    part_of(cache, server.content[:1000])
    server.status, server.headers = 302, {"Location": "http://[nowhere/"}
    message = refused(archive)
    assert archive.urls[0] in message and "--data-dir" in message and left(cache) == ["tiny.tar.gz.part"]
    return message, "the part that had come"


@fault("a download never ends", "a server that sends 20 bytes a second; the limit of 60 s set to 1")
def test_a_server_that_sends_a_byte_now_and_then_does_not_hang_the_run(archive, cache, server, monkeypatch):
    monkeypatch.setattr(download, "PACE_S", 1)
    server.pause_s = 0.05
    message = refused(archive)
    assert "sends less than" in message
    server.pause_s = 0
    assert complete(locate(archive)) and server.asked[1].startswith("bytes="), "what had come is kept"
    return message, "the part that had come"


# Several addresses


def elsewhere(archive, *urls):
    """The same archive with these addresses before its own."""
    return archive._replace(urls=urls + archive.urls)


def test_the_second_address_is_tried_where_the_first_cannot_be_reached(archive, cache, server):
    assert complete(locate(elsewhere(archive, NOWHERE.urls[0])))
    assert server.asked == [None] and left(cache) == ["tiny"]


@pytest.mark.parametrize("content", [tar(files={"one.bin": b"2" * 5000, "two.bin": FILES["two.bin"]}), b"a login page"])
def test_a_copy_that_differs_is_refused_and_the_next_is_tried(archive, cache, server, another, content):
    another.content = content
    assert complete(locate(elsewhere(archive, another.url)))
    assert another.asked == server.asked == [None]


def test_the_second_address_goes_on_where_the_first_stopped(archive, cache, server, another):
    another.content, another.stops_after = server.content, 1000
    assert complete(locate(elsewhere(archive, another.url)))
    assert server.asked == ["bytes=1000-"]


def test_the_message_says_what_is_wrong_with_each_address(archive, cache, server):
    message = refused(elsewhere(archive._replace(sha256="0" * 64), NOWHERE.urls[0]))
    for part in ("cannot download %s (" % NOWHERE.urls[0], "%s came with another SHA-256" % archive.urls[0]):
        assert part in message
    assert message.count("--data-dir") == 1 and left(cache) == []


# Proxies and certificates


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A file with a key and the certificate of 127.0.0.1 that it signed itself, as a company's proxy has one."""
    if not shutil.which("openssl"):
        pytest.skip("needs the command openssl")
    folder = tmp_path_factory.mktemp("certificate")
    path, settings = str(folder / "both.pem"), folder / "openssl.cnf"
    settings.write_text(
        "[req]\ndistinguished_name=name\nx509_extensions=more\nprompt=no\n[name]\nCN=proxy\n[more]\nsubjectAltName=IP:127.0.0.1\n"
        "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,digitalSignature\nsubjectKeyIdentifier=hash\n"
    )
    asked = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-config", str(settings)]
    subprocess.check_call(asked + ["-keyout", path, "-out", path + ".crt"], stderr=subprocess.DEVNULL)
    with open(path, "a") as both, open(path + ".crt") as signed:
        both.write(signed.read())
    return path


@pytest.fixture
def behind_proxy(archive, cache, server, certificate, monkeypatch):
    """The archive at an HTTPS address that only a proxy reaches, which shows a certificate of its own."""
    server.certificate = certificate
    for name in ("no_proxy", "NO_PROXY", "https_proxy", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:%d" % server.port)
    return archive._replace(urls=("https://127.0.0.1:1/tiny.tar.gz",))


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_a_proxy_is_used_and_its_certificate_trusted(behind_proxy, cache, server, certificate, monkeypatch, variable):
    monkeypatch.setenv(variable, certificate)
    assert complete(locate(behind_proxy))
    assert server.tunnels == ["127.0.0.1:1"]


def test_an_unknown_certificate_is_refused_and_told(behind_proxy, cache, server):
    message = refused(behind_proxy)
    assert "CERTIFICATE_VERIFY_FAILED" in message and "REQUESTS_CA_BUNDLE=FILE" in message and server.asked == []


def test_certificates_that_cannot_be_read_are_named(archive, cache, tmp_path, monkeypatch):
    for path, reason in ((str(tmp_path / "none.pem"), os.strerror(errno.ENOENT)), (__file__, "")):
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", path)
        message = refused(archive)
        assert "cannot read %s, which REQUESTS_CA_BUNDLE names: %s" % (path, reason) in message


# Disks


@pytest.mark.parametrize("full", [".part", "two.bin"])
def test_a_full_disk_is_one_line_and_the_next_run_goes_on(archive, cache, server, monkeypatch, full):
    class FullDisk(io.BytesIO):
        def write(self, block):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def opened(path, mode="r", *rest, **more):
        return FullDisk() if str(path).endswith(full) and "w" in mode else real(path, mode, *rest, **more)

    real = builtins.open
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", opened)
        message = refused(archive)
    assert os.strerror(errno.ENOSPC) in message and str(cache) in message and "ROSETTA_DATA" in message
    assert "tiny" not in left(cache) and "tiny.unpacking" not in left(cache)
    assert complete(locate(archive))


def test_a_cache_that_cannot_be_made_is_one_line(archive, cache):
    cache.parent.parent.mkdir(parents=True, exist_ok=True)
    cache.parent.write_bytes(b"a file where a folder must be")
    assert str(cache) in refused(archive)


@pytest.mark.parametrize("ends, terminal", [("\n", False), ("\r", True)])
def test_progress_is_a_line_every_10_percent_and_one_in_a_terminal(monkeypatch, ends, terminal):
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr(download.sys, "stderr", stream)
    said = None
    for have in range(0, 200000001, 500000):
        said = download._show("tiny.tar.gz", have, 200000000, said)
    text = stream.getvalue()
    assert "tiny.tar.gz  50 %%  100.0 of 200.0 MB%s" % ends in text and text.endswith("100 %  200.0 of 200.0 MB\n")
    assert len(text.splitlines()) == 11


# Archives


@pytest.mark.parametrize(
    "content, reason",
    [
        (tar()[:60000], "is damaged"),
        (tar(files={"one.bin": b"1"}), "two.bin"),
        (b"no archive", "is damaged"),
        (tar(entry("tiny/two.bin", tarfile.SYMTYPE, target="/etc/passwd")), "is no regular file"),
    ],
    ids=["truncated", "member missing", "no archive", "a link"],
)
def test_an_archive_that_cannot_be_read_is_not_unpacked(cache, server, content, reason):
    server.content = content
    assert reason in refused(describe(content, server.port))
    assert left(cache) == ["tiny.tar.gz.part"]


def test_no_other_member_of_an_archive_is_unpacked(cache, server):
    server.content = tar(entry("tiny/../../outside"), entry("/tmp/outside"))
    assert complete(locate(describe(server.content, server.port)))
    assert left(cache) == ["tiny"]
