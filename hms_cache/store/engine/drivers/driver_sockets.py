"""Interrupts, from another thread, what a connection's thread waits for."""

from __future__ import annotations

import os
import socket
import sqlite3
from typing import Any


def interrupt(connection: Any) -> None:
    """Interrupts a driver's connection (sqlite3, PyMySQL, psycopg, or None). Does not raise, and does not wait.

    Sockets are shut down, not closed: their descriptors stay allocated until the waiting thread has released them.
    """
    try:
        if isinstance(connection, sqlite3.Connection):
            connection.interrupt()
            return
        if connection is None:
            return
        own = getattr(connection, "_sock", None)
        if own is not None:
            socket.socket.shutdown(own, socket.SHUT_RDWR)  # below TLS: a close message of TLS would wait
        elif hasattr(connection, "fileno"):
            with socket.socket(fileno=os.dup(connection.fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)
    except (OSError, sqlite3.Error, TypeError, ValueError):
        return  # the connection has just ended
    except Exception as error:
        if type(error).__module__.split(".")[0] != "psycopg":
            raise  # psycopg's OperationalError: the connection is closed
