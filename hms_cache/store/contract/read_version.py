"""Which state of a table a read asks for (P2)."""

from __future__ import annotations

from hms_cache.values import frozen


@frozen
class ReadVersion:
    """`valid_write_ids`: the text of a `ValidWriteIdList`, or None. `table_id`: the table's id as the client knows it,
    or None (a -1 in Thrift becomes None)."""

    valid_write_ids: str | None = None
    table_id: int | None = None


ANY_VERSION = ReadVersion()
"""The latest state of the table that has the name, whatever its id."""
