"""Who has rights on thousands of tables, and lists them: each is decided without a look at the rights on the others."""

from __future__ import annotations

import pytest

from hms_cache.authorization.decisions import METASTORE, NO_GROUPS, Action, SecuredObject
from hms_cache.authorization.known_groups import Principal
from hms_cache.authorization.standard_rights import GLOBAL_ONLY, OWNER, Right, Rights, StandardJudge
from tests.work import instructions

FEW, MANY = 20, 420


class Owned:
    """The user owns so many tables, each in a database of its own or all in one."""

    def __init__(self, count: int, databases: int) -> None:
        self.tables = [SecuredObject("hive", f"d{number % databases}", f"t{number}") for number in range(count)]

    def rights(self, user: str, within: SecuredObject, groups: frozenset[str] = NO_GROUPS) -> Rights:
        found = self.tables
        if within == GLOBAL_ONLY:
            found = []
        elif within != METASTORE:
            found = [one for one in found if one[:2] == within[:2] and within.table in (None, one.table)]
        rights = frozenset(Right(OWNER, one, True) for one in found)
        return Rights(frozenset({"public"}), rights, frozenset(found) if within.table is not None else frozenset())

    def has_tables_of_others(self, user: str, database: SecuredObject, groups: frozenset[str] = NO_GROUPS) -> bool:
        return False


@pytest.mark.parametrize("is_apart", [False, True], ids=["in one database", "each in its own"])
def test_each_decision_costs_the_same(is_apart: bool) -> None:
    a_table = {}
    for count in (FEW, MANY):
        source = Owned(count, count if is_apart else 1)
        judge = StandardJudge(source, Principal("ann"))
        judge.prepare([(Action.READ, one) for one in source.tables])
        absent = SecuredObject("hive", "d0", "of_others")

        def decide(judge: StandardJudge = judge, source: Owned = source, absent: SecuredObject = absent) -> None:
            for one in source.tables:
                assert judge.allow(Action.READ, one)
                assert not judge.allow(Action.READ, absent)
                assert judge.show(one._replace(table=None))
                assert not judge.show(SecuredObject("hive", f"no{one.database}"))

        # What is not there is asked for anew where single databases were read.
        judge.prepare([(None, SecuredObject("hive", f"x{number}")) for number in range(3)])
        a_table[count] = instructions(decide) / count
    assert a_table[MANY] < 1.5 * a_table[FEW], a_table
