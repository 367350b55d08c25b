"""The schema registry."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, INTEGER, MEDIUM_TEXT, Flag
from hms_cache.store.schema.definition import all_required, column, columns, identifier, required, table
from hms_cache.store.schema.keys import index, unique, unnamed_key
from hms_cache.store.schema.text_types import STRING_256, STRING_4000

I_SCHEMA = table(
    "I_SCHEMA",
    *identifier("SCHEMA_ID"),
    required("SCHEMA_TYPE", INTEGER),
    column("NAME", STRING_256),
    column("DB_ID", BIGINT),
    *all_required(INTEGER, "COMPATIBILITY", "VALIDATION_LEVEL"),
    required("CAN_EVOLVE", Flag()),
    column("SCHEMA_GROUP", STRING_256),
    column("DESCRIPTION", STRING_4000),
    index("UNIQUE_NAME", "NAME", on="mysql"),
    unique("I_SCHEMA_NAME_key", "NAME", on="postgresql"),
    unnamed_key("DB_ID", "DBS.DB_ID"),
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
    *columns(STRING_256, "FINGERPRINT", "SCHEMA_VERSION_NAME"),
    column("SERDE_ID", BIGINT),
    index("UNIQUE_VERSION", "SCHEMA_ID", "VERSION", on="mysql"),
    unique("SCHEMA_VERSION_SCHEMA_ID_VERSION_key", "SCHEMA_ID", "VERSION", on="postgresql"),
    unnamed_key("SCHEMA_ID", "I_SCHEMA.SCHEMA_ID"),
    unnamed_key("CD_ID", "CDS.CD_ID"),
    unnamed_key("SERDE_ID", "SERDES.SERDE_ID"),
)
