"""Columns of the tables that jobs read and create: one call for adjacent columns of one type."""

from __future__ import annotations

from pyspark.sql.types import BooleanType, DataType, IntegerType, LongType, StringType, StructField, TimestampType

STRING, LONG, INTEGER, BOOLEAN, TIME = StringType(), LongType(), IntegerType(), BooleanType(), TimestampType()


def fields(kind: DataType, *names: str) -> list[StructField]:
    """Returns nullable columns."""
    return [StructField(name, kind) for name in names]


def required(kind: DataType, *names: str) -> list[StructField]:
    """Returns columns that are never null."""
    return [StructField(name, kind, False) for name in names]
