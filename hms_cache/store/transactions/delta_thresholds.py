"""After how many writes a table or partition is compacted without being asked for.

Who counts the completed writes needs them to be there, so this also says how many of them are kept.
"""

from __future__ import annotations

import re

from sqlalchemy import Connection, select

from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.store.schema import DBS, TABLE_PARAMS, TBLS

_DELTA_THRESHOLD = "compactorthreshold.hive.compactor.delta.num.threshold"
"""Parameter of tables. Source of the name: Hive 4.0 `Initiator`."""

_is_number = re.compile("[0-9]{1,9}", re.ASCII).fullmatch

_LEAST_KEPT = 50
"""Whatever the threshold: another server or a table may have a higher one soon."""

HIGHEST_DELTA_THRESHOLD = 10_000
"""A higher one is never reached: completed writes would pile up for it in the database."""


def own_delta_thresholds(connection: Connection) -> dict[tuple[str, str], int]:
    """Of tables (database, table) that have one of their own. One that is no number does not count."""
    rows = connection.execute(
        select(DBS.c.NAME, TBLS.c.TBL_NAME, TABLE_PARAMS.c.PARAM_VALUE)
        .join_from(TABLE_PARAMS, TBLS, TABLE_PARAMS.c.TBL_ID == TBLS.c.TBL_ID)
        .join(DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
        .where(TABLE_PARAMS.c.PARAM_KEY == _DELTA_THRESHOLD, DBS.c.CTLG_NAME == DEFAULT_CATALOG)
    )
    return {(database, table): int(value) for database, table, value in rows if value is not None and _is_number(value)}


def writes_kept(threshold: int) -> int:
    """How many completed writes a table or partition of this threshold keeps: enough to exceed it."""
    return max(_LEAST_KEPT, threshold + 1) if threshold <= HIGHEST_DELTA_THRESHOLD else _LEAST_KEPT
