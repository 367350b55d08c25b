"""One node of a Galera cluster is the active one: what only a row lock protects is protected on all nodes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from sqlalchemy import Connection, insert, select

from hms_cache.app.checks import run_checks
from hms_cache.config.sections import DatabaseSettings
from hms_cache.config.settings import Settings
from hms_cache.limited_log import LimitedLog
from hms_cache.store.engine import active_node
from hms_cache.store.engine.active_node import other_active_node
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.members import members
from hms_cache.store.members.members import MemberRow
from hms_cache.store.schema import AUX_TABLE, METASTORE_DB_PROPERTIES
from hms_cache.store.transactions.database_values import lock_all_txns_exclusive
from tests.databases import closing, count_statements
from tests.galera.conftest import Cluster

pytestmark = [pytest.mark.soak, pytest.mark.mariadb, pytest.mark.timeout(60)]

A = AUX_TABLE.c


@pytest.fixture
def databases(cluster: Cluster) -> Iterator[list[Database]]:
    """One database through each node."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Database(url))) for url in cluster.urls()]


def names(connection: Connection) -> list[str]:
    return list(connection.execute(select(A.MT_KEY1).where(A.MT_KEY2 == 7)).scalars())


def add_if_none(name: str, meanwhile: Callable[[], object] = lambda: None) -> Callable[[WriteTransaction], str]:
    """Under a lock, adds a row unless there is one; returns the row's name."""

    def work(transaction: WriteTransaction) -> str:
        connection = transaction.connection
        lock_all_txns_exclusive(connection)
        found = names(connection)
        meanwhile()
        if found:
            return found[0]
        connection.execute(insert(AUX_TABLE).values(MT_KEY1=name, MT_KEY2=7))
        return name

    return work


def _need_no_lock(transaction: WriteTransaction) -> None:
    """Waits for no other write."""


def test_what_is_read_under_a_lock_is_valid_at_the_commit(databases: list[Database]) -> None:
    first, second = databases
    others: list[str] = []

    def meanwhile() -> None:
        if not others:
            others.append(run_write(second, add_if_none("by the second")))

    assert run_write(first, add_if_none("by the first", meanwhile)) == "by the second"
    with first.checking() as connection:
        assert names(connection) == others == ["by the second"]


def test_a_write_that_began_before_the_node_was_active_twice_runs_again(databases: list[Database]) -> None:
    """Its node is the active one again when it commits."""
    first, second = databases
    runs = []

    def meanwhile() -> None:
        runs.append(1)
        if len(runs) == 1:
            run_write(second, add_if_none("by the second"))
            with closing(Database(first.url.render_as_string(hide_password=False))) as beside:
                run_write(beside, _need_no_lock)

    assert run_write(first, add_if_none("by the first", meanwhile)) == "by the second"
    assert len(runs) > 1


def test_one_node_is_the_active_one(
    databases: list[Database], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that uses it writes without delay, and with one statement more; another one takes over, and says so."""
    first, second = databases
    monkeypatch.setattr(active_node, "_LOGGER", LimitedLog(logging.getLogger("of this test")))
    caplog.set_level(logging.WARNING)
    run_write(first, add_if_none("a"))
    with count_statements(first) as seen:
        run_write(first, add_if_none("b"))
    assert [one.split()[0] for one in seen.statements] == ["SELECT", "SELECT", "UPDATE"]
    with first.checking() as connection:
        assert other_active_node(connection) is None
    with second.checking() as connection:
        assert str(other_active_node(connection)).endswith(":node-1")
    checked = Settings(database=DatabaseSettings(url=second.url.render_as_string(hide_password=False)))
    assert any("another node of the Galera cluster" in one.problem for one in run_checks(checked).found)
    assert not caplog.records
    run_write(second, add_if_none("c"))
    assert "writes go through the Galera node" in caplog.text
    with second.checking() as connection:
        assert other_active_node(connection) is None


def test_hives_properties_do_not_include_the_row(databases: list[Database]) -> None:
    run_write(databases[0], add_if_none("a"))
    keys = METASTORE_DB_PROPERTIES.c.PROPERTY_KEY
    with databases[0].checking() as connection:
        assert not connection.execute(select(keys).where(keys.like("hms%"))).all()


ROW = MemberRow("m", "127.0.0.1:1", 1, 1000, False, False)


@pytest.mark.parametrize("is_first_write", [True, False])
def test_a_member_that_joins_through_another_node_is_not_missed(
    is_first_write: bool, databases: list[Database]
) -> None:
    first, second = databases
    members.create_table(first)
    if not is_first_write:
        run_write(first, add_if_none("a"))
    seen: list[tuple[MemberRow, ...]] = []

    def work(transaction: WriteTransaction) -> None:
        seen.append(members.read(transaction.connection))
        if len(seen) == 1:
            members.join(second, ROW)

    run_write(first, work)
    assert not seen[0] and len(seen[-1]) == 1


def test_a_write_does_not_commit_after_its_member_was_fenced_through_another_node(databases: list[Database]) -> None:
    first, second = databases
    members.create_table(first)
    members.join(first, ROW)
    seen: list[bool] = []

    def work(transaction: WriteTransaction) -> None:
        found = members.under_lock(
            first,
            transaction.connection,
            transaction.execute_directly(
                [(one.query, one.values) for one in members.queries_under_lock(first, transaction.connection, "m", 1)]
            ),
        )
        seen.append(found.is_own)
        if len(seen) == 1:
            members.fence(second, "m", 1)

    run_write(first, work)
    assert seen[0] and not seen[-1]
