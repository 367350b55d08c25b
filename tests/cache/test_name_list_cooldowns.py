"""Names of a database with very many tables, some of which are created and dropped all the time (P6, P9): they are read
during a small part of the time, and not for each request whether a table exists."""

from __future__ import annotations

import pytest

from hms_cache.cache.entries import Facet
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.warming import name_list_cooldowns
from hms_cache.cache.warming.name_list_cooldowns import LONGEST_COOLDOWN_TIMES, SHORTEST_COOLDOWN_TIMES
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.object_store import ObjectReads
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException, TableMeta
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, Server, create_database, table
from tests.manual_clock import ManualClock

D = DatabaseName(CATALOG, "d")
LARGE = 20
A_LOAD_S = 0.5


class Names:
    """Two servers on a database with many tables, and the number of times its names were read, half a second each."""

    def __init__(self, servers: MakeServer, monkeypatch: pytest.MonkeyPatch, tables: int) -> None:
        self.clock = ManualClock()
        self.here: Server = servers(clock=self.clock)
        self.elsewhere: Server = servers()
        self.read = 0
        self._made = 0
        monkeypatch.setattr(name_list_cooldowns, "LARGE_DATABASE", LARGE - 1)
        create_database(self.elsewhere.objects, "d")
        for number in range(tables):
            self.elsewhere.objects.writes.tables.create_table(table("d", f"t{number}"))
        of_database = ObjectReads.read_meta_of_database

        def slow(reads: ObjectReads, database: DatabaseName) -> list[TableMeta]:
            self.read += 1
            self.clock.advance(A_LOAD_S)
            return of_database(reads, database)

        monkeypatch.setattr(ObjectReads, "read_meta_of_database", slow)

    def change(self) -> None:
        """Another server creates a table."""
        self._made += 1
        self.elsewhere.objects.writes.tables.create_table(table("d", f"temporary{self._made}"))

    def ask_for_absent(self) -> Reason:
        self.here.reads.clear()
        with pytest.raises(NoSuchObjectException):
            self.here.store.reads.tables.get_table(TableName(*D, "absent"))
        return self.here.reasons()[-1]


def test_they_have_cooldowns_while_tables_come_and_go(servers: MakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(servers, monkeypatch, LARGE)
    assert names.ask_for_absent() is Reason.MISS
    assert [names.ask_for_absent() for _ in range(3)] == [Reason.HIT] * 3
    assert names.read == 1
    for _ in range(10):
        names.change()
        assert names.ask_for_absent() is Reason.INCOMPLETE
    assert names.read == 1, "the database was asked for the table, not for the names of all"
    names.clock.advance(SHORTEST_COOLDOWN_TIMES * A_LOAD_S)
    assert names.ask_for_absent() is Reason.MISS
    assert names.ask_for_absent() is Reason.HIT
    assert names.read == 2


def test_the_time_that_is_spent_on_them_is_a_small_part(servers: MakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(servers, monkeypatch, LARGE)
    steps, step_s = 120, 0.8
    for _ in range(steps):
        names.change()
        names.ask_for_absent()
        names.clock.advance(step_s)
    # The first few pauses are shorter.
    assert names.read <= 4 + steps * step_s / (LONGEST_COOLDOWN_TIMES * A_LOAD_S)


def test_other_questions_are_answered_meanwhile(servers: MakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(servers, monkeypatch, LARGE)
    names.ask_for_absent()
    names.here.store.reads.tables.get_tables(D, ["t1", "t2"])
    names.change()
    reads = names.here.store.reads.tables
    names.here.reads.clear()
    assert [one.tableName for one in reads.get_tables(D, ["t2", "t1"])] == ["t2", "t1"]
    assert names.here.reasons() == [Reason.HIT], "both are held, so they are there"
    assert [one.tableName for one in reads.get_tables(D, ["t2", "absent", "t3"])] == ["t2", "t3"]
    assert len(reads.get_table_names(D)) == LARGE + 1
    assert reads.get_table_names(D, "temp*") == ["temporary1"]
    assert len(reads.get_table_meta(CATALOG, "d", "*")) == LARGE + 1
    assert names.here.reasons() == [Reason.NOT_CACHED] * 4
    assert names.read == 1
    assert reads.get_table(TableName(*D, "temporary1")).tableName == "temporary1"
    names.here.reads.clear()
    reads.get_table(TableName(*D, "temporary1"))
    assert names.here.reasons() == [Reason.HIT], "tables themselves are held as ever"
    names.clock.advance(SHORTEST_COOLDOWN_TIMES * A_LOAD_S)
    assert len(reads.get_table_names(D)) == LARGE + 1
    assert names.here.cache.shared.databases[D].facets.get(Facet.TABLE_NAMES) is not None


def test_those_of_a_small_database_do_not(servers: MakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(servers, monkeypatch, 3)
    for number in range(1, 5):
        names.change()
        assert names.ask_for_absent() is Reason.MISS
        assert names.read == number
