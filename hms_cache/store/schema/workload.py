"""Resource plans of workload management."""

from __future__ import annotations

from sqlalchemy import String, text

from hms_cache.store.schema.column_types import BIGINT, DOUBLE, INTEGER, Flag
from hms_cache.store.schema.definition import column, identifier, required, table
from hms_cache.store.schema.keys import foreign_key, primary_key, unique
from hms_cache.store.schema.text_types import STRING_128, STRING_767, plane_string, string

#: Refers to WM_POOL and is referred to by it: the only cycle of the schema.
WM_RESOURCEPLAN = table(
    "WM_RESOURCEPLAN",
    *identifier("RP_ID"),
    required("NAME", STRING_128),
    column("NS", STRING_128),
    column("QUERY_PARALLELISM", INTEGER),
    required("STATUS", string(20)),
    column("DEFAULT_POOL_ID", BIGINT),
    unique("UNIQUE_WM_RESOURCEPLAN", "NAME", "NS", on="mysql"),
    unique("UNIQUE_WM_RESOURCEPLAN", "NS", "NAME", on="postgresql"),
    foreign_key("WM_RESOURCEPLAN_FK1", "DEFAULT_POOL_ID", "WM_POOL.POOL_ID", use_alter=True),
)

WM_POOL = table(
    "WM_POOL",
    *identifier("POOL_ID"),
    required("RP_ID", BIGINT),
    required("PATH", plane_string(767).with_variant(String(1024), "postgresql")),
    column("ALLOC_FRACTION", DOUBLE),
    column("QUERY_PARALLELISM", INTEGER),
    column("SCHEDULING_POLICY", STRING_767.with_variant(String(1024), "postgresql")),
    unique("UNIQUE_WM_POOL", "RP_ID", "PATH"),
    foreign_key("WM_POOL_FK1", "RP_ID", "WM_RESOURCEPLAN.RP_ID"),
)

WM_TRIGGER = table(
    "WM_TRIGGER",
    *identifier("TRIGGER_ID"),
    required("RP_ID", BIGINT),
    required("NAME", STRING_128),
    column("TRIGGER_EXPRESSION", string(1024)),
    column("ACTION_EXPRESSION", string(1024)),
    required("IS_IN_UNMANAGED", Flag(postgresql_smallint=True), default=text("0")),
    unique("UNIQUE_WM_TRIGGER", "RP_ID", "NAME"),
    foreign_key("WM_TRIGGER_FK1", "RP_ID", "WM_RESOURCEPLAN.RP_ID"),
)

WM_POOL_TO_TRIGGER = table(
    "WM_POOL_TO_TRIGGER",
    required("POOL_ID", BIGINT),
    required("TRIGGER_ID", BIGINT),
    primary_key("POOL_ID", "TRIGGER_ID"),
    foreign_key("WM_POOL_TO_TRIGGER_FK1", "POOL_ID", "WM_POOL.POOL_ID"),
    foreign_key("WM_POOL_TO_TRIGGER_FK2", "TRIGGER_ID", "WM_TRIGGER.TRIGGER_ID"),
)

WM_MAPPING = table(
    "WM_MAPPING",
    *identifier("MAPPING_ID"),
    required("RP_ID", BIGINT),
    required("ENTITY_TYPE", STRING_128),
    required("ENTITY_NAME", STRING_128),
    column("POOL_ID", BIGINT),
    column("ORDERING", INTEGER),
    unique("UNIQUE_WM_MAPPING", "RP_ID", "ENTITY_TYPE", "ENTITY_NAME"),
    foreign_key("WM_MAPPING_FK1", "RP_ID", "WM_RESOURCEPLAN.RP_ID"),
    foreign_key("WM_MAPPING_FK2", "POOL_ID", "WM_POOL.POOL_ID"),
)
