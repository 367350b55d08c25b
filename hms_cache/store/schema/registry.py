"""The schema registry."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, INTEGER, MEDIUM_TEXT, Flag
from hms_cache.store.schema.definition import column, identifier, required, table
from hms_cache.store.schema.keys import foreign_key, index, unique
from hms_cache.store.schema.text_types import STRING_256, STRING_4000

I_SCHEMA = table(
    "I_SCHEMA",
    *identifier("SCHEMA_ID"),
    required("SCHEMA_TYPE", INTEGER),
    column("NAME", STRING_256),
    column("DB_ID", BIGINT),
    required("COMPATIBILITY", INTEGER),
    required("VALIDATION_LEVEL", INTEGER),
    required("CAN_EVOLVE", Flag()),
    column("SCHEMA_GROUP", STRING_256),
    column("DESCRIPTION", STRING_4000),
    index("UNIQUE_NAME", "NAME", on="mysql"),
    unique("I_SCHEMA_NAME_key", "NAME", on="postgresql"),
    foreign_key(None, "DB_ID", "DBS.DB_ID", deferrable=False),
)

SCHEMA_VERSION = table(
    "SCHEMA_VERSION",
    *identifier("SCHEMA_VERSION_ID"),
    column("SCHEMA_ID", BIGINT),
    required("VERSION", INTEGER),
    required("CREATED_AT", BIGINT),
    column("CD_ID", BIGINT),
    required("STATE", INTEGER),
    column("DESCRIPTION", STRING_4000),
    column("SCHEMA_TEXT", MEDIUM_TEXT),
    column("FINGERPRINT", STRING_256),
    column("SCHEMA_VERSION_NAME", STRING_256),
    column("SERDE_ID", BIGINT),
    index("UNIQUE_VERSION", "SCHEMA_ID", "VERSION", on="mysql"),
    unique("SCHEMA_VERSION_SCHEMA_ID_VERSION_key", "SCHEMA_ID", "VERSION", on="postgresql"),
    foreign_key(None, "SCHEMA_ID", "I_SCHEMA.SCHEMA_ID", deferrable=False),
    foreign_key(None, "CD_ID", "CDS.CD_ID", deferrable=False),
    foreign_key(None, "SERDE_ID", "SERDES.SERDE_ID", deferrable=False),
)
