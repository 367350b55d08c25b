"""The client's side of Thrift over HTTP, as in Hive 4's clients: a call is a POST request, and the response contains
its reply."""

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
from hms_cache.program_version import program_version
from hms_cache.socket_deadlines import shutdown_after

CONTENT_TYPE = "application/x-thrift"

_MAX_TEXT_BYTES = 2_000
"""Maximum size of the body of a refusal that is read."""

_FAILURES = (http.client.HTTPException, OSError, ValueError)
"""Exceptions of http.client for an invalid answer; ValueError for an invalid number."""


class HttpTransport(TTransportBase):  # type: ignore[misc]  # untyped
    """Uses an open Thrift socket, which it closes when it is closed. Does not follow redirections, because the token is
    only for the named address."""

    def __init__(
        self, opened: TSocket, address: Address, headers: Callable[[], dict[str, str]], timeout_s: float
    ) -> None:
        """Takes over the socket.

        :param headers: returns the headers of a request; called for each request.
        :param timeout_s: maximum time until the header of a response has arrived.
        """
        self._address = address
        self._headers = headers
        self._timeout_s = timeout_s
        self._socket: socket.socket = opened.handle
        self._close = opened.close
        self._http = http.client.HTTPConnection(address.host, address.port)
        self._http.sock = self._socket
        self._http.auto_open = 0  # the client makes new connections itself
        self._unsent = BytesIO()
        self._secret = ""
        """The secret in the last request."""
        self._response: http.client.HTTPResponse | None = None

    def isOpen(self) -> bool:
        """Whether another request can be sent: the server may have closed the connection, or announced that."""
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
        """Sends the request, and waits for the beginning of the response.

        Raises AuthenticationRefusedError, CredentialsError; TTransportException if there is no valid reply.
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
            with shutdown_after(self._timeout_s, lambda: [self._socket]):
                self._http.request("POST", self._address.path, body, headers)
                self._response = self._http.getresponse()
        except _FAILURES as error:
            reason = shown(str(error).encode(), self._secret)
            raise TTransportException(
                TTransportException.UNKNOWN, f"no valid HTTP response: {type(error).__name__}: {reason}"
            ) from None  # its text may contain the secret
        self._check(self._response)

    def read(self, sz: int) -> bytes:
        """Returns at most `sz` bytes of the reply."""
        if self._response is None:
            raise TTransportException(TTransportException.NOT_OPEN, "no request was sent")
        try:
            return self._response.read(sz)
        except _FAILURES as error:
            raise TTransportException(
                TTransportException.END_OF_FILE, f"the HTTP response is incomplete: {type(error).__name__}"
            ) from error

    def _end_response(self) -> None:
        """Ends the response of the previous call: its reply was read completely, but the end of the body may remain."""
        if self._response is not None and not self._response.isclosed() and self._response.read(1):
            raise http.client.HTTPException("the response contains more than a reply")

    def _check(self, response: http.client.HTTPResponse) -> None:
        if response.status == 200:
            kind = (response.getheader("content-type") or CONTENT_TYPE).partition(";")[0].strip().lower()
            if kind != CONTENT_TYPE:
                raise TTransportException(
                    TTransportException.UNKNOWN,
                    f"it answers {shown(kind.encode(), self._secret)}, not Thrift: this is not the URI of a metastore",
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
                f"HTTP: the metastore answers: {text or response.status}; check the token, its issuer and its expiry"
                " time"
            )
        if 300 <= status < 400:
            text = "it redirects to another address: use that address as the URI"
        raise TTransportException(TTransportException.UNKNOWN, f"HTTP status {status}{': ' if text else ''}{text}")
