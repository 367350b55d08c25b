"""A plain client for any metastore: 2.3 to 4.x."""

from __future__ import annotations

import socket
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException
from thrift.transport import TSocket, TTransport

from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes

TIMEOUT_S = 600


def connect(address: str) -> Any:
    """An open client on HOST:PORT."""
    host, port = address.rsplit(":", 1)
    link = TSocket.TSocket(host, int(port))
    link.setTimeout(TIMEOUT_S * 1000)
    transport = TTransport.TBufferedTransport(link, 1 << 16)
    client = ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport, fallback=False))
    transport.open()
    link.handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def has_get_table(client: Any) -> bool:
    """Hive 4.0.1 and later have only `get_table_req`."""
    try:
        client.get_table("default", "no_such_table")
    except ttypes.NoSuchObjectException:
        return True
    except TApplicationException as error:
        if error.type == TApplicationException.UNKNOWN_METHOD:
            return False
        raise
    return True
