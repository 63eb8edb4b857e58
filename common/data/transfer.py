"""Bring one file over HTTP, going on where an earlier attempt stopped."""

import contextlib
import http.client
import os
import ssl
import sys
import time
import urllib.error
import urllib.request

from common.data.errors import DataError

TIMEOUT_S = 30  # without a byte from the server
PACE_S, SLOWEST = 60, 60 * 1024  # at least so many bytes in so many seconds
BLOCK = 1 << 16  # bytes read at once, at most
BAR = 30  # characters
BUNDLE = "REQUESTS_CA_BUNDLE"  # the variable that many Python programs read, pip and requests among them


def fetch_file(url, path, size):
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
        _expect(url, size, have, answer.headers.get("Content-Length"))
        have = _append(url, path, have, size, answer)
    if have < size:
        raise DataError("%s stopped after %d of %d bytes" % (url, have, size))


def _ask(url, have):
    """The server's answer, without the bytes that are there already."""
    headers = {"Range": "bytes=%d-" % have} if have else {}
    request = urllib.request.Request(url, headers=headers)
    return urllib.request.urlopen(request, timeout=TIMEOUT_S, context=_certificates())


def _certificates():
    """Those that Python trusts, or those that SSL_CERT_FILE names, and the file or folder that REQUESTS_CA_BUNDLE names."""
    context, bundle = ssl.create_default_context(), os.environ.get(BUNDLE)
    if bundle:
        try:
            context.load_verify_locations(**{"capath" if os.path.isdir(bundle) else "cafile": bundle})
        except OSError as error:
            raise OSError("cannot read %s, which %s names: %s" % (bundle, BUNDLE, error.strerror or error)) from None
    return context


def _expect(url, size, have, length):
    """Refuse an answer of another length before a byte of it is stored: a login page, say, or a new edition."""
    if length is None:
        return
    offered = have + int(length) if length.strip().isdigit() else length.strip()[:20]
    if offered != size:
        raise DataError("%s offers %s bytes instead of %d: it is not the file that is meant" % (url, offered, size))


def _append(url, path, have, size, answer):
    """Write the answer's bytes from position have on; returns how many bytes the file has then."""
    progress, since, before = Progress(os.path.basename(url), size), time.perf_counter(), have
    with contextlib.closing(progress), open(path, "r+b" if have else "wb") as file:
        file.seek(have)
        while have < size:
            with _explained(url):
                block = answer.read1(min(BLOCK, size - have))  # what has come, be it a byte
            if not block:
                break
            file.write(block)
            have += len(block)
            progress.show(have)
            if time.perf_counter() - since > PACE_S:
                if have - before < SLOWEST:
                    raise DataError("%s sends less than %d kB in %d s" % (url, SLOWEST // 1024, PACE_S))
                since, before = time.perf_counter(), have
    return have


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


class Progress(object):
    """Progress of a download on standard error: a bar on a terminal, elsewhere a line every 10 %."""

    def __init__(self, name, size):
        self.name, self.size = name, size  # size in bytes
        self.redraws = sys.stderr.isatty()
        self.shown = None  # the last step written: 1 % of a bar, 10 % of lines

    def show(self, have):
        """have: bytes that have come so far."""
        percent = 100 * have // self.size
        step = percent if self.redraws else percent // 10
        if step == self.shown:
            return
        self.shown = step
        text = "%s %3d %%  %.1f of %.1f MB" % (self.name, percent, have / 1e6, self.size / 1e6)
        if self.redraws:
            filled = BAR * have // self.size
            sys.stderr.write("\r[%s%s] %s" % ("#" * filled, "-" * (BAR - filled), text))
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def close(self):
        """Leave the line of the bar."""
        if self.redraws and self.shown is not None:
            sys.stderr.write("\n")
