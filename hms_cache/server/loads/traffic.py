"""Bytes of open connections by user and address, as counted by the system: nothing is recorded for each call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hms_cache.metrics.loads import MAX_NAMES, Traffic
from hms_cache.server.admission import AdmittedConnection
from hms_cache.server.connection import Connection
from hms_cache.server.transports.tcp_info import bytes_carried


def traffic_by(of: Literal["user", "address"], guests: Iterable[AdmittedConnection]) -> tuple[Traffic, ...]:
    """Sums over the open connections: the `MAX_NAMES` names to which the most was sent, in this order."""
    sums: dict[str, list[int]] = {}
    for one in guests:
        if not isinstance(one, Connection):
            continue
        received_bytes, sent_bytes = bytes_carried(one.raw_socket)
        found = sums.setdefault(one.client(of), [0, 0, 0])
        found[0] += 1
        found[1] += received_bytes
        found[2] += sent_bytes
    rows = [Traffic(name, *found) for name, found in sums.items()]
    return tuple(sorted(rows, key=lambda one: (-one.sent_bytes, -one.received_bytes, one.name))[:MAX_NAMES])
