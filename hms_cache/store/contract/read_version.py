"""What a read says about the moment it wants to see (P2)."""

from __future__ import annotations

from hms_cache.values import frozen


@frozen
class ReadVersion:
    """`valid_write_ids`: the text of a `ValidWriteIdList`, None without one. `table_id`: the id of the table as the
    client knows it, None without one (a Thrift -1 arrives as None).
    """

    valid_write_ids: str | None = None
    table_id: int | None = None


ANY_VERSION = ReadVersion()
"""The newest, of whatever table has the name."""
