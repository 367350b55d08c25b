"""The metastore's own records: schema version, id sequences, properties, and types (not used any more)."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, BLOB
from hms_cache.store.schema.definition import all_required, column, columns, fields_table, identifier, required, table
from hms_cache.store.schema.keys import primary_key, unique
from hms_cache.store.schema.text_types import STRING_128, STRING_256, STRING_767, string

VERSION = table(
    "VERSION",
    *identifier("VER_ID"),
    required("SCHEMA_VERSION", string(127)),
    column("VERSION_COMMENT", string(255), nullable_on_postgresql=False),
)

#: Next id per model class, see hms_cache.store.engine.sequences.
SEQUENCE_TABLE = table(
    "SEQUENCE_TABLE",
    required("SEQUENCE_NAME", string(255)),
    required("NEXT_VAL", BIGINT),
    primary_key("SEQUENCE_NAME"),
)

#: DataNucleus stores its schema notes here; this program never writes to it.
NUCLEUS_TABLES = table(
    "NUCLEUS_TABLES",
    *all_required(STRING_128, "CLASS_NAME", "TABLE_NAME"),
    required("TYPE", string(4)),
    required("OWNER", string(2)),
    required("VERSION", string(20)),
    column("INTERFACE_NAME", string(255)),
    primary_key("CLASS_NAME"),
)

METASTORE_DB_PROPERTIES = table(
    "METASTORE_DB_PROPERTIES",
    required("PROPERTY_KEY", string(255)),
    required("PROPERTY_VALUE", string(1000)),
    column("DESCRIPTION", string(1000)),
    column("PROPERTYCONTENT", BLOB),
    primary_key("PROPERTY_KEY", name="PROPERTY_KEY_PK"),
)

TYPES = table(
    "TYPES",
    *identifier("TYPES_ID"),
    column("TYPE_NAME", STRING_128),
    *columns(STRING_767, "TYPE1", "TYPE2"),
    unique("UNIQUE_TYPE", "TYPE_NAME"),
)

TYPE_FIELDS = fields_table(
    "TYPE_FIELDS", "TYPE_NAME", column("COMMENT", STRING_256), prefix="FIELD", of="TYPES.TYPES_ID"
)
