"""The catalog that jobs process: tables whose partitions have directories, and a long notification log.

Large parts are copied: partitions and events within MariaDB, files as links to one data file.
"""

from __future__ import annotations

import copy
import io
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

import pyarrow as pa
import pyarrow.parquet
from sqlalchemy import create_engine, func, insert, literal, select, update

from benchmarks.catalog import TablePlan, columns, partition, partition_name, table
from benchmarks.client import connect
from benchmarks.cloning import copy_partitions
from benchmarks.jobs.lake import Lake
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE, SEQUENCE_TABLE
from hms_cache.thrift_gen.hive_metastore import ttypes

DATABASE = "jobs"
COLUMNS = 4
ROWS_OF_A_FILE = 100
TABLE_PARTITIONS = 10_000
"""Partitions of one table; a smaller size is one table with fewer."""

_PARTITIONS_A_CALL = 500
_TABLES_A_COPY = 10
_EVENT_ROUNDS = 100
_NOTIFICATION_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MNotificationLog"


@dataclass(frozen=True, slots=True)
class JobCatalog:
    """The places of all parts of the catalog, and their sizes. Each size has its own tables."""

    lake: Lake
    sizes: Sequence[int]

    def tables(self, size: int) -> list[TablePlan]:
        """Returns the tables that have this many partitions together."""
        each = min(size, TABLE_PARTITIONS)
        prefix = f"{self.lake.name}{size}"
        return [TablePlan(DATABASE, f"{prefix}_{number:03d}", COLUMNS, each) for number in range(-(-size // each))]

    def pattern(self, size: int) -> str:
        """Returns the pattern for the tables of a size in jobs."""
        return f"{DATABASE}.{self.lake.name}{size}_*"

    def location(self, plan: TablePlan, number: int | None = None) -> str:
        """Returns the location of a table, or of its n-th partition, as stored in the catalog."""
        place = f"{self.lake.root}/{DATABASE}/{plan.name}"
        return place if number is None else f"{place}/{partition_name(number)}"


def create(catalog: JobCatalog, address: str, report: Callable[[str], None]) -> None:
    """Creates all tables through the server, the partitions of the first table of each length, and some events of each
    kind."""
    client = connect(address)
    if DATABASE not in client.get_all_databases():
        client.create_database(ttypes.Database(name=DATABASE, locationUri=f"{catalog.lake.root}/db", parameters={}))
    data_bytes = len(_data())
    for plans in map(catalog.tables, catalog.sizes):
        for plan in plans:
            client.create_table(_table(catalog, plan))
    for plan in _sources(catalog):
        report(f"{plan.partitions:,} partitions through the server")
        for start in range(0, plan.partitions, _PARTITIONS_A_CALL):
            numbers = range(start, min(start + _PARTITIONS_A_CALL, plan.partitions))
            client.add_partitions_req(
                ttypes.AddPartitionsRequest(
                    DATABASE, plan.name, [_partition(catalog, plan, n, data_bytes) for n in numbers], False, False
                )
            )


def copy_all(catalog: JobCatalog, url: str, events: int, report: Callable[[str], None]) -> None:
    """Copies the other tables' partitions, and events up to this number, in the database while no server runs."""
    sources = {plan.partitions: plan for plan in _sources(catalog)}
    for size in catalog.sizes:
        plans = [plan for plan in catalog.tables(size) if plan not in sources.values()]
        for start in range(0, len(plans), _TABLES_A_COPY):
            some = plans[start : start + _TABLES_A_COPY]
            copy_partitions(url, DATABASE, sources[some[0].partitions].name, [plan.name for plan in some])
            report(f"partitions of {start + len(some)} of {len(plans)} tables copied")
    _copy_events(url, events)
    report(f"{events:,} events copied")


def make_directories(catalog: JobCatalog, report: Callable[[str], None]) -> None:
    """Creates a directory with a file for each partition."""
    for size in catalog.sizes:
        for plan in catalog.tables(size):
            for number in range(plan.partitions):
                add_file(catalog, plan, number, "part-0")
        report(f"{size:,} directories made")


def add_file(catalog: JobCatalog, plan: TablePlan, number: int, name: str) -> None:
    """Adds a data file to the directory of a partition."""
    catalog.lake.write(f"{catalog.location(plan, number)}/{name}.parquet", _data())


def _sources(catalog: JobCatalog) -> list[TablePlan]:
    """Returns the first table of each length, from which the others are copied."""
    found: dict[int, TablePlan] = {}
    for size in catalog.sizes:
        plan = catalog.tables(size)[0]
        found.setdefault(plan.partitions, plan)
    return list(found.values())


def _table(catalog: JobCatalog, plan: TablePlan) -> ttypes.Table:
    made = table(plan)
    made.sd.location = catalog.location(plan)
    return made


def _partition(catalog: JobCatalog, plan: TablePlan, number: int, data_bytes: int) -> ttypes.Partition:
    made = partition(plan, number)
    made.sd.location = catalog.location(plan, number)
    made.parameters = {"numFiles": "1", "totalSize": str(data_bytes), "numRows": str(ROWS_OF_A_FILE)}
    return made


@cache
def _data() -> bytes:
    """Returns a Parquet file with the tables' columns, always with the same rows."""
    chance = random.Random(0)
    start = datetime(2020, 1, 1, tzinfo=UTC)
    values = {
        "bigint": (pa.int64(), [chance.randrange(10**12) for _ in range(ROWS_OF_A_FILE)]),
        "string": (pa.string(), [f"text {chance.randrange(1000)}" for _ in range(ROWS_OF_A_FILE)]),
        "double": (pa.float64(), [chance.random() for _ in range(ROWS_OF_A_FILE)]),
        "timestamp": (pa.timestamp("us", "UTC"), [start + timedelta(minutes=n) for n in range(ROWS_OF_A_FILE)]),
    }
    arrays = {column.name: pa.array(values[column.type][1], values[column.type][0]) for column in columns(COLUMNS)}
    content = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(arrays), content)
    return content.getvalue()


def make_events(catalog: JobCatalog, address: str) -> None:
    """Creates ten events a round, in a typical mixture for a data lake: mostly of partitions."""
    client = connect(address)
    plan = TablePlan(DATABASE, "busy", COLUMNS, 1)
    client.create_table(_table(catalog, plan))
    parts = [_partition(catalog, plan, number, 0) for number in range(4)]
    for number in range(_EVENT_ROUNDS):
        for part in parts:
            client.add_partition(part)
        changed = copy.deepcopy(parts[0])
        changed.parameters["numRows"] = str(number)
        client.alter_partition(DATABASE, plan.name, changed)
        for part in parts:
            client.drop_partition(DATABASE, plan.name, part.values, False)
        altered = _table(catalog, plan)
        altered.parameters["round"] = str(number)
        client.alter_table(DATABASE, plan.name, altered)


def _copy_events(url: str, wanted: int) -> None:
    """Copies the last events repeatedly, with consecutive ids, until there are this many more."""
    log = NOTIFICATION_LOG.c
    copied = [column for column in log if column.name not in ("NL_ID", "EVENT_ID")]
    engine = create_engine(url)
    done = 0
    while done < wanted:
        with engine.begin() as connection:
            last, last_row = connection.execute(select(func.max(log.EVENT_ID), func.max(log.NL_ID))).one()
            many = min(_EVENT_ROUNDS * 10 + done, wanted - done)
            source = select(log.NL_ID + literal(last_row), log.EVENT_ID + literal(many), *copied)
            source = source.where(log.EVENT_ID > last - many)
            names = [log.NL_ID, log.EVENT_ID, *copied]
            connection.execute(insert(NOTIFICATION_LOG).from_select(names, source))
            connection.execute(update(NOTIFICATION_SEQUENCE).values(NEXT_EVENT_ID=last + many + 1))
            highest = connection.execute(select(func.max(log.NL_ID))).scalar_one()
            sequence = SEQUENCE_TABLE.c.SEQUENCE_NAME == _NOTIFICATION_SEQUENCE
            connection.execute(update(SEQUENCE_TABLE).where(sequence).values(NEXT_VAL=highest + 1))
            done += many
    engine.dispose()
