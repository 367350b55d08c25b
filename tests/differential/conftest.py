"""Hive 4.0.1 and this project's server, started once for all scenarios, each with its own MariaDB database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import ServerLookup
from tests.differential.metastores import Sides, java_metastore, our_metastore, own_database


@pytest.fixture(scope="session")
def sides(tmp_path_factory: pytest.TempPathFactory, database_servers: ServerLookup) -> Iterator[Sides]:
    """Both metastores, empty."""
    databases = database_servers("mariadb")
    with ExitStack() as stack:
        directories: list[Path] = [tmp_path_factory.mktemp(name) for name in ("java", "ours")]
        java = stack.enter_context(java_metastore(own_database(databases, stack), directories[0]))
        ours = stack.enter_context(our_metastore(own_database(databases, stack), directories[1]))
        yield Sides(java, ours)
