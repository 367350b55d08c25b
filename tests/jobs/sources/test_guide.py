"""The questions in docs/spark.md, read from it and executed on a catalog that contains their answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hms_cache.client import MetastoreClient
from hms_cache.jobs.sources import register
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, Partition, Table
from tests.clients.spark.session import SparkProcess
from tests.conftest import ServerStarter
from tests.documentation.pages import page
from tests.jobs.catalogs import Catalog, descriptor

PAGE = page("spark.md")
HEADING = "Ten questions"
METASTORE, LOG = "thrift://metastore-1:9083", "/var/log/hms-cache/"

PARQUET = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
MIB = 1024 * 1024


def questions() -> dict[str, tuple[str, list[list[str]]]]:
    """By heading: the query, and the table below it."""
    found = {}
    for part in re.split(r"^### ", PAGE.section(HEADING), flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        (query,) = re.findall(r"^```sql\n(.*?);\n```$", text, re.MULTILINE | re.DOTALL)
        rows = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
        cells = [[cell.strip() for cell in row.split("|")] for row in rows]
        found[heading] = (query, [cells[0], *cells[2:]])
    return found


def preparations() -> list[str]:
    """The statements before the first question."""
    text = PAGE.section(HEADING).partition("\n### ")[0]
    blocks = re.findall(r"^```sql\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [statement.strip() for block in blocks for statement in block.split(";\n") if statement.strip()]


def test_there_are_ten() -> None:
    assert len(questions()) == 10 and len(preparations()) == 7
    assert all(len(answer) > 1 for _, answer in questions().values())


def test_pictures_are_those_of_the_answers() -> None:
    """A slice for each row: the first cells name it, the column in the title is its size."""
    pictures = 0
    for part in re.split(r"^### ", PAGE.section(HEADING), flags=re.MULTILINE)[1:]:
        heading = part.partition("\n")[0]
        columns, *rows = questions()[heading][1]
        for title, body in re.findall(
            r"^```mermaid\npie showData title (\w+)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL
        ):
            slices = re.findall(r'^    "(.+)" : (\d+)$', body, re.MULTILINE)
            assert len(slices) == body.count("\n") == len(rows)
            for (label, size), row in zip(slices, rows, strict=True):
                assert label in {".".join(row[:count]) for count in (1, 2, 3)} and size == row[columns.index(title)]
            pictures += 1
    assert pictures == 8


class Maker:
    """Creates the catalog of the answers, as several users."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def table(
        self, user: str, name: str, columns: dict[str, str], keys: dict[str, str] | None = None, **parameters: str
    ) -> None:
        database, table = name.split(".")
        described = descriptor(f"file:/warehouse/{database}/{table}")
        described.cols = [FieldSchema(column, kind, None) for column, kind in columns.items()]
        if user != "eve":
            described.inputFormat = PARQUET
        made = Table(
            tableName=table,
            dbName=database,
            owner=user,
            sd=described,
            partitionKeys=[FieldSchema(key, kind, None) for key, kind in (keys or {}).items()],
            parameters={"EXTERNAL": "TRUE", **parameters},
            tableType="EXTERNAL_TABLE",
        )
        self.call(user, "create_table", made)

    def partition(self, name: str, values: Sequence[str], location: str, files: int, size: int) -> None:
        database, table = name.split(".")
        parameters = {"numFiles": str(files), "totalSize": str(size)}
        made = Partition(list(values), database, table, sd=descriptor(location), parameters=parameters)
        self.call("ann", "add_partitions", [made])

    def call(self, user: str, method: str, *arguments: Any) -> Any:
        with closing(MetastoreClient(self.uri)) as client:
            client.call("set_ugi", user, [])
            return client.call(method, *arguments)


def fill(uri: str) -> None:
    maker = Maker(uri)
    with closing(Catalog(uri)) as catalog:
        catalog.database("sales")
        catalog.database("web")
        maker.table("ann", "sales.orders", {"id": "bigint", "name": "string", "customer": "bigint"}, {"day": "int"})
        for day, location in ((1, "archive/orders/1"), (2, "warehouse/sales/orders/day=2")):
            maker.partition("sales.orders", [str(day)], f"file:/{location}", 4, 1024 * MIB)
            catalog.statistics("sales", "orders", f"day={day}")
        maker.partition("sales.orders", ["3"], "file:/warehouse/sales/orders/day=3", 4, 1024 * MIB)
        size = {"numFiles": "4", "totalSize": str(2048 * MIB)}
        maker.table("bob", "sales.customers", {"customer": "string"}, **size)
        maker.table("eve", "web.clicks", {"url": "string"}, {"day": "string", "hour": "int"})
        for day, hour in (("1", "0"), ("1", "1"), ("2", "0"), ("2", "1")):
            directory = f"file:/warehouse/web/clicks/day={day}/hour={hour}"
            maker.partition("web.clicks", [day, hour], directory, 900, 9 * MIB)
        size = {"numFiles": "1", "totalSize": str(MIB)}
        maker.table("ann", "web.visits", {"url": "string"}, **size)
        table = maker.call("eve", "get_table", "web", "visits")
        for number in range(20):
            table.parameters["tried"] = str(number)
            maker.call("eve", "alter_table", "web", "visits", table)
        maker.call("eve", "get_table", "sales", "orders")


def ask(spark: Any, preparations: list[str], queries: dict[str, str]) -> dict[str, Any]:
    """In Spark's process."""
    register(spark)
    spark.sql("CREATE DATABASE guide")
    spark.sql("USE guide")
    answers = {}
    try:
        for statement in preparations:
            spark.sql(statement)
        for heading, query in queries.items():
            found = spark.sql(query)
            answers[heading] = [found.columns, *([str(value) for value in row] for row in found.collect())]
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE guide CASCADE")
    return answers


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_each_question_is_answered(start_server: ServerStarter, job_spark: SparkProcess, tmp_path: Path) -> None:
    settings = {"log.format": "json", "server.audit": "all", "server.audit_format": "json"}
    first = start_server("sqlite", **settings)
    fill(first.uri)
    server = start_server(first.database_url, "second")
    assert first.stop() == 0  # with its last lines written
    (tmp_path / "server.log").write_text(first.log)
    where = {METASTORE: server.uri, LOG: f"file:{tmp_path / 'server.log'}"}
    statements = preparations()
    for written, real in where.items():
        assert any(written in statement for statement in statements)
        statements = [statement.replace(written, real) for statement in statements]
    requested = questions()
    answers = job_spark.call(
        ask, preparations=statements, queries={heading: query for heading, (query, _) in requested.items()}
    )
    assert answers == {heading: answer for heading, (_, answer) in requested.items()}
