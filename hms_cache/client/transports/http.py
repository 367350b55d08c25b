"""Thrift over HTTP, the client's side, as Hive 4's clients speak it: a call is a POST, the response has its reply."""

from __future__ import annotations

import http.client
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import NoReturn

from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TTransportBase, TTransportException

from hms_cache.authentication.servers import Address
from hms_cache.client.authentication.negotiation import shown
from hms_cache.client.errors import AuthenticationRefusedError
from hms_cache.cut_connections import cut_after
from hms_cache.program_version import program_version

CONTENT_TYPE = "application/x-thrift"

_MAX_TEXT_BYTES = 2_000
"""Of the body of a refusal."""

_FAILURES = (http.client.HTTPException, OSError, ValueError)
"""What http.client raises for an answer that is none: a number that is not one is a ValueError."""


class HttpTransport(TTransportBase):  # type: ignore[misc]  # untyped
    """Over an open socket of Thrift's, which it closes with itself. Redirections are not followed: a token is for the
    address that was named."""

    def __init__(
        self, opened: TSocket, address: Address, headers: Callable[[], dict[str, str]], timeout_s: float
    ) -> None:
        """`headers`: those of a request, asked for each time. `timeout_s`: until the header of a response is there."""
        self._address = address
        self._headers = headers
        self._timeout_s = timeout_s
        self._socket: socket.socket = opened.handle
        self._close = opened.close
        self._http = http.client.HTTPConnection(address.host, address.port)
        self._http.sock = self._socket
        self._http.auto_open = 0  # a new connection is the client's to make
        self._unsent = BytesIO()
        self._secret = ""
        """Of the last request."""
        self._response: http.client.HTTPResponse | None = None

    def isOpen(self) -> bool:
        """Whether another request can be sent: the server may have closed, or told that it will."""
        if self._http.sock is None or self._socket.fileno() < 0:
            return False
        if self._response is None:
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        with suppress(*_FAILURES):
            if self._response is not None:
                self._response.close()
            self._http.close()
        self._close()

    def write(self, buf: bytes) -> None:
        self._unsent.write(buf)

    def flush(self) -> None:
        """Sends the request, and waits for the response to begin.

        Raises AuthenticationRefusedError, CredentialsError; TTransportException for all that is no reply.
        """
        body = self._unsent.getvalue()
        self._unsent = BytesIO()
        own = self._headers()
        self._secret = own.get("authorization", "").rpartition(" ")[2]
        headers = {
            "content-type": CONTENT_TYPE,
            "accept": CONTENT_TYPE,
            "user-agent": f"hms-cache/{program_version()}",
            **own,
        }
        try:
            self._end_response()
            with cut_after(self._timeout_s, lambda: [self._socket]):
                self._http.request("POST", self._address.path, body, headers)
                self._response = self._http.getresponse()
        except _FAILURES as error:
            told = shown(str(error).encode(), self._secret)
            raise TTransportException(
                TTransportException.UNKNOWN, f"no answer of HTTP: {type(error).__name__}: {told}"
            ) from None  # its text may have the secret in it
        self._check(self._response)

    def read(self, sz: int) -> bytes:
        """At most so many bytes of the reply."""
        if self._response is None:
            raise TTransportException(TTransportException.NOT_OPEN, "there is no request")
        try:
            return self._response.read(sz)
        except _FAILURES as error:
            raise TTransportException(
                TTransportException.END_OF_FILE, f"the answer of HTTP broke off: {type(error).__name__}"
            ) from error

    def _end_response(self) -> None:
        """Of the call before: the reply was read to its end, and what ends the body may still be there."""
        if self._response is not None and not self._response.isclosed() and self._response.read(1):
            raise http.client.HTTPException("there is more than a reply in a response")

    def _check(self, response: http.client.HTTPResponse) -> None:
        if response.status == 200:
            kind = (response.getheader("content-type") or CONTENT_TYPE).partition(";")[0].strip().lower()
            if kind != CONTENT_TYPE:
                raise TTransportException(
                    TTransportException.UNKNOWN,
                    f"it answers {shown(kind.encode(), self._secret)}, no reply of Thrift: it is no metastore's URI",
                )
            return
        self._refused(response)

    def _refused(self, response: http.client.HTTPResponse) -> NoReturn:
        status, text = response.status, ""
        if (response.getheader("content-type") or "").startswith("text/plain"):
            with suppress(*_FAILURES):
                text = shown(response.read(_MAX_TEXT_BYTES), self._secret)
        if status in (401, 403, 407):
            raise AuthenticationRefusedError(
                f"HTTP: the metastore says: {text or response.status}; check the token, its issuer and until when it is"
                " good"
            )
        if 300 <= status < 400:
            text = "it names another address, which is not followed: give that one as the URI"
        raise TTransportException(TTransportException.UNKNOWN, f"HTTP status {status}{': ' if text else ''}{text}")
