"""The schema registry."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, INTEGER, MEDIUM_TEXT, Flag, string
from hms_cache.store.schema.definition import column, foreign_key, index, primary_key, table, unique

I_SCHEMA = table(
    "I_SCHEMA",
    column("SCHEMA_ID", BIGINT, nullable=False),
    column("SCHEMA_TYPE", INTEGER, nullable=False),
    column("NAME", string(256)),
    column("DB_ID", BIGINT),
    column("COMPATIBILITY", INTEGER, nullable=False),
    column("VALIDATION_LEVEL", INTEGER, nullable=False),
    column("CAN_EVOLVE", Flag(), nullable=False),
    column("SCHEMA_GROUP", string(256)),
    column("DESCRIPTION", string(4000)),
    primary_key("SCHEMA_ID"),
    index("UNIQUE_NAME", "NAME", on="mysql"),
    unique("I_SCHEMA_NAME_key", "NAME", on="postgresql"),
    foreign_key(None, "DB_ID", "DBS.DB_ID"),
)

SCHEMA_VERSION = table(
    "SCHEMA_VERSION",
    column("SCHEMA_VERSION_ID", BIGINT, nullable=False),
    column("SCHEMA_ID", BIGINT),
    column("VERSION", INTEGER, nullable=False),
    column("CREATED_AT", BIGINT, nullable=False),
    column("CD_ID", BIGINT),
    column("STATE", INTEGER, nullable=False),
    column("DESCRIPTION", string(4000)),
    column("SCHEMA_TEXT", MEDIUM_TEXT),
    column("FINGERPRINT", string(256)),
    column("SCHEMA_VERSION_NAME", string(256)),
    column("SERDE_ID", BIGINT),
    primary_key("SCHEMA_VERSION_ID"),
    index("UNIQUE_VERSION", "SCHEMA_ID", "VERSION", on="mysql"),
    unique("SCHEMA_VERSION_SCHEMA_ID_VERSION_key", "SCHEMA_ID", "VERSION", on="postgresql"),
    foreign_key(None, "SCHEMA_ID", "I_SCHEMA.SCHEMA_ID"),
    foreign_key(None, "CD_ID", "CDS.CD_ID"),
    foreign_key(None, "SERDE_ID", "SERDES.SERDE_ID"),
)
