"""A user with one right can change nothing else, by any method and any field of its request.

The calls are those of `tests.differential`: each method with meaningful requests. A user with few rights makes each of
them before an administrator does; its changes are looked up in the database.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from hms_cache.authorization.decisions import Action
from tests.authorization.test_two_worlds import SHORT, filled, keep
from tests.authorization.two_worlds import MALLORY, ROOT, FewRights, World
from tests.differential.scenarios.every import SCENARIOS

OF_CALLS = frozenset({"NOTIFICATION_LOG", "NOTIFICATION_SEQUENCE", "SEQUENCE_TABLE", "sqlite_sequence"})
"""Change with what else changes."""

_OF_TRANSACTIONS = """
    COMPLETED_TXN_COMPONENTS HIVE_LOCKS MIN_HISTORY_LEVEL MIN_HISTORY_WRITE_ID NEXT_LOCK_ID TXNS TXN_COMPONENTS
    TXN_LOCK_TBL WRITE_SET
"""
OF_TRANSACTIONS = frozenset(_OF_TRANSACTIONS.split())
"""Everybody opens transactions, and takes locks on what he may read."""

OF_THE_DATABASE = frozenset({"METASTORE_DB_PROPERTIES"})
"""Has a number of its own from the first question for it on."""

_OF_TABLES = """
    BUCKETING_COLS CDS COLUMNS_V2 KEY_CONSTRAINTS MV_CREATION_METADATA MV_TABLES_USED PARTITION_KEYS SDS SD_PARAMS
    SERDES SERDE_PARAMS SKEWED_COL_NAMES SKEWED_COL_VALUE_LOC_MAP SKEWED_STRING_LIST SKEWED_STRING_LIST_VALUES
    SKEWED_VALUES SORT_COLS TABLE_PARAMS TAB_COL_STATS TBLS TBL_COL_PRIVS TBL_PRIVS
"""
CHANGED = {
    "read": frozenset[str](),
    "create": frozenset(
        {
            *_OF_TABLES.split(),
            *("DATABASE_PARAMS", "DBS", "DB_PRIVS", "FUNCS", "FUNC_RU", "I_SCHEMA", "SCHEMA_VERSION"),
        }
    ),
    "update": frozenset(
        {
            *("TAB_COL_STATS", "PART_COL_STATS", "TABLE_PARAMS", "PARTITION_PARAMS"),
            *("NEXT_WRITE_ID", "TXN_TO_WRITE_ID", "TXN_WRITE_NOTIFICATION_LOG"),
        }
    ),
}
"""By action: the tables of the database that it is allowed to change."""

ADDED_ONLY = frozenset({"create"})
"""Actions that leave the rows that are there as they are."""


@pytest.mark.parametrize("action", CHANGED)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.soak, *([] if name in SHORT else [pytest.mark.long])])
        for name in SCENARIOS
    ],
)
def test_nothing_else_is_changed(tmp_path: Path, name: str, action: str) -> None:
    allowed = OF_CALLS | OF_TRANSACTIONS | OF_THE_DATABASE | CHANGED[action]
    rights = partial(FewRights, actions=frozenset({Action(action)}))
    with closing(World(tmp_path / "world", "d", rights)) as world:
        for step in SCENARIOS[name].calls:
            arguments = filled(step.arguments, world)
            before = world.rows()
            answer = world.call(MALLORY, step.method, *arguments)
            after = world.rows()
            changed = {table for table in before if before[table] != after[table]}
            assert changed <= allowed, (
                f"{step.method}{arguments} answers {answer!r} and has changed {changed - allowed}"
            )
            if action in ADDED_ONLY:
                gone = {one: sorted(set(before[one]) - set(after[one])) for one in changed & CHANGED[action]}
                assert not any(gone.values()), f"{step.method}{arguments} has changed {gone}"
            keep(step.keeps, (world,), [world.call(ROOT, step.method, *arguments)])
