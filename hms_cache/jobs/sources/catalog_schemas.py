"""Schemas of `hms_catalog` by kind. Names are as stored. Times are in UTC, and null if the catalog stores 0."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, BinaryType, DoubleType, MapType, StructType

from hms_cache.jobs.sources.fields import BOOLEAN, INTEGER, LONG, STRING, TIME, fields, required

_PARAMETERS = MapType(STRING, STRING)
_FIELDS = ArrayType(StructType(fields(STRING, "name", "type", "comment")))

DATABASES = StructType(
    [
        *required(STRING, "catalog", "database"),
        *fields(STRING, "description", "location", "managed_location", "owner", "owner_type"),
        *fields(TIME, "created_at"),
        *fields(_PARAMETERS, "parameters"),
    ]
)
TABLES = StructType(
    [
        *required(STRING, "catalog", "database", "table"),
        *fields(LONG, "table_id"),
        *fields(STRING, "table_type", "owner", "owner_type"),
        *fields(TIME, "created_at", "last_access_at"),
        *fields(STRING, "location", "input_format", "output_format", "serde"),
        *fields(_PARAMETERS, "serde_parameters"),
        *fields(INTEGER, "bucket_count"),
        *fields(ArrayType(STRING), "bucket_columns", "sort_columns"),
        *fields(_FIELDS, "columns", "partition_keys"),
        *fields(_PARAMETERS, "parameters"),
        *fields(LONG, "num_files", "num_rows", "total_size"),
        *fields(STRING, "view_original_text", "view_expanded_text"),
        *fields(LONG, "write_id"),
    ]
)
COLUMNS = StructType(
    [
        *required(STRING, "catalog", "database", "table", "column"),
        *required(INTEGER, "position"),
        *fields(STRING, "type", "comment"),
        *fields(BOOLEAN, "is_partition_key"),
    ]
)
PARTITIONS = StructType(
    [
        *required(STRING, "catalog", "database", "table", "partition"),
        *fields(ArrayType(STRING), "values"),
        *fields(TIME, "created_at", "last_access_at"),
        *fields(STRING, "location", "input_format", "output_format", "serde"),
        *fields(_PARAMETERS, "parameters"),
        *fields(LONG, "num_files", "num_rows", "total_size", "write_id"),
    ]
)
STATISTICS = StructType(
    [
        *required(STRING, "catalog", "database", "table"),
        # Null: statistics of the whole table.
        *fields(STRING, "partition"),
        *required(STRING, "column"),
        *fields(STRING, "type", "engine"),
        *fields(TIME, "last_analyzed_at"),
        # boolean, long, double, string, binary, decimal, date or timestamp; determines which of the following columns
        # are set.
        *fields(STRING, "kind"),
        # Texts, because the types differ: a number, an ISO date, or an ISO time in UTC.
        *fields(STRING, "low_value", "high_value"),
        *fields(LONG, "num_nulls", "num_distinct"),
        *fields(DoubleType(), "average_length"),
        *fields(LONG, "max_length", "num_trues", "num_falses"),
        *fields(BinaryType(), "bit_vector"),
    ]
)
SCHEMAS = {
    "databases": DATABASES,
    "tables": TABLES,
    "columns": COLUMNS,
    "partitions": PARTITIONS,
    "statistics": STATISTICS,
}
"""Schemas by the value of the option ``kind``."""
