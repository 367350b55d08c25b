"""Partitions that are stored differently than their table: which ones count as such, and that nothing of them is
read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hms_cache.jobs.statistics.data_files import OTHER_STORAGE, FigureLister, _places, _row
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table

_TEXT = ("org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")
_CSV = (_TEXT[0], "org.apache.hadoop.hive.serde2.OpenCSVSerde")
_AVRO = (
    "org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat",
    "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
)
_ORC = ("org.apache.hadoop.hive.ql.io.orc.OrcInputFormat", "org.apache.hadoop.hive.ql.io.orc.OrcSerde")
_PARQUET = (
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
)
_SPARKS = {"spark.sql.sources.provider": "csv"}


def stored(formats: tuple[str, str], place: str, **parameters: str) -> StorageDescriptor:
    serde = SerDeInfo(serializationLib=formats[1], parameters=parameters or None)
    return StorageDescriptor(location=place, inputFormat=formats[0], serdeInfo=serde, cols=[])


def problem_of(place: Path, table: StorageDescriptor, partition: StorageDescriptor, **parameters: str) -> str | None:
    """The job's result for a partition."""
    table.location, partition.location = f"file:{place}", f"file:{place}/p=1"

    class Reader:
        def tables(self, *of: Any) -> list[Table]:
            keys = [FieldSchema("p", "int")]
            return [Table("t", "d", sd=table, partitionKeys=keys, parameters=parameters)]

        def partitions(self, *of: Any) -> list[tuple[str, Partition]]:
            return [("p=1", Partition(["1"], "d", "t", sd=partition))]

    reader: Any = Reader()
    row = {"catalog": "hive", "database": "d", "table": "t", "partitions": ["p=1"], "snapshot": None}
    [found] = _places(reader, row)
    answer = _row(row, FigureLister(), {}, None, found)
    assert (answer["files"] is None) == (answer["problem"] is not None)
    problem: str | None = answer["problem"]
    return problem


@pytest.mark.parametrize(
    ("formats", "of_table", "of_partition"),
    [
        # What Hive, Spark and Trino store in addition.
        (_TEXT, {"serialization.format": "1"}, {}),
        (_TEXT, {}, {"serialization.format": "1", "path": "file:/x"}),
        (_TEXT, {"field.delim": ",", "serialization.format": ","}, {"field.delim": ","}),
        (_TEXT, {"field.delim": ",", "serialization.format": "1"}, {"field.delim": ",", "serialization.format": ","}),
        (_TEXT, {"field.delim": "\x01"}, {"serialization.format": "1"}),
        (_TEXT, {"field.delim": ",", "line.delim": "\n"}, {"field.delim": ","}),
        (_TEXT, {"colelction.delim": ";"}, {"collection.delim": ";"}),
        (_TEXT, {"serialization.null.format": "\\N"}, {}),
        (_CSV, {"separatorChar": ",", "quoteChar": '"'}, {}),
        (_ORC, {"serialization.format": "1"}, {"path": "file:/x", "orc.compress": "ZLIB"}),
        (_PARQUET, {"path": "file:/x", "field.delim": ","}, {}),
        (_AVRO, {"avro.schema.url": "file:/s"}, {"avro.schema.url": "file:/s", "serialization.format": "1"}),
    ],
)
def test_ordinary_partitions(
    tmp_path: Path, formats: tuple[str, str], of_table: dict[str, str], of_partition: dict[str, str]
) -> None:
    for one, other in ((of_table, of_partition), (of_partition, of_table)):
        assert problem_of(tmp_path, stored(formats, "", **one), stored(formats, "", **other)) is None


@pytest.mark.parametrize(
    ("of_table", "of_partition"),
    [
        (stored(_ORC, ""), stored(_PARQUET, "")),
        (stored(_TEXT, ""), stored(_CSV, "")),
        (stored(_PARQUET, ""), stored(("org.apache.hudi.hadoop.HoodieParquetInputFormat", _PARQUET[1]), "")),
        (stored(_TEXT, "", **{"field.delim": ","}), stored(_TEXT, "", **{"field.delim": ";"})),
        (stored(_TEXT, "", **{"field.delim": ","}), stored(_TEXT, "", **{"serialization.format": "1"})),
        (stored(_TEXT, "", **{"serialization.format": "9"}), stored(_TEXT, "")),
        (stored(_TEXT, "", **{"escape.delim": "\\"}), stored(_TEXT, "")),
        (stored(_TEXT, "", **{"collection.delim": ";"}), stored(_TEXT, "")),
        (stored(_TEXT, "", **{"mapkey.delim": ";"}), stored(_TEXT, "")),
        (stored(_TEXT, ""), stored(_TEXT, "", **{"serialization.null.format": ""})),
        (stored(_CSV, "", separatorChar=";"), stored(_CSV, "")),
        (stored(_CSV, "", quoteChar="'"), stored(_CSV, "")),
        (stored(_AVRO, "", **{"avro.schema.literal": "{}"}), stored(_AVRO, "")),
    ],
)
def test_partitions_that_are_stored_in_another_way(
    tmp_path: Path, of_table: StorageDescriptor, of_partition: StorageDescriptor
) -> None:
    assert problem_of(tmp_path, of_table, of_partition) == OTHER_STORAGE
    # Spark reads a table of its own with the table's options.
    assert problem_of(tmp_path, of_table, of_partition, **_SPARKS) is None
