"""A user with rights on thousands of tables lists them: each is decided without reading the rights on the others."""

from __future__ import annotations

import pytest

from hms_cache.authorization.cached_groups import Principal
from hms_cache.authorization.decisions import METASTORE, NO_GROUPS, Action, SecuredObject
from hms_cache.authorization.standard_rights import (
    GLOBAL_ONLY,
    MAX_READ_AT_FIRST,
    OWNER,
    Right,
    Rights,
    StandardDecisionSource,
)
from tests.work import instructions

FEW, MANY = 20, 420


class Owned:
    """The user owns this many tables, each in a database of its own or all in one."""

    def __init__(self, count: int, databases: int) -> None:
        self.tables = [SecuredObject("hive", f"d{number % databases}", f"t{number}") for number in range(count)]
        self.told = 0

    def rights(
        self, user: str, within: SecuredObject, groups: frozenset[str] = NO_GROUPS, *, at_most: int | None = None
    ) -> Rights:
        found = self.tables
        if within == GLOBAL_ONLY:
            found = []
        elif within != METASTORE:
            found = [one for one in found if one[:2] == within[:2] and within.table in (None, one.table)]
        found = found[:at_most]
        self.told += len(found)
        rights = frozenset(Right(OWNER, one, True) for one in found)
        tables = frozenset(found) if within.table is not None else frozenset()
        return Rights(frozenset({"public"}), rights, tables, is_whole=at_most is None or len(found) < at_most)

    def rights_on_tables(
        self, user: str, database: SecuredObject, names: frozenset[str], groups: frozenset[str] = NO_GROUPS
    ) -> Rights:
        found = [one for one in self.tables if one[:2] == database[:2] and one.table in names]
        self.told += len(found)
        return Rights(frozenset({"public"}), frozenset(Right(OWNER, one, True) for one in found), frozenset(found))

    def rights_by_database(self, user: str, groups: frozenset[str] = NO_GROUPS) -> Rights:
        found = {one._replace(table="*") for one in self.tables}
        self.told += len(found)
        return Rights(frozenset({"public"}), frozenset(Right(OWNER, one, True) for one in found), frozenset())

    def has_tables_of_others(self, user: str, database: SecuredObject, groups: frozenset[str] = NO_GROUPS) -> bool:
        return False


@pytest.mark.parametrize("is_apart", [False, True], ids=["in one database", "each in its own"])
def test_each_decision_costs_the_same(is_apart: bool) -> None:
    a_table = {}
    for count in (FEW, MANY):
        source = Owned(count, count if is_apart else 1)
        judge = StandardDecisionSource(source, Principal("ann"))
        judge.prepare([(Action.READ, one) for one in source.tables])
        absent = SecuredObject("hive", "d0", "of_others")

        def decide(
            judge: StandardDecisionSource = judge, source: Owned = source, absent: SecuredObject = absent
        ) -> None:
            for one in source.tables:
                assert judge.allow(Action.READ, one)
                assert not judge.allow(Action.READ, absent)
                assert judge.show(one._replace(table=None))
                assert not judge.show(SecuredObject("hive", f"no{one.database}"))

        # Missing ones are read again where single databases were read.
        judge.prepare([(None, SecuredObject("hive", f"x{number}")) for number in range(3)])
        a_table[count] = instructions(decide) / count
    assert a_table[MANY] < 1.5 * a_table[FEW], a_table


def test_a_question_about_a_database_or_some_tables_does_not_read_the_rights_on_all() -> None:
    """The owner of thousands of tables in a database requests it, or a list of databases, all the time."""
    source = Owned(20_000, 4)
    databases = sorted({one._replace(table=None) for one in source.tables})
    for requested in (databases[:1], databases):
        judge = StandardDecisionSource(source, Principal("ann"))
        source.told = 0
        judge.prepare([(None, one) for one in requested])
        assert all(judge.show(one) for one in requested)
        assert not any(judge.allow(Action.READ, one) for one in requested)
        assert not judge.show(SecuredObject("hive", "elsewhere"))
        assert judge.show(SecuredObject("hive"))
        some = [databases[0]._replace(table=f"t{number}") for number in (0, 4, 8, 400)]
        judge.prepare([(Action.READ, one) for one in (*some, databases[0]._replace(table="of_others"))])
        assert all(judge.allow(Action.READ, one) for one in some)
        assert not judge.allow(Action.READ, databases[0]._replace(table="of_others"))
        assert source.told <= MAX_READ_AT_FIRST + len(databases) + len(some)
    # And then for its tables.
    judge.prepare([(Action.READ, one) for one in source.tables[::4]])
    assert all(judge.allow(Action.READ, one) for one in source.tables[::4])
    assert not judge.allow(Action.READ, databases[0]._replace(table="of_others"))
