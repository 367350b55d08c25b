"""Decides which tables and partitions are compacted automatically.

Source of the rules: Hive 4.0 `Initiator.isEligibleForCompaction`, `MetaStoreUtils.isNoAutoCompactSet`,
`ReplUtils.isFirstIncPending`, `CompactionTxnHandler.checkFailedCompactions`.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Column, Connection, and_, func, or_, select

from hms_cache.batches import batches
from hms_cache.config.quantities import whole_milliseconds
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.store.engine.text_conditions import ExactText
from hms_cache.store.schema import (
    COMPLETED_COMPACTIONS,
    DATABASE_PARAMS,
    DBS,
    PARTITION_KEYS,
    PARTITIONS,
    TABLE_PARAMS,
    TBLS,
)
from hms_cache.store.transactions.codes import FAILED, SUCCEEDED
from hms_cache.store.transactions.context import TxnContext
from hms_cache.store.transactions.database_values import read_now_ms
from hms_cache.values import frozen

_LOGGER = logging.getLogger(__name__)

H = COMPLETED_COMPACTIONS.c

T = TypeVar("T")

_NO_AUTO_COMPACTION = ("no_auto_compaction", "NO_AUTO_COMPACTION")
"""Parameter of tables and databases; if both spellings exist, the first one counts."""

_FIRST_LOAD_PENDING = "hive.repl.first.inc.pending"
"""Parameter of tables and databases that replication has copied but whose first events it has not loaded yet: these may
apply to data that was copied already (HIVE-21197)."""

_IN_A_STATEMENT = 200
"""Names or ids in one statement."""


class CompactionTarget(NamedTuple):
    """A table, or a partition of one, in the default catalog; names as in the transaction tables."""

    database: str
    table: str
    partition: str | None


@frozen
class Candidate:
    """A table or partition that may need a compaction of this type."""

    target: CompactionTarget
    compaction_type: int


@frozen
class _Table:
    table_id: int
    database_id: int
    is_partitioned: bool


def eligible(connection: Connection, context: TxnContext, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that may be compacted, in their order.

    Excluded are tables and partitions that do not exist, that forbid it, or whose events replication has not loaded;
    those that have failed too often recently; and partitioned tables as a whole, which writers name that do not know
    their partitions yet: a worker of Hive 3 takes directories of partitions for files of the table.
    """
    tables = _tables(connection, {(one.target.database, one.target.table) for one in candidates})
    closed = _closed(connection, tables.values())
    found = [one for one in candidates if _is_open(one.target, tables, closed)]
    named: dict[int, set[str]] = defaultdict(set)
    for one in found:
        if one.target.partition is not None:
            named[tables[one.target.database, one.target.table].table_id].add(one.target.partition)
    there = _partitions(connection, named)
    found = [
        one
        for one in found
        if one.target.partition is None
        or (tables[one.target.database, one.target.table].table_id, one.target.partition) in there
    ]
    return _without_failing(connection, context, found) if found else []


def _is_open(target: CompactionTarget, tables: Mapping[tuple[str, str], _Table], closed: Collection[int]) -> bool:
    table = tables.get((target.database, target.table))
    if table is None or table.table_id in closed:
        return False
    return table.is_partitioned == (target.partition is not None)


def _tables(connection: Connection, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], _Table]:
    """The tables that exist, by name."""
    is_partitioned = select(PARTITION_KEYS.c.TBL_ID).where(PARTITION_KEYS.c.TBL_ID == TBLS.c.TBL_ID).exists()
    found: dict[tuple[str, str], _Table] = {}
    for some in batches(sorted(names), _IN_A_STATEMENT):
        are_named = or_(*(and_(DBS.c.NAME == database, TBLS.c.TBL_NAME == table) for database, table in some))
        rows = connection.execute(
            select(DBS.c.NAME, TBLS.c.TBL_NAME, TBLS.c.TBL_ID, DBS.c.DB_ID, is_partitioned)
            .join_from(TBLS, DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
            .where(DBS.c.CTLG_NAME == DEFAULT_CATALOG, are_named)
        )
        for database, table, table_id, database_id, has_keys in rows:
            found[database, table] = _Table(table_id, database_id, bool(has_keys))
    return found


def _closed(connection: Connection, tables: Iterable[_Table]) -> set[int]:
    """Ids of tables that forbid it, by themselves or by their database, or that replication has not completed."""
    tables = list(tables)
    of_tables = _parameters(connection, TABLE_PARAMS.c.TBL_ID, {one.table_id for one in tables})
    of_databases = _parameters(connection, DATABASE_PARAMS.c.DB_ID, {one.database_id for one in tables})
    closed = set()
    for table in tables:
        own, database = of_tables.get(table.table_id, {}), of_databases.get(table.database_id, {})
        forbids = _forbids_compaction(database)
        if forbids is None:
            forbids = _forbids_compaction(own)
        is_pending = any(_is_true(some.get(_FIRST_LOAD_PENDING)) for some in (own, database))
        if forbids or is_pending:
            closed.add(table.table_id)
    return closed


def _forbids_compaction(parameters: Mapping[str, str | None]) -> bool | None:
    """Whether automatic compactions are forbidden; None: not specified."""
    values = (parameters.get(key) for key in _NO_AUTO_COMPACTION)
    value = next((value for value in values if value is not None), None)
    return None if value is None else _is_true(value)


def _is_true(value: str | None) -> bool:
    return (value or "").lower() == "true"


def _parameters(connection: Connection, owner: Column[Any], ids: Collection[int]) -> dict[int, dict[str, str | None]]:
    """Parameters that concern compactions, by owner."""
    columns = owner.table.c
    found: dict[int, dict[str, str | None]] = defaultdict(dict)
    for some in batches(sorted(ids), _IN_A_STATEMENT):
        are_requested = columns.PARAM_KEY.in_([*_NO_AUTO_COMPACTION, _FIRST_LOAD_PENDING])
        rows = connection.execute(
            select(owner, columns.PARAM_KEY, columns.PARAM_VALUE).where(owner.in_(some), are_requested)
        )
        for owner_id, key, value in rows:
            found[owner_id][key] = value
    return found


def _partitions(connection: Connection, named: Mapping[int, Collection[str]]) -> set[tuple[int, str]]:
    """The partitions that exist, with the ids of their tables."""
    columns = PARTITIONS.c
    found: set[tuple[int, str]] = set()
    for table_id, names in named.items():
        for some in batches(sorted(names), _IN_A_STATEMENT):
            rows = connection.execute(
                select(columns.PART_NAME).where(columns.TBL_ID == table_id, columns.PART_NAME.in_(some))
            )
            found.update((table_id, name) for (name,) in rows)
    return found


def _without_failing(connection: Connection, context: TxnContext, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without those whose last compactions all failed, the newest of them recently."""
    failing = _failing(connection, context, {one.target for one in candidates})
    if failing:
        database, table, partition = min(failing, key=repr)
        _LOGGER.warning(
            "not compacting %d tables or partitions whose last %d compactions failed, such as %s.%s %s",
            *(len(failing), context.compactions.max_failed, database, table, partition or ""),
        )
    return [one for one in candidates if one.target not in failing]


def _failing(
    connection: Connection, context: TxnContext, targets: Collection[CompactionTarget]
) -> set[CompactionTarget]:
    """Does not read the history of tables without recent failures."""
    settings = context.compactions
    since_ms = read_now_ms(connection) - whole_milliseconds(settings.failed_retry_s)
    target = (H.CC_DATABASE, H.CC_TABLE, H.CC_PARTITION)
    enqueued = func.coalesce(H.CC_ENQUEUE_TIME, 0)
    have_failed = connection.execute(
        select(*target).where(H.CC_STATE == FAILED, enqueued >= since_ms).group_by(*target, ExactText(H.CC_PARTITION))
    )
    suspects = {found for row in have_failed if (found := CompactionTarget(*row)) in targets}
    last: dict[CompactionTarget, list[tuple[str, int]]] = defaultdict(list)
    for some in batches(sorted({(one.database, one.table) for one in suspects}), _IN_A_STATEMENT):
        are_named = or_(*(and_(H.CC_DATABASE == database, H.CC_TABLE == table) for database, table in some))
        rows = connection.execute(
            select(*target, H.CC_STATE, enqueued)
            .where(H.CC_STATE.in_([SUCCEEDED, FAILED]), are_named)
            .order_by(H.CC_ID.desc())
        )
        for database, table, partition, state, enqueued_ms in rows:
            of_target = last[CompactionTarget(database, table, partition)]
            if len(of_target) < settings.max_failed:
                of_target.append((state, int(enqueued_ms)))

    def fails(target: CompactionTarget) -> bool:
        states = last[target]
        has_failed = len(states) >= settings.max_failed and all(state == FAILED for state, _ in states)
        return has_failed and states[0][1] >= since_ms

    return {target for target in suspects if fails(target)}
