"""The first step of a migration: Hive's own metastore and ours on the same database, both read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from benchmarks.java_metastore import JavaMetastore, fetch, load_schema, statement_counter
from hms_cache.app.service import Service
from hms_cache.app.shadow.comparing import Rules
from hms_cache.app.shadow.metastore import Endpoint
from hms_cache.app.shadow.running import walk
from hms_cache.authentication.servers import Address
from hms_cache.client import MetastoreClient
from hms_cache.config import load
from tests.app.shadow.catalogs import fill
from tests.conftest import ServerLookup

pytestmark = [pytest.mark.soak, pytest.mark.java, pytest.mark.mariadb]


@pytest.fixture
def database_of_java(database_servers: ServerLookup) -> Iterator[str]:
    """A database with the schema of Hive's own script, for an account with a password; without one, Java assumes
    one."""
    server = database_servers("mariadb")
    url = server.create_database()
    load_schema(fetch(), url)
    with statement_counter(url) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE USER IF NOT EXISTS 'shadow'@'%' IDENTIFIED BY 'shadow'")
        cursor.execute("GRANT ALL ON *.* TO 'shadow'@'%'")
    yield make_url(url).set(username="shadow", password="shadow").render_as_string(hide_password=False)
    server.drop_database(url)


def test_a_walk_through_java_and_ours_on_one_database_finds_nothing(database_of_java: str, tmp_path: Path) -> None:
    """Including times and ids: they are the same rows."""
    with ExitStack() as stack:
        java = JavaMetastore(database_of_java, tmp_path / "java", cached=False, pool_size=10)
        stack.callback(java.stop)
        primary = f"thrift://{java.start()}"
        with MetastoreClient(primary) as client:  # before ours starts: a standalone Java metastore logs no events
            fill(client, (tmp_path / "files").as_uri())
        ours = Service(
            load(
                command_line={
                    "server.port": 0,
                    "admin.enabled": False,
                    "database.url": database_of_java,
                    "warehouse.directory": str(tmp_path / "java" / "managed"),
                    "cache.peers": "hive4",
                },
                environment={},
            )
        )
        other = ours.start()
        stack.callback(ours.stop)
        rules = Rules(compare_times=True, compare_ids=True)
        report = walk(Endpoint(Address.parse(primary)), Endpoint(Address.parse(other)), rules).as_json()
        assert report["differences"] == []
        assert report["totals"]["equal"] == sum(report["totals"].values()) > 15
