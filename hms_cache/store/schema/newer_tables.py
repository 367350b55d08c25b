"""Tables of Hive releases after 4.0. They are used if the database has them, and never created."""

from __future__ import annotations

from sqlalchemy import Column, MetaData, String, Table

from hms_cache.store.schema.column_types import BIGINT

LATER_METADATA = MetaData()
"""Separate from `METADATA`, which is Hive 4.0's."""

CATALOG_PARAMS = Table(
    "CATALOG_PARAMS",
    LATER_METADATA,
    Column("CTLG_ID", BIGINT, primary_key=True, autoincrement=False),
    Column("PARAM_KEY", String(180), primary_key=True),
    Column("PARAM_VALUE", String(4000)),
)
"""Parameters of catalogs, since 4.2."""
