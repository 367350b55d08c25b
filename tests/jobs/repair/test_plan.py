"""What a plan holds of a table: whose it is."""

from __future__ import annotations

import pytest

from hms_cache.jobs.repair.plan import refusal
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, StorageDescriptor, Table


def table(location: str = "s3a://b/t", input_format: str = "", **parameters: str) -> Table:
    descriptor = StorageDescriptor(location=location, inputFormat=input_format)
    return Table("t", "d", sd=descriptor, partitionKeys=[FieldSchema("day", "string")], parameters=parameters)


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (table(), None),
        (table(input_format="org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"), None),
        (table(table_type="iceberg"), "Iceberg"),
        (table(**{"spark.sql.sources.provider": "hudi"}), "Hudi"),
        (table(input_format="org.apache.hudi.hadoop.HoodieParquetInputFormat"), "Hudi"),
        (table(input_format="org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"), "Hudi"),
        (table(input_format="com.uber.hoodie.hadoop.HoodieInputFormat"), "Hudi"),
        (table(storage_handler="org.apache.paimon.hive.PaimonStorageHandler"), "PaimonStorageHandler"),
        (table(transactional="TRUE"), "transactional"),
    ],
)
def test_whose_partitions_are_left_alone(of: Table, reason: str | None) -> None:
    found = refusal(of)
    assert found is None if reason is None else reason in (found or "")
