"""The schemas of `hms_catalog`, by kind. Names are as stored; times are in UTC, null where the catalog has 0."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_STRING, _LONG, _INTEGER, _TIME = StringType(), LongType(), IntegerType(), TimestampType()
_PARAMETERS = MapType(_STRING, _STRING)
_FIELDS = ArrayType(
    StructType([StructField("name", _STRING), StructField("type", _STRING), StructField("comment", _STRING)])
)


def _schema(required: int, **columns: DataType) -> StructType:
    """The first `required` columns are never null."""
    return StructType(
        [StructField(name, kind, index >= required) for index, (name, kind) in enumerate(columns.items())]
    )


DATABASES = _schema(
    2,
    catalog=_STRING,
    database=_STRING,
    description=_STRING,
    location=_STRING,
    managed_location=_STRING,
    owner=_STRING,
    owner_type=_STRING,
    created_at=_TIME,
    parameters=_PARAMETERS,
)
TABLES = _schema(
    3,
    catalog=_STRING,
    database=_STRING,
    table=_STRING,
    table_id=_LONG,
    table_type=_STRING,
    owner=_STRING,
    owner_type=_STRING,
    created_at=_TIME,
    last_access_at=_TIME,
    location=_STRING,
    input_format=_STRING,
    output_format=_STRING,
    serde=_STRING,
    serde_parameters=_PARAMETERS,
    bucket_count=_INTEGER,
    bucket_columns=ArrayType(_STRING),
    sort_columns=ArrayType(_STRING),
    columns=_FIELDS,
    partition_keys=_FIELDS,
    parameters=_PARAMETERS,
    num_files=_LONG,
    num_rows=_LONG,
    total_size=_LONG,
    view_original_text=_STRING,
    view_expanded_text=_STRING,
    write_id=_LONG,
)
COLUMNS = _schema(
    5,
    catalog=_STRING,
    database=_STRING,
    table=_STRING,
    column=_STRING,
    position=_INTEGER,
    type=_STRING,
    comment=_STRING,
    is_partition_key=BooleanType(),
)
PARTITIONS = _schema(
    4,
    catalog=_STRING,
    database=_STRING,
    table=_STRING,
    partition=_STRING,
    values=ArrayType(_STRING),
    created_at=_TIME,
    last_access_at=_TIME,
    location=_STRING,
    input_format=_STRING,
    output_format=_STRING,
    serde=_STRING,
    parameters=_PARAMETERS,
    num_files=_LONG,
    num_rows=_LONG,
    total_size=_LONG,
    write_id=_LONG,
)
STATISTICS = StructType(
    [
        StructField("catalog", _STRING, False),
        StructField("database", _STRING, False),
        StructField("table", _STRING, False),
        # Null: of the table itself.
        StructField("partition", _STRING),
        StructField("column", _STRING, False),
        StructField("type", _STRING),
        StructField("engine", _STRING),
        StructField("last_analyzed_at", _TIME),
        # boolean, long, double, string, binary, decimal, date or timestamp: which of the following apply.
        StructField("kind", _STRING),
        # As texts, since their type differs: a number, an ISO date, an ISO time in UTC.
        StructField("low_value", _STRING),
        StructField("high_value", _STRING),
        StructField("num_nulls", _LONG),
        StructField("num_distinct", _LONG),
        StructField("average_length", DoubleType()),
        StructField("max_length", _LONG),
        StructField("num_trues", _LONG),
        StructField("num_falses", _LONG),
        StructField("bit_vector", BinaryType()),
    ]
)
SCHEMAS = {
    "databases": DATABASES,
    "tables": TABLES,
    "columns": COLUMNS,
    "partitions": PARTITIONS,
    "statistics": STATISTICS,
}
"""By the values of the option ``kind``."""
