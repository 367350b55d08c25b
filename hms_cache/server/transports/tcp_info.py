"""What the kernel counts of a TCP connection (`struct tcp_info` of Linux): this adds nothing to the cost of the
traffic."""

from __future__ import annotations

import socket
import struct

_LAST_DATA_SENT_AT = 44
_LAST_DATA_RECEIVED_AT = 52
"""`tcpi_last_data_sent` and `tcpi_last_data_recv`: 32 bits, milliseconds."""

_ACKNOWLEDGED_AT = 120
"""`tcpi_bytes_acked`, and behind it `tcpi_bytes_received`: 64 bits each."""


def seconds_without_data(sock: socket.socket | None) -> float:
    """Seconds since bytes were last sent or received; 0 if the system does not say."""
    info = _tcp_info(sock, _LAST_DATA_RECEIVED_AT + 4)
    if info is None:
        return 0.0
    [sent_ms] = struct.unpack_from("=I", info, _LAST_DATA_SENT_AT)
    [received_ms] = struct.unpack_from("=I", info, _LAST_DATA_RECEIVED_AT)
    return float(min(sent_ms, received_ms)) / 1000


def bytes_carried(sock: socket.socket | None) -> tuple[int, int]:
    """Bytes received, and bytes sent and acknowledged, during the connection's life, TLS included; zeros if unknown."""
    info = _tcp_info(sock, _ACKNOWLEDGED_AT + 16)
    if info is None:
        return 0, 0
    sent_bytes, received_bytes = struct.unpack_from("=QQ", info, _ACKNOWLEDGED_AT)
    return received_bytes, sent_bytes


def _tcp_info(sock: socket.socket | None, size_bytes: int) -> bytes | None:
    """The beginning of the struct; None if there is none, or if it is shorter."""
    if sock is None or not hasattr(socket, "TCP_INFO") or sock.family == socket.AF_UNIX:
        return None
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, size_bytes)
    except OSError:  # the connection has just been closed
        return None
    return info if len(info) == size_bytes else None
