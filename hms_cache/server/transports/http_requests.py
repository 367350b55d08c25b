"""HTTP requests as h11 reads them, except those that others may interpret differently or that take long to parse.

If a proxy in front of the server sees another end of a request, or another path, it may let requests pass that it
should refuse (RFC 9112, 11.2). No client needs what is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from ipaddress import ip_address
from typing import Any

import h11
from h11._readers import ChunkedReader

from hms_cache.server.transports.trusted_networks import address_text

MAX_HEADER_LINES = 200
"""Lines of a header. A line takes a microsecond to parse, however short it is, and a header of the maximum size could
have thousands of lines. Clients and proxies send about twenty."""

_LINE_END_BYTES = 2
"""Number of bytes received before that are looked at again with new ones: the end of one line and the beginning of the
next may be among them."""

_TOO_MANY_LINES = f"the header has too many lines; {MAX_HEADER_LINES} are allowed"

_MAX_SHOWN = 300
"""Characters of a refusal: a line of the header may be as long as the whole header."""

_END_OF_HEADER = re.compile(rb"\n\r?\n")
_FOLDED_LINE = re.compile(rb"\n[ \t]")
_AUTHORITY = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)

FORWARDED_HEADER = b"x-forwarded-for"

_BRACKETED = re.compile(r"\[([^\]]*)\](?::\d{1,5})?")
_WITH_PORT = re.compile(r"([^:]*):\d{1,5}")
"""Some proxies add the client's port."""

_MAX_SHOWN_ADDRESS = 64

_QUOTED = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""
_PYTHONS_BYTES = re.compile(rf"bytearray\(b(?P<array>{_QUOTED})\)|\bb(?P<bytes>{_QUOTED})")
"""How h11 puts bytes that it does not understand into its sentences."""


class _Chunks(ChunkedReader):
    """Reads bodies in chunks. Behind them there may be another header, which h11 would parse in one go."""

    def __init__(self, max_header_bytes: int) -> None:
        super().__init__()
        self._max_header_bytes = max_header_bytes

    def __call__(self, buf: Any) -> Any:
        if self._reading_trailer and _lines(bytes(buf), self._max_header_bytes) > MAX_HEADER_LINES:
            raise h11.LocalProtocolError(_TOO_MANY_LINES, 431)  # h11 turns it into a RemoteProtocolError
        return super().__call__(buf)


class _Header:
    """Checks a header as it arrives, each byte once: a client may send it byte by byte."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._seen_bytes = 0
        self._lines = 0

    def begin(self) -> None:
        """The next bytes begin another header."""
        self._seen_bytes = self._lines = 0

    def problem(self, buffered: bytes) -> tuple[int, str] | None:
        """Checks everything received of it. Returns status and sentence of a refusal."""
        known = min(self._seen_bytes, _LINE_END_BYTES)
        some = buffered[self._seen_bytes - known : self._max_bytes]
        self._seen_bytes = min(len(buffered), self._max_bytes)
        end = _END_OF_HEADER.search(some)
        self._lines += some.count(b"\n", known, end.start() if end else len(some))
        if self._lines > MAX_HEADER_LINES:
            return 431, _TOO_MANY_LINES
        length = end.end() if end else len(some)
        before = max(0, known - 1)
        if some.count(b"\n", known, length) != some.count(b"\r\n", before, length):
            return 400, "a line of the header does not end with CR LF"
        if _FOLDED_LINE.search(some, before, length):
            return 400, "a line of the header begins with a blank"
        return None


class Requests(h11.Connection):
    """The server's side of one socket. Each RemoteProtocolError has a text that explains the error to the client."""

    def __init__(self, max_header_bytes: int) -> None:
        super().__init__(h11.SERVER, max_header_bytes)
        self._max_header_bytes = max_header_bytes
        self._header = _Header(max_header_bytes)

    def next_event(self) -> Any:
        """See h11."""
        if self.their_state is h11.IDLE:
            problem = self._header.problem(self.trailing_data[0])
            if problem is not None:
                status, text = problem
                raise h11.RemoteProtocolError(text, status)
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            text = f"not a request of HTTP: {_without_python_types(str(error))}"
            raise h11.RemoteProtocolError(text, error.error_status_hint or 400) from error
        if isinstance(event, h11.Request):
            self._header.begin()
        return event

    def _get_io_object(self, role: Any, event: Any, io_dict: Any) -> Any:
        found = super()._get_io_object(role, event, io_dict)
        return _Chunks(self._max_header_bytes) if type(found) is ChunkedReader else found


def problem_of(request: h11.Request) -> tuple[int, str] | None:
    """Status and sentence of a refusal that applies to any request."""
    if not request.http_version.startswith(b"1."):
        return 505, "this server speaks HTTP/1.1"
    names = {name for name, _ in request.headers}
    if b"transfer-encoding" not in names:
        return None
    if b"content-length" in names:  # RFC 9112, 6.1: a proxy may see another end of the request
        return 400, "a request has content-length or transfer-encoding, not both"
    if request.http_version == b"1.0":  # the same: HTTP/1.0 has no chunks
        return 400, "a request of HTTP/1.0 has no transfer-encoding"
    return None


def forwarded_address(headers: Iterable[tuple[bytes, bytes]], proxies: Container[str]) -> str | None:
    """Returns the client's address by the header `x-forwarded-for` of a request that came from a proxy; None without
    this header. Raises ValueError if it is not an IP address, of which the message names the beginning.

    Each proxy adds the address from which it got the request at the end, and a client can send anything in front. So
    the last address counts that is none of `proxies`.
    """
    lines = b",".join(value for name, value in headers if name == FORWARDED_HEADER).decode("latin-1")
    named = [name.strip() for name in lines.split(",") if name.strip()]
    address = None
    for name in reversed(named):
        bracketed = _BRACKETED.fullmatch(name)
        with_port = _WITH_PORT.fullmatch(name)
        text = bracketed[1] if bracketed else with_port[1] if with_port else name
        try:
            address = address_text(ip_address(text))
        except ValueError as error:
            raise ValueError(f"x-forwarded-for: {name[:_MAX_SHOWN_ADDRESS]!r} is not an IP address") from error
        if address not in proxies:
            break
    return address


def leads_to(target: bytes, request_target: bytes) -> bool:
    """Whether a request is for the path `target`, or for one below it.

    The host in a request to a proxy is ignored. A path with escapes or dots is refused: a proxy may rewrite it to
    another one.
    """
    authority = _AUTHORITY.match(request_target)
    path = (request_target[authority.end() :] if authority else request_target).partition(b"?")[0]
    below = path.removeprefix(target)
    if path == below or (below and not below.startswith(b"/")):
        return False
    return not (set(below) & set(b"%\\;#") or {b".", b".."} & set(below.split(b"/")))


def _lines(buffered: bytes, max_header_bytes: int) -> int:
    """Number of header lines in what has been received so far."""
    end = _END_OF_HEADER.search(buffered, 0, max_header_bytes)
    return buffered.count(b"\n", 0, end.start() if end else len(buffered))


def _without_python_types(text: str) -> str:
    """Without the names of Python's types."""
    plain = _PYTHONS_BYTES.sub(lambda found: found["array"] or found["bytes"], text)
    return plain if len(plain) <= _MAX_SHOWN else f"{plain[:_MAX_SHOWN]}…"
