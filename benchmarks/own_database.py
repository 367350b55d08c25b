"""A database server that a benchmark starts for itself."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tests.databases import DatabaseServer

BUFFER_POOL_BYTES_A_PARTITION: Final = 600
"""MariaDB's memory for the rows and indexes of a partition, so that benchmarks of large tables do not measure its
disk."""

SMALL_PARTITIONS: Final = 1_000_000
"""Up to this many partitions fit into the server's default memory."""


class OwnDatabase(NamedTuple):
    """A database server, and a directory for other servers beside it."""

    server: DatabaseServer
    directory: Path


@contextmanager
def own_database(kind: str = "mariadb", *, partitions: int = 0) -> Iterator[OwnDatabase]:
    """Starts a server of this kind in `tests.databases.KINDS`, and stops it at the end. A server given by
    ``HMS_CACHE_TEST_MARIADB_URL`` is used without changes. Raises ServerMissing.

    :param partitions: how many partitions it will have.
    """
    from tests.databases import DatabaseServer, start_mariadb, start_server

    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        if kind == "mariadb" and partitions > SMALL_PARTITIONS and "HMS_CACHE_TEST_MARIADB_URL" not in os.environ:
            pool_bytes = partitions * BUFFER_POOL_BYTES_A_PARTITION
            server = start_mariadb(
                f"--innodb-buffer-pool-size={pool_bytes}", f"--innodb-log-file-size={pool_bytes // 8}"
            )
        else:
            started = start_server(kind, directory)
            assert isinstance(started, DatabaseServer)
            server = started
        try:
            yield OwnDatabase(server, directory)
        finally:
            server.stop()
