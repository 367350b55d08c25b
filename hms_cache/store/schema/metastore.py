"""The metastore's own records: schema version, id sequences, properties, and types that nobody uses any more."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, BLOB, WIDE_INTEGER, string
from hms_cache.store.schema.definition import column, foreign_key, index, primary_key, table, unique

VERSION = table(
    "VERSION",
    column("VER_ID", BIGINT, nullable=False),
    column("SCHEMA_VERSION", string(127), nullable=False),
    column("VERSION_COMMENT", string(255), nullable_on_postgresql=False),
    primary_key("VER_ID"),
)

#: Next id per model class, see hms_cache.store.engine.sequences.
SEQUENCE_TABLE = table(
    "SEQUENCE_TABLE",
    column("SEQUENCE_NAME", string(255), nullable=False),
    column("NEXT_VAL", BIGINT, nullable=False),
    primary_key("SEQUENCE_NAME"),
)

#: DataNucleus keeps its schema notes here; we never write it.
NUCLEUS_TABLES = table(
    "NUCLEUS_TABLES",
    column("CLASS_NAME", string(128), nullable=False),
    column("TABLE_NAME", string(128), nullable=False),
    column("TYPE", string(4), nullable=False),
    column("OWNER", string(2), nullable=False),
    column("VERSION", string(20), nullable=False),
    column("INTERFACE_NAME", string(255)),
    primary_key("CLASS_NAME"),
)

METASTORE_DB_PROPERTIES = table(
    "METASTORE_DB_PROPERTIES",
    column("PROPERTY_KEY", string(255), nullable=False),
    column("PROPERTY_VALUE", string(1000), nullable=False),
    column("DESCRIPTION", string(1000)),
    column("PROPERTYCONTENT", BLOB),
    primary_key("PROPERTY_KEY", name="PROPERTY_KEY_PK"),
)

TYPES = table(
    "TYPES",
    column("TYPES_ID", BIGINT, nullable=False),
    column("TYPE_NAME", string(128)),
    column("TYPE1", string(767)),
    column("TYPE2", string(767)),
    primary_key("TYPES_ID"),
    unique("UNIQUE_TYPE", "TYPE_NAME"),
)

TYPE_FIELDS = table(
    "TYPE_FIELDS",
    column("TYPE_NAME", BIGINT, nullable=False),
    column("COMMENT", string(256)),
    column("FIELD_NAME", string(128), nullable=False),
    column("FIELD_TYPE", string(767), nullable=False),
    column("INTEGER_IDX", WIDE_INTEGER, nullable=False),
    primary_key("TYPE_NAME", "FIELD_NAME"),
    index("TYPE_FIELDS_N49", "TYPE_NAME"),
    foreign_key(
        "TYPE_FIELDS_FK1", "TYPE_NAME", "TYPES.TYPES_ID", postgresql_name="TYPE_FIELDS_TYPE_NAME_fkey", deferrable=True
    ),
)
