"""Ends what a connection's thread waits for, from another thread."""

from __future__ import annotations

import os
import socket
import sqlite3
from typing import Any


def interrupt(connection: Any) -> None:
    """`connection` is a driver's: sqlite3's, PyMySQL's or psycopg's, or None. Does not raise, and does not wait.

    The sockets are shut down, not closed: their numbers stay taken until the thread that waits has let go of them.
    """
    try:
        if isinstance(connection, sqlite3.Connection):
            connection.interrupt()
            return
        if connection is None:
            return
        own = getattr(connection, "_sock", None)
        if own is not None:
            socket.socket.shutdown(own, socket.SHUT_RDWR)  # below TLS: a farewell in its terms would wait
        elif hasattr(connection, "fileno"):
            with socket.socket(fileno=os.dup(connection.fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)
    except (OSError, sqlite3.Error, TypeError, ValueError):
        return  # it has just ended by itself
    except Exception as error:
        if type(error).__module__.split(".")[0] != "psycopg":
            raise  # psycopg's OperationalError: the connection is closed
