"""Resource plans of workload management."""

from __future__ import annotations

from sqlalchemy import String, UniqueConstraint, text

from hms_cache.store.schema.column_types import BIGINT, DOUBLE, INTEGER, Flag
from hms_cache.store.schema.definition import all_required, column, columns, identifier, required, table
from hms_cache.store.schema.keys import SidedForeignKey, foreign_key, primary_key, unique
from hms_cache.store.schema.text_types import STRING_128, STRING_767, plane_string, string


def _named_in_plan(table: str, *names: str) -> tuple[UniqueConstraint, SidedForeignKey]:
    """The keys of a table whose rows belong to a plan, in which these columns are unique."""
    return (
        unique(f"UNIQUE_{table}", "RP_ID", *names),
        foreign_key(f"{table}_FK1", "RP_ID", "WM_RESOURCEPLAN.RP_ID"),
    )


#: Refers to WM_POOL, which refers to it: the only cycle of the schema.
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
    *_named_in_plan("WM_POOL", "PATH"),
)

WM_TRIGGER = table(
    "WM_TRIGGER",
    *identifier("TRIGGER_ID"),
    required("RP_ID", BIGINT),
    required("NAME", STRING_128),
    *columns(string(1024), "TRIGGER_EXPRESSION", "ACTION_EXPRESSION"),
    required("IS_IN_UNMANAGED", Flag(postgresql_smallint=True), default=text("0")),
    *_named_in_plan("WM_TRIGGER", "NAME"),
)

WM_POOL_TO_TRIGGER = table(
    "WM_POOL_TO_TRIGGER",
    *all_required(BIGINT, "POOL_ID", "TRIGGER_ID"),
    primary_key("POOL_ID", "TRIGGER_ID"),
    foreign_key("WM_POOL_TO_TRIGGER_FK1", "POOL_ID", "WM_POOL.POOL_ID"),
    foreign_key("WM_POOL_TO_TRIGGER_FK2", "TRIGGER_ID", "WM_TRIGGER.TRIGGER_ID"),
)

WM_MAPPING = table(
    "WM_MAPPING",
    *identifier("MAPPING_ID"),
    required("RP_ID", BIGINT),
    *all_required(STRING_128, "ENTITY_TYPE", "ENTITY_NAME"),
    column("POOL_ID", BIGINT),
    column("ORDERING", INTEGER),
    *_named_in_plan("WM_MAPPING", "ENTITY_TYPE", "ENTITY_NAME"),
    foreign_key("WM_MAPPING_FK2", "POOL_ID", "WM_POOL.POOL_ID"),
)
