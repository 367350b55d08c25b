"""A Galera cluster of two nodes, and what the addresses of its databases are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from pymysql import connect
from sqlalchemy import make_url

from tests.databases import DatabaseServer, ServerMissing, start_galera_cluster


@dataclass(frozen=True, slots=True)
class Cluster:
    """Running nodes."""

    nodes: list[DatabaseServer]

    def urls(self) -> list[str]:
        """The addresses of a new database with the schema, one by node."""
        database = make_url(self.nodes[0].initialized_database()).database
        return [node.admin_url.set(database=database).render_as_string(hide_password=False) for node in self.nodes]

    def tell(self, node: int, statement: str) -> None:
        """Has a node execute a statement, also one without a quorum, which refuses most others."""
        address = self.nodes[node].admin_url
        with connect(host=address.host, port=address.port, user=address.username, autocommit=True) as connection:
            connection.cursor().execute(statement)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two nodes, started once for all tests of a module."""
    with _cluster_of(2) as cluster:
        yield cluster


@pytest.fixture
def three_nodes() -> Iterator[Cluster]:
    """Three nodes, of which the test may kill one: the others are the majority."""
    with _cluster_of(3) as cluster:
        yield cluster


@contextmanager
def _cluster_of(size: int) -> Iterator[Cluster]:
    try:
        nodes = start_galera_cluster(size)
    except ServerMissing as error:
        if os.environ.get("HMS_CACHE_REQUIRE_DATABASES") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))
    try:
        yield Cluster(nodes)
    finally:
        for node in reversed(nodes):
            node.stop()
