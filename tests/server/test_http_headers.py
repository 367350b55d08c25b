"""HTTP headers are parsed as they arrive: the same ones are refused however they are split, and each byte costs the
same."""

from __future__ import annotations

import re
from typing import Any

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hms_cache.server.transports import http_requests
from hms_cache.server.transports.http_requests import MAX_HEADER_LINES, Requests

MAX_HEADER_BYTES = 16 * 1024
START = b"POST /metastore HTTP/1.1\r\nhost: a\r\n"


class Looked:
    """Replaces a pattern; counts the bytes that are searched."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self.bytes = 0

    def search(self, text: bytes, *span: int) -> re.Match[bytes] | None:
        """Like a pattern's."""
        begin, end = (*span, *(0, len(text))[len(span) :])
        self.bytes += max(0, min(end, len(text)) - begin)
        return self._pattern.search(text, *span)


def test_a_header_that_comes_byte_by_byte_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A header of 32 KiB was searched again for each byte, without authentication: a millisecond for a packet."""
    looked = Looked(http_requests._END_OF_HEADER)
    monkeypatch.setattr(http_requests, "_END_OF_HEADER", looked)
    requests = Requests(MAX_HEADER_BYTES)
    header = START + b"x: " + b"y" * 8_000
    for byte in header:
        requests.receive_data(bytes([byte]))
        assert requests.next_event() is h11.NEED_DATA
    requests.receive_data(b"\r\n\r\n")
    assert isinstance(requests.next_event(), h11.Request)
    assert looked.bytes <= 4 * len(header)


def outcome(parts: list[bytes]) -> Any:
    """The result for a header that comes in parts: the status of a refusal, or what h11 has parsed."""
    requests = Requests(MAX_HEADER_BYTES)
    try:
        for part in parts:
            requests.receive_data(part)
            if (event := requests.next_event()) is not h11.NEED_DATA:
                return event.method, event.target, list(event.headers), requests.trailing_data[0]
    except h11.RemoteProtocolError as error:
        return error.error_status_hint
    return "more is needed"


lines = st.sampled_from(
    [b"a: b\r\n", b"a: b\n", b" folded\r\n", b"\tfolded\r\n", b"c: d\r\r\n", b"\r\n", b"\n", b"e:\r\n", b"f: g\rh\r\n"]
)


@given(st.lists(lines, max_size=6), st.lists(st.integers(1, 9), min_size=1, max_size=4))
@example([b"a: b\r\n", b"\r\n"], [1])
@example([b"a: b\n", b"\r\n"], [1])
@example([b"a: b\r\n", b" folded\r\n", b"\r\n"], [1])
@example([b"\r\n"], [1])
def test_a_header_in_parts_has_the_same_outcome(of_lines: list[bytes], sizes: list[int]) -> None:
    header = START + b"".join(of_lines)
    end = re.search(rb"\n\r?\n", header)
    if end is not None:
        header = header[: end.end()]
    parts, at = [], 0
    while at < len(header):
        size = sizes[len(parts) % len(sizes)]
        parts.append(header[at : at + size])
        at += size
    assert outcome(parts) == outcome([header])


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_lines_are_counted_over_all_parts_and_for_each_header_anew(size: int) -> None:
    def fed(requests: Requests, data: bytes) -> Any:
        event: Any = h11.NEED_DATA
        for at in range(0, len(data), size):
            requests.receive_data(data[at : at + size])
            event = requests.next_event()
        return event

    requests = Requests(MAX_HEADER_BYTES)
    for _ in range(3):  # on one socket
        many = START + b"a:\r\n" * (MAX_HEADER_LINES - 10) + b"content-length: 0\r\n\r\n"
        assert isinstance(fed(requests, many), h11.Request)
        assert isinstance(requests.next_event(), h11.EndOfMessage)
        requests.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
        requests.send(h11.EndOfMessage())
        requests.start_next_cycle()
    with pytest.raises(h11.RemoteProtocolError) as refused:
        fed(requests, START + b"a:\r\n" * (MAX_HEADER_LINES + 10))
    assert refused.value.error_status_hint == 431
