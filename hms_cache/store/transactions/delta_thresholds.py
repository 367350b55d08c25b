"""The number of writes after which a table or partition is compacted automatically.

The check counts rows of completed writes, so this also defines how many of them are kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlalchemy import Connection, and_, or_, select

from hms_cache.batches import batches
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.store.schema import DBS, TABLE_PARAMS, TBLS

_DELTA_THRESHOLD = "compactorthreshold.hive.compactor.delta.num.threshold"
"""Table parameter. Source of the name: Hive 4.0 `Initiator`."""

_is_number = re.compile("[0-9]{1,9}", re.ASCII).fullmatch

_TABLES_IN_A_STATEMENT = 200

LEAST_KEPT = 50
"""Kept with any threshold: another server or a table may soon have a higher one."""

HIGHEST_DELTA_THRESHOLD = 10_000
"""A higher threshold is ignored: too many completed writes would have to be kept."""


def own_delta_thresholds(connection: Connection, tables: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The thresholds of those tables (database, table) that have their own. One that is not a number is ignored."""
    found: dict[tuple[str, str], int] = {}
    for some in batches(sorted(tables), _TABLES_IN_A_STATEMENT):
        are_named = or_(*(and_(DBS.c.NAME == database, TBLS.c.TBL_NAME == table) for database, table in some))
        rows = connection.execute(
            select(DBS.c.NAME, TBLS.c.TBL_NAME, TABLE_PARAMS.c.PARAM_VALUE)
            .join_from(TBLS, DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
            .join(TABLE_PARAMS, TABLE_PARAMS.c.TBL_ID == TBLS.c.TBL_ID)
            .where(DBS.c.CTLG_NAME == DEFAULT_CATALOG, are_named, TABLE_PARAMS.c.PARAM_KEY == _DELTA_THRESHOLD)
        )
        found |= {(database, table): int(value) for database, table, value in rows if value and _is_number(value)}
    return found


def writes_kept(threshold: int) -> int:
    """The number of completed writes that are kept for this threshold: enough to exceed it."""
    return max(LEAST_KEPT, threshold + 1) if threshold <= HIGHEST_DELTA_THRESHOLD else LEAST_KEPT
