"""Converts events to history, and history to counts of changes. Pure functions of DataFrames.

Fields of messages: Hive's `JSONMessageFactory` (3.1 to 4.1); objects in them are Thrift's JSON, by field numbers.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, LongType, StructField, StructType

from hms_cache.jobs.sources.fields import INTEGER, LONG, STRING, TIME, fields

HISTORY = StructType(
    [
        *fields(LONG, "event_id"),
        *fields(TIME, "event_time"),
        *fields(STRING, "event_type"),
        # created, altered, renamed, truncated, dropped, written, statistics, transaction or other
        *fields(STRING, "change"),
        *fields(STRING, "catalog", "database", "table"),
        # For a rename: the old database.table.
        *fields(STRING, "old_name"),
        # The user, as far as the log contains it: the owner of a created object, or the last modifier of a table
        # according to Hive.
        *fields(STRING, "actor"),
        # The server that wrote it, and its principal.
        *fields(STRING, "server", "service_principal"),
        # Caller and method from the audit log: see `callers`.
        *fields(STRING, "caller", "caller_principal", "caller_address", "method"),
        *fields(INTEGER, "partitions", "files"),
        *fields(LONG, "transaction_id", "write_id"),
        *fields(STRING, "message"),
    ]
)
"""A row per event, without the columns of the directories."""

HISTORY_TABLE = StructType([*HISTORY.fields, StructField("day", DateType()), StructField("batch", LongType())])
"""The stored form: partitioned by the day of the event (UTC) and the batch that wrote it."""

_MICROSECONDS_OF_A_DAY = 86_400_000_000
_WRITES = ("INSERT", "ACID_WRITE_EVENT", "BATCH_ACID_WRITE_EVENT")
_TRANSACTIONS = ("OPEN_TXN", "COMMIT_TXN", "ABORT_TXN", "ALLOC_WRITE_ID_EVENT", "COMMIT_COMPACTION_EVENT")


def transform(events: DataFrame, *, keep_messages: bool = False) -> DataFrame:
    """Rows of `HISTORY` with their `day`, one per row of `hms_events` (with ``message=json``)."""
    field = {name: _message(name) for name in ("db", "table", "server", "servicePrincipal", "isTruncateOp")}
    event_type = F.col("event_type")
    is_table = event_type.isin("ALTER_TABLE")
    renamed = is_table & ((F.lower(field["db"]) != F.col("database")) | (F.lower(field["table"]) != F.col("table")))
    truncated = F.lower(field["isTruncateOp"]) == "true"
    return events.select(
        "event_id",
        "event_time",
        "event_type",
        _change(event_type, F.coalesce(renamed, F.lit(False)), F.coalesce(truncated, F.lit(False))).alias("change"),
        "catalog",
        "database",
        "table",
        F.when(renamed, F.lower(F.concat_ws(".", field["db"], field["table"]))).alias("old_name"),
        _actor(event_type).alias("actor"),
        _nonempty(field["server"]).alias("server"),
        _nonempty(field["servicePrincipal"]).alias("service_principal"),
        *(
            F.lit(None).cast("string").alias(name)
            for name in ("caller", "caller_principal", "caller_address", "method")
        ),
        _partitions(event_type).alias("partitions"),
        F.json_array_length(_message("files")).alias("files"),
        _number("txnid").alias("transaction_id"),
        _positive(_number("writeId")).alias("write_id"),
        (F.col("message") if keep_messages else F.lit(None).cast("string")).alias("message"),
        _day_in_utc("event_time").alias("day"),
    )


def churn(history: DataFrame) -> DataFrame:
    """A row per table with the numbers of its changes; the table with the most events first."""
    event_type, partitions = F.col("event_type"), F.coalesce(F.col("partitions"), F.lit(0)).cast("long")
    return (
        history.where(F.col("table").isNotNull())
        .groupBy("catalog", "database", "table")
        .agg(
            F.count("*").alias("events"),
            F.count_if(F.col("change").isin("altered", "renamed", "truncated")).alias("alterations"),
            F.count_if(F.col("change") == "written").alias("writes"),
            F.sum(F.when(event_type == "ADD_PARTITION", partitions).otherwise(0)).alias("partitions_added"),
            F.sum(F.when(event_type == "DROP_PARTITION", partitions).otherwise(0)).alias("partitions_dropped"),
            F.count_distinct(F.coalesce("caller", "actor")).alias("actors"),
            F.min("event_time").alias("first_event_time"),
            F.max("event_time").alias("last_event_time"),
        )
        .orderBy(F.desc("events"), "catalog", "database", "table")
    )


def _day_in_utc(time: str) -> Column:
    """The day in UTC, independent of the session's time zone, so that a batch repeated in a session with another zone
    is written to the same files.

    Computed from microseconds, because all conversions of Spark use the session's zone.
    """
    return F.date_from_unix_date(F.floor(F.unix_micros(time) / F.lit(_MICROSECONDS_OF_A_DAY)).cast("int"))


def _message(name: str) -> Column:
    return F.get_json_object("message", f"$.{name}")


def _number(name: str) -> Column:
    return F.get_json_object("message", f"$.{name}").try_cast("long")


def _positive(column: Column) -> Column:
    return F.when(column > 0, column)


def _nonempty(column: Column) -> Column:
    return F.when(column != "", column)


def _change(event_type: Column, renamed: Column, truncated: Column) -> Column:
    return (
        F.when(event_type.contains("COL_STAT"), "statistics")
        .when(event_type.isin(*_TRANSACTIONS), "transaction")
        .when(event_type.isin(*_WRITES), "written")
        .when(truncated, "truncated")
        .when(renamed, "renamed")
        .when(event_type.startswith("CREATE_") | event_type.startswith("ADD_"), "created")
        .when(event_type.startswith("DROP_"), "dropped")
        .when(event_type.startswith("ALTER_"), "altered")
        .otherwise("other")
    )


def _object(name: str, path: str) -> Column:
    """A field of an object that a message contains as text."""
    return F.get_json_object(_message(name), path)


def _actor(event_type: Column) -> Column:
    """Tables have their owner in field 3 and parameters in field 9, databases their owner in field 6."""
    modified_by = _object("tableObjAfterJson", "$['9']['map'][3]['last_modified_by']")
    return _nonempty(
        F.when(event_type == "CREATE_TABLE", _object("tableObjJson", "$['3']['str']"))
        .when(event_type == "ALTER_TABLE", modified_by)
        .when(event_type == "CREATE_DATABASE", _object("dbJson", "$['6']['str']"))
    )


def _partitions(event_type: Column) -> Column:
    listed = F.json_array_length(_message("partitions"))
    one = (event_type == "ALTER_PARTITION") | _message("ptnObjJson").isNotNull()
    return F.coalesce(listed, F.when(one, F.lit(1)))
