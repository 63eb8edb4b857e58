"""Small archives, and a server on this machine that offers one, for the tests of the download."""

import hashlib
import io
import socketserver
import ssl
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from common.data import DataError
from common.data.download import Archive, locate

URL = "http://127.0.0.1:%d/tiny.tar.gz"
FILES = {"one.bin": b"1" * 5000, "two.bin": bytes(range(256)) * 400}


def tar(*extra, files=FILES):
    """Bytes of a gzipped tar: folder ``tiny`` with the files, and a readme; extra: TarInfo objects to add."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=0) as archive:
        archive.addfile(entry("tiny", tarfile.DIRTYPE))
        for name, content in files.items():
            archive.addfile(entry("tiny/" + name, size=len(content)), io.BytesIO(content))
        archive.addfile(entry("tiny/readme.html"))
        for member in extra:
            archive.addfile(member)
    return stream.getvalue()


def entry(name, kind=tarfile.REGTYPE, size=0, target=""):
    member = tarfile.TarInfo(name)
    member.type, member.size, member.linkname, member.mode = kind, size, target, 0o755
    return member


def describe(content, port):
    """The Archive that is right for the bytes."""
    url = URL % port
    return Archive((url,), len(content), hashlib.sha256(content).hexdigest(), "tiny", tuple(FILES))


NOWHERE = describe(b"", 1)  # an archive at a port where nothing listens


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Serves ``content`` under any path; a test sets what it does with it."""

    daemon_threads = True

    def __init__(self):
        self.content = b""
        self.ranges = True  # whether it obeys Range
        self.stops_after = None  # bytes after which it hangs up
        self.headers = {}  # instead of its own
        self.status = None  # instead of its own, where a range is asked for
        self.pause_s = 0  # before each byte
        self.asked = []  # the Range of each request, None without
        self.certificate = None  # a file with key and certificate, which it shows as a proxy for HTTPS
        self.tunnels = []  # what was asked of the proxy
        self.may_answer = threading.Event()
        self.may_answer.set()
        super(Server, self).__init__(("127.0.0.1", 0), Handler)
        self.port = self.server_address[1]
        self.url = URL % self.port

    def handle_error(self, request, client_address):
        """A client that hangs up early is part of the tests."""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        self.server.may_answer.wait(30)
        start = int(wanted[len("bytes=") : -1]) if wanted and self.server.ranges else 0
        body = self.server.content[start:]
        self.send_response(self.server.status if wanted and self.server.status else 206 if start else 200)
        for header in dict({"Content-Length": str(len(body))}, **self.server.headers).items():
            self.send_header(*header)
        self.end_headers()
        for byte in body if self.server.pause_s else ():
            time.sleep(self.server.pause_s)
            self.wfile.write(bytes([byte]))
        self.wfile.write(body[: self.server.stops_after])

    def do_CONNECT(self):
        """Answer for the host that was asked for, as a company's proxy does to read along."""
        self.server.tunnels.append(self.path)
        self.send_response(200)
        self.end_headers()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server.certificate)
        with context.wrap_socket(self.connection, server_side=True) as inside:
            self.rfile, self.wfile = inside.makefile("rb"), inside.makefile("wb")
            self.handle_one_request()

    def log_message(self, *args):
        """Keep the tests' output clean."""


def refused(*arguments, **keywords):
    """The message of the DataError that locate raises, which is one line."""
    with pytest.raises(DataError) as error:
        locate(*arguments, **keywords)
    assert "\n" not in str(error.value)
    return str(error.value)


def complete(folder):
    """Whether the folder holds FILES and no other."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()} == FILES


def left(cache):
    """Names in the cache, save for the lock, which stays."""
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")
