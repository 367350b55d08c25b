"""Checks the results of the jobs with plain SQL on the metastore's database and with the objects of the store.

It does not use the server, its cache, or data that the jobs keep for themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from pyarrow import dataset, fs
from sqlalchemy import Connection, text

from tests.jobs.month.lake import BUCKET, DATABASE, KEY, DataFile, KeptRow, Lake

DISTINCT_ERROR = 0.15
"""Of the estimated number of distinct values, of the real one."""

_TABLES = "SELECT t.TBL_NAME, t.TBL_ID FROM TBLS t JOIN DBS d ON d.DB_ID = t.DB_ID WHERE d.NAME = :database"
_PARTITIONS = "SELECT p.TBL_ID, p.PART_NAME, p.PART_ID FROM PARTITIONS p"
_FIGURES = "COLUMN_NAME, LONG_LOW_VALUE, LONG_HIGH_VALUE, NUM_NULLS, NUM_DISTINCTS, AVG_COL_LEN, MAX_COL_LEN"


def wrong_catalog(connection: Connection, lake: Lake) -> list[str]:
    """Returns missing and superfluous partitions, and statistics that differ from the rows."""
    wrong: list[str] = []
    tables = {row.TBL_NAME: row.TBL_ID for row in connection.execute(text(_TABLES), {"database": DATABASE})}
    partitions: dict[int, dict[str, int]] = defaultdict(dict)
    for table, name, number in connection.execute(text(_PARTITIONS)):
        partitions[table][name] = number
    table_parameters = _parameters(connection, "TABLE_PARAMS", "TBL_ID")
    partition_parameters = _parameters(connection, "PARTITION_PARAMS", "PART_ID")
    table_columns = _columns(connection, "TAB_COL_STATS", "TBL_ID")
    partition_columns = _columns(connection, "PART_COL_STATS", "PART_ID")
    if set(tables) != set(lake.tables):
        wrong.append(f"tables: {sorted(set(tables) ^ set(lake.tables))}")
    for name, table in lake.tables.items():
        number = tables[name]
        rows = [row for unit in table.units.values() for one in unit.values() for row in one.rows]
        of_table = table_parameters.get(number, {})
        if of_table.get("spark.sql.statistics.numRows") != str(len(rows)):
            wrong.append(f"{name}: Spark's rows {of_table.get('spark.sql.statistics.numRows')}, not {len(rows)}")
        wrong += _wrong_columns(name, table_columns.get(number, {}), rows, is_merged=table.is_partitioned)
        if not table.is_partitioned:
            wrong += _wrong_parameters(name, of_table, table.units.get(None, {}))
            continue
        wanted = {f"{KEY}={unit}": files for unit, files in table.units.items()}
        found = partitions[number]
        if set(found) != set(wanted):
            wrong.append(f"{name}: partitions {sorted(found)}, not {sorted(wanted)}")
        for partition in found.keys() & wanted.keys():
            label, files = f"{name}/{partition}", wanted[partition]
            wrong += _wrong_parameters(label, partition_parameters.get(found[partition], {}), files)
            rows = [row for one in files.values() for row in one.rows]
            wrong += _wrong_columns(label, partition_columns.get(found[partition], {}), rows)
    return wrong


def _parameters(connection: Connection, table: str, key: str) -> dict[int, dict[str, str]]:
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for number, name, value in connection.execute(text(f"SELECT {key}, PARAM_KEY, PARAM_VALUE FROM {table}")):
        found[number][name] = value
    return found


def _columns(connection: Connection, table: str, key: str) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = defaultdict(dict)
    for row in connection.execute(text(f"SELECT {key} AS owner, {_FIGURES} FROM {table}")):
        if row.COLUMN_NAME in found[row.owner]:
            found[row.owner][row.COLUMN_NAME] = None  # twice
        found[row.owner][row.COLUMN_NAME] = row
    return found


def _wrong_parameters(label: str, parameters: Mapping[str, str], files: Mapping[str, DataFile]) -> list[str]:
    wanted = {
        "numRows": sum(len(one.rows) for one in files.values()),
        "numFiles": len(files),
        "totalSize": sum(one.size_bytes for one in files.values()),
    }
    found = {name: parameters.get(name) for name in wanted}
    return [
        f"{label}: {name} is {found[name]}, not {value}" for name, value in wanted.items() if found[name] != str(value)
    ]


def _wrong_columns(label: str, columns: Mapping[str, Any], rows: list[KeptRow], is_merged: bool = False) -> list[str]:
    """`is_merged`: then the average length is the largest one of a partition, as Hive aggregates it."""
    if set(columns) != {"number", "text"}:
        return [f"{label}: statistics of {sorted(columns)}"]
    numbers = [row.number for row in rows if row.number is not None]
    lengths = [row.length for row in rows if row.length is not None]
    texts = {row.text for row in rows if row.text is not None}
    number, string = columns["number"], columns["text"]
    wanted: list[tuple[str, object, object]] = [
        ("low", number.LONG_LOW_VALUE, min(numbers, default=None)),
        ("high", number.LONG_HIGH_VALUE, max(numbers, default=None)),
        ("nulls of number", number.NUM_NULLS, len(rows) - len(numbers)),
        ("nulls of text", string.NUM_NULLS, len(rows) - len(lengths)),
        ("longest", string.MAX_COL_LEN, max(lengths, default=0)),
    ]
    if not is_merged:
        average = sum(lengths) / len(rows) if rows else 0
        wanted.append(("average length", round(float(string.AVG_COL_LEN), 3), round(average, 3)))
    wrong = [f"{label}: {what} is {found}, not {right}" for what, found, right in wanted if found != right]
    for what, found, distinct in (("number", number, len(set(numbers))), ("text", string, len(texts))):
        if abs(found.NUM_DISTINCTS - distinct) > DISTINCT_ERROR * distinct + 1:
            wrong.append(f"{label}: {found.NUM_DISTINCTS} distinct values of {what}, not {distinct}")
    return wrong


class Outputs:
    """The tables that jobs store, as any reader of Parquet sees them."""

    def __init__(self, endpoint: str) -> None:
        self._files = fs.S3FileSystem(
            access_key="any",
            secret_key="any",
            endpoint_override=endpoint.removeprefix("http://"),
            scheme="http",
            region="us-east-1",
        )

    def _rows(self, path: str, columns: list[str]) -> list[dict[str, Any]]:
        found = dataset.dataset(f"{BUCKET}/{path}", filesystem=self._files, format="parquet", partitioning="hive")
        rows: list[dict[str, Any]] = found.to_table(columns=columns).to_pylist()
        return rows

    def wrong_history(self, connection: Connection, path: str) -> list[str]:
        """Events that the history lacks, or has twice."""
        kept = Counter(row["event_id"] for row in self._rows(path, ["event_id"]))
        logged = {number for (number,) in connection.execute(text("SELECT EVENT_ID FROM NOTIFICATION_LOG"))}
        wrong = [f"event {number}: kept {kept[number]} times" for number in kept if kept[number] != 1]
        if set(kept) != logged:
            wrong.append(f"events missed {sorted(logged - set(kept))[:9]}, of no log {sorted(set(kept) - logged)[:9]}")
        return wrong

    def wrong_files(self, lake: Lake, path: str) -> list[str]:
        """Returns directories for which the last run's results differ from the store, or that occur twice."""
        runs = {row["run"]: row["base"] for row in self._rows(f"{path}/runs", ["run", "base"])}
        last = max(runs)
        columns = ["database", "table", "partition", "location", "files", "bytes", "change", "run"]
        newest: dict[tuple[Any, ...], dict[str, Any]] = {}
        wrong = []
        for row in sorted(self._rows(f"{path}/directories", columns), key=lambda row: row["run"]):
            if row["run"] not in runs or row["run"] < runs[last]:
                continue
            key = (row["table"], row["partition"], row["location"])
            if key in newest and newest[key]["run"] == row["run"]:
                wrong.append(f"{key}: twice in run {row['run']}")
            newest[key] = row
        found = {
            (table, partition): (row["files"], row["bytes"])
            for (table, partition, _), row in newest.items()
            if row["change"] != "gone" and row["files"]
        }
        wanted = {
            (table.name, None if unit is None else f"{KEY}={unit}"): _sums(files.values())
            for table in lake.tables.values()
            for unit, files in table.units.items()
            if files
        }
        return wrong + [
            f"{key}: {found.get(key)} files and bytes, not {wanted.get(key)}"
            for key in sorted(found.keys() | wanted.keys(), key=str)
            if found.get(key) != wanted.get(key)
        ]


def _sums(files: Iterable[DataFile]) -> tuple[int, int]:
    sizes = [one.size_bytes for one in files]
    return len(sizes), sum(sizes)
