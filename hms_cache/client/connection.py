"""One connection to one metastore, and what can go wrong with it."""

from __future__ import annotations

import ssl
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TException
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from hms_cache.authentication.servers import Address, thrift_socket
from hms_cache.errors import HmsCacheError
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore


class MetastoreUnavailableError(HmsCacheError):
    """No metastore of the list could be reached, or none of them answered a read. The same call may succeed later."""

    retriable = True


class OutcomeUnknownError(HmsCacheError):
    """The connection broke after a write was sent: it may have happened or not. It is not sent again by the client."""


class Connection:
    """An open connection: strict binary protocol, no framing, as Hive's clients speak it. For one thread at a time."""

    def __init__(
        self,
        address: Address,
        *,
        connect_timeout_s: float,
        call_timeout_s: float,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        """Connects. Raises TTransportException when nobody answers within `connect_timeout_s`; OSError for TLS."""
        self.address = address
        socket = thrift_socket(address.host, address.port, tls=address.tls, context=tls_context)
        socket.setTimeout(connect_timeout_s * 1000)
        self._transport = TBufferedTransport(socket)
        self._transport.open()
        socket.setTimeout(call_timeout_s * 1000)
        self._client = ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(self._transport))

    def call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """One call. Raises what the method declares, TApplicationException, or a failure of the connection.

        Whatever is no answer (see `is_answer`) leaves it unusable.
        """
        return getattr(self._client, method)(*arguments)

    def close(self) -> None:
        """Closes the socket; never raises."""
        self._transport.close()


def is_answer(error: BaseException) -> bool:
    """Whether a call raised what the metastore has answered, in a reply that was read to its end."""
    return isinstance(error, TException) and not isinstance(error, TProtocolException | TTransportException)


CONNECTION_FAILURES = (TTransportException, OSError, EOFError)
"""What the transport raises when the other side is gone or silent."""
