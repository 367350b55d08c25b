"""HMS_CACHE_MEMBERS: the servers that answer reads by lease. Hive has no such table."""

from __future__ import annotations

from sqlalchemy import Column, MetaData, SmallInteger, String, Table

from hms_cache.store.schema.column_types import BIGINT

OWN_METADATA = MetaData()
"""Tables that Hive does not have."""

HMS_CACHE_MEMBERS = Table(
    "HMS_CACHE_MEMBERS",
    OWN_METADATA,
    Column("MEMBER_ID", String(64), primary_key=True),
    Column("ADDRESS", String(255), nullable=False),
    Column("EPOCH", BIGINT, nullable=False),
    Column("LEASE_MS", BIGINT, nullable=False),
    Column("REVOKED", SmallInteger, nullable=False),
    Column("FENCED", SmallInteger, nullable=False),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
    mysql_collate="utf8mb4_bin",
)
"""One row per member: its address, its epoch (new at each join), the duration of its lease (0: none), whether the lease
was revoked (1), and whether its writes must not commit in this epoch (1)."""
