"""The PySpark session of ``hms-cache demo ha``: rounds of work until standard input ends.

A round writes a new partition, reads it with a filter and lists all partitions. Prints a JSON object per round, and one
with the totals at the end. Arguments: the URIs of the servers, separated by commas, and the warehouse directory.
"""

from __future__ import annotations

import json
import select
import sys
import time

from pyspark.sql import SparkSession

from hms_cache.cli.demo.spark_script import start_session

TABLE = "pair.visits"


def begin(spark: SparkSession) -> None:
    """Creates the table of the rounds."""
    spark.sql("CREATE DATABASE pair")
    spark.sql(f"CREATE TABLE {TABLE} (id INT) PARTITIONED BY (number INT) STORED AS PARQUET")


def work(spark: SparkSession, number: int) -> None:
    """Runs one round. Raises AssertionError if the catalog does not show the new partition."""
    spark.sql(f"INSERT INTO {TABLE} PARTITION (number = {number}) VALUES ({number})")
    found = [row.id for row in spark.sql(f"SELECT id FROM {TABLE} WHERE number = {number}").collect()]
    assert found == [number], f"round {number} reads {found}"
    partitions = len(spark.sql(f"SHOW PARTITIONS {TABLE}").collect())
    assert partitions == number + 1, f"round {number} sees {partitions} partitions"


def main(uris: str, warehouse: str) -> None:
    """Runs rounds until standard input ends."""
    spark = start_session(uris, warehouse)
    begin(spark)
    number = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        started = time.perf_counter()
        work(spark, number)
        number += 1
        print(json.dumps({"round": number, "seconds": time.perf_counter() - started}), flush=True)
    rows, partitions = spark.sql(f"SELECT count(*), count(DISTINCT number) FROM {TABLE}").collect()[0]
    spark.sql("DROP DATABASE pair CASCADE")
    print(json.dumps({"rounds": number, "rows": rows, "partitions": partitions}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
