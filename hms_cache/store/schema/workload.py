"""Resource plans of workload management."""

from __future__ import annotations

from sqlalchemy import String, text

from hms_cache.store.schema.column_types import BIGINT, DOUBLE, INTEGER, Flag, plane_string, string
from hms_cache.store.schema.definition import column, foreign_key, primary_key, table, unique

#: Refers to WM_POOL and is referred to by it: the only cycle of the schema.
WM_RESOURCEPLAN = table(
    "WM_RESOURCEPLAN",
    column("RP_ID", BIGINT, nullable=False),
    column("NAME", string(128), nullable=False),
    column("NS", string(128)),
    column("QUERY_PARALLELISM", INTEGER),
    column("STATUS", string(20), nullable=False),
    column("DEFAULT_POOL_ID", BIGINT),
    primary_key("RP_ID"),
    unique("UNIQUE_WM_RESOURCEPLAN", "NAME", "NS", on="mysql"),
    unique("UNIQUE_WM_RESOURCEPLAN", "NS", "NAME", on="postgresql"),
    foreign_key("WM_RESOURCEPLAN_FK1", "DEFAULT_POOL_ID", "WM_POOL.POOL_ID", deferrable=True, use_alter=True),
)

WM_POOL = table(
    "WM_POOL",
    column("POOL_ID", BIGINT, nullable=False),
    column("RP_ID", BIGINT, nullable=False),
    column("PATH", plane_string(767).with_variant(String(1024), "postgresql"), nullable=False),
    column("ALLOC_FRACTION", DOUBLE),
    column("QUERY_PARALLELISM", INTEGER),
    column("SCHEDULING_POLICY", string(767).with_variant(String(1024), "postgresql")),
    primary_key("POOL_ID"),
    unique("UNIQUE_WM_POOL", "RP_ID", "PATH"),
    foreign_key("WM_POOL_FK1", "RP_ID", "WM_RESOURCEPLAN.RP_ID", deferrable=True),
)

WM_TRIGGER = table(
    "WM_TRIGGER",
    column("TRIGGER_ID", BIGINT, nullable=False),
    column("RP_ID", BIGINT, nullable=False),
    column("NAME", string(128), nullable=False),
    column("TRIGGER_EXPRESSION", string(1024)),
    column("ACTION_EXPRESSION", string(1024)),
    column("IS_IN_UNMANAGED", Flag(postgresql_smallint=True), nullable=False, default=text("0")),
    primary_key("TRIGGER_ID"),
    unique("UNIQUE_WM_TRIGGER", "RP_ID", "NAME"),
    foreign_key("WM_TRIGGER_FK1", "RP_ID", "WM_RESOURCEPLAN.RP_ID", deferrable=True),
)

WM_POOL_TO_TRIGGER = table(
    "WM_POOL_TO_TRIGGER",
    column("POOL_ID", BIGINT, nullable=False),
    column("TRIGGER_ID", BIGINT, nullable=False),
    primary_key("POOL_ID", "TRIGGER_ID"),
    foreign_key("WM_POOL_TO_TRIGGER_FK1", "POOL_ID", "WM_POOL.POOL_ID", deferrable=True),
    foreign_key("WM_POOL_TO_TRIGGER_FK2", "TRIGGER_ID", "WM_TRIGGER.TRIGGER_ID", deferrable=True),
)

WM_MAPPING = table(
    "WM_MAPPING",
    column("MAPPING_ID", BIGINT, nullable=False),
    column("RP_ID", BIGINT, nullable=False),
    column("ENTITY_TYPE", string(128), nullable=False),
    column("ENTITY_NAME", string(128), nullable=False),
    column("POOL_ID", BIGINT),
    column("ORDERING", INTEGER),
    primary_key("MAPPING_ID"),
    unique("UNIQUE_WM_MAPPING", "RP_ID", "ENTITY_TYPE", "ENTITY_NAME"),
    foreign_key("WM_MAPPING_FK1", "RP_ID", "WM_RESOURCEPLAN.RP_ID", deferrable=True),
    foreign_key("WM_MAPPING_FK2", "POOL_ID", "WM_POOL.POOL_ID", deferrable=True),
)
