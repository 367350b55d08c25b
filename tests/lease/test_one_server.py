"""One server without other members: exact reads without a statement, and what the configuration refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from hms_cache.app.database import open_database
from hms_cache.config.settings import Settings
from hms_cache.lease.unannounced import UnannouncedWrites
from hms_cache.metadata.object_names import TableName
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache import world
from tests.databases import closing
from tests.lease.member import Member

SECRET = "sixteen letters."


@pytest.fixture
def member(sqlite_database: Database, tmp_path: Path) -> Iterator[Member]:
    one = Member(sqlite_database.url.render_as_string(hide_password=False), tmp_path / "warehouse")
    yield one
    one.close()


def test_exact_reads_send_no_statement_and_see_each_write(member: Member) -> None:
    store = member.server.store
    store.writes.databases.create_database(ttypes.Database(name="d", catalogName="hive", locationUri="file:/tmp/d"))
    store.writes.tables.create_table(world.table("d", "t", version="0"))
    for version in ("1", "2", "3"):
        store.writes.tables.alter_table(TableName("hive", "d", "t"), world.table("d", "t", version=version))
        assert store.reads.tables.get_table(TableName("hive", "d", "t")).parameters["version"] == version
    member.wait_for_lease()
    store.reads.tables.get_table(TableName("hive", "d", "t"))
    member.wait_for_lease()
    checks, statements = member.server.cache.check.checks, member.server.database.statements.value()
    for _ in range(20):
        assert store.reads.tables.get_table(TableName("hive", "d", "t")).parameters["version"] == "3"
    assert (member.server.cache.check.checks, member.server.database.statements.value()) == (checks, statements)


def test_after_leaving_the_row_is_gone_and_every_read_asks(member: Member) -> None:
    member.wait_for_lease()
    member.membership.stop()
    assert not member.freshness.holds_lease()
    checks = member.server.cache.check.checks
    assert member.freshness.ensure()
    assert member.server.cache.check.checks == checks + 1
    with member.server.database.checking() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM HMS_CACHE_MEMBERS").scalar() == 0


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"cache": {"exactness": "lease", "peers": "hive4"}}, "cache.peers = none"),
        ({"server": {"workers": 2}}, "server.workers = 1"),
        ({"lease": {"secret": "short"}}, "lease.secret of at least 16 characters"),
        ({"lease": {}}, "lease.secret"),
        *[
            ({"lease": {"secret": SECRET, **given}}, text)
            for given, text in (
                ({"host": "0.0.0.0"}, "set lease.address"),
                ({"host": "::"}, "set lease.address"),
                ({"host": ""}, "set lease.address"),
                ({"address": "hms1"}, "must be host:port"),
                ({"address": "hms1:"}, "must be host:port"),
                ({"address": ":9087"}, "must be host:port"),
                ({"address": "hms1:lease"}, "must be host:port"),
                ({"address": "hms1:0"}, "must be host:port"),
                ({"address": "hms1:65536"}, "must be host:port"),
                ({"address": "0.0.0.0:9087"}, "must be an address of this server"),
                ({"address": "[::]:9087"}, "must be an address of this server"),
                ({"address": f"{'h' * 251}:9087"}, "the database allows 255"),
            )
        ],
    ],
)
def test_what_leases_cannot_be_combined_with_is_refused_by_name(change: dict[str, object], text: str) -> None:
    good: dict[str, object] = {"cache": {"exactness": "lease"}, "lease": {"secret": SECRET}}
    Settings.model_validate(good)
    with pytest.raises(ValidationError, match=text):
        Settings.model_validate({**good, **change})


@pytest.mark.parametrize(
    "given",
    [
        {"host": "127.0.0.1"},
        {"host": "::1"},
        {"host": "0.0.0.0", "address": "hms1.example:9087"},
        {"host": "::", "address": "[2001:db8::1]:9087"},
        {"address": f"{'h' * 250}:9087"},
    ],
    ids=str,
)
def test_addresses_that_others_can_connect_to_are_taken(given: dict[str, object]) -> None:
    Settings.model_validate({"cache": {"exactness": "lease"}, "lease": {"secret": SECRET, **given}})


@pytest.mark.parametrize(("exactness", "is_warned"), [("check", True), ("lease", False)])
def test_only_a_server_under_check_is_told_that_others_read_by_lease(
    member: Member, exactness: str, is_warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A server writes before it joins: its first rows."""
    member.wait_for_lease()
    url = member.server.database.url.render_as_string(hide_password=False)
    given = {"database": {"url": url}, "cache": {"exactness": exactness}, "lease": {"secret": SECRET}}
    with closing(open_database(Settings.model_validate(given))) as database:
        guard = database.write_guard
        assert isinstance(guard, UnannouncedWrites)
        guard.ready()
        assert guard.has_members
    assert any("Give all servers the same setting" in text for text in caplog.messages) is is_warned
