"""Tables on an object store that change each day, and their expected contents: the oracle's own record.

What is written is recorded here and not read back: the jobs' results are compared with it.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
from pyarrow import orc, parquet

from hms_cache.client import MetastoreClient
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Database,
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.moto_server import ObjectStore

DATABASE = "lake"
BUCKET = "lake"
"""Of the jobs, and of the database's own directory."""

BUCKETS = 20
"""Of tables: moto looks at all keys of a bucket for each listing, which would take most of a night."""

KEY = "day"
ROWS_OF_A_FILE = (60, 160)
TEXT_LENGTH = 400
"""Of a value that hardly compresses. Files are then of some 40 KB: what is read twice of one, such as the 16 KB at the
end of a file of ORC that Spark's own reading reads first, is seen in the bytes."""

LARGE_TEXT_LENGTH, LARGE_FILES = 120_000, 0.005
"""Of the values of a few files, which are too large for reading them whole: Spark reads them, by column."""

_IO = "org.apache.hadoop.hive.ql.io"
_FORMATS = {
    "parquet": (
        f"{_IO}.parquet.MapredParquetInputFormat",
        f"{_IO}.parquet.MapredParquetOutputFormat",
        f"{_IO}.parquet.serde.ParquetHiveSerDe",
    ),
    "orc": (f"{_IO}.orc.OrcInputFormat", f"{_IO}.orc.OrcOutputFormat", f"{_IO}.orc.OrcSerde"),
    "text": (
        "org.apache.hadoop.mapred.TextInputFormat",
        f"{_IO}.HiveIgnoreKeyTextOutputFormat",
        "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    ),
}


def bucket_of(table: str) -> str:
    """Where the files of a table are."""
    return f"{BUCKET}-{int(table.removeprefix('t')) % BUCKETS:02d}"


Row = tuple[int | None, str | None]


class KeptRow(NamedTuple):
    """The recorded data of a row: for its text, the length and a hash, since a month has gigabytes of texts."""

    number: int | None
    length: int | None
    text: int | None

    @classmethod
    def of(cls, row: Row) -> KeptRow:
        """Of a row as it is written."""
        number, text = row
        return cls(number, None, None) if text is None else cls(number, len(text), hash(text))


@dataclass
class DataFile:
    """An object with rows of a table."""

    rows: list[KeptRow]
    size_bytes: int


@dataclass
class LakeTable:
    """A table, its files by unit (a partition's value, None for a table without partitions) and key of the object."""

    name: str
    kind: str
    is_partitioned: bool
    units: dict[str | None, dict[str, DataFile]] = field(default_factory=dict)
    days: int = 0
    """Partitions that it ever had: their names are never used again."""

    def prefix(self, unit: str | None) -> str:
        """Of the keys of a unit's objects."""
        return f"w/{self.name}" + (f"/{KEY}={unit}" if unit is not None else "")

    @property
    def bucket(self) -> str:
        return bucket_of(self.name)


class Lake:
    """Changes tables like companies do, through the store and through the metastore."""

    def __init__(self, store: ObjectStore, client: MetastoreClient, seed: int) -> None:
        self.tables: dict[str, LakeTable] = {}
        self.changed: set[tuple[str, str | None]] = set()
        """Units whose files are others than when this was emptied: table, partition."""

        self._store = store
        self._client = client
        self._chance = random.Random(seed)
        self._made = 0

    def create_all(self, tables: int) -> None:
        """The catalog of the first evening."""
        for bucket in (BUCKET, *(bucket_of(str(number)) for number in range(BUCKETS))):
            self._store.make_bucket(bucket)
        self._client.call("create_database", Database(name=DATABASE, locationUri=f"s3a://{BUCKET}/w", parameters={}))
        for _ in range(tables):
            self.create_table()

    def bytes_of(self, units: set[tuple[str, str | None]]) -> int:
        """Returns the size of the existing files of these units."""
        files = [self.tables[table].units.get(unit, {}) for table, unit in units if table in self.tables]
        return sum(one.size_bytes for each in files for one in each.values())

    def a_day(self, changes: int) -> list[str]:
        """Changes this many tables, each in a random way; returns their names."""
        kinds: list[tuple[Callable[[LakeTable], None], int]] = [
            (self._append, 4),
            (self._rewrite, 3),
            (self._rewrite_of_same_size, 2),
            (self._late_partition, 4),
            (self._registered_partition, 2),
            (self._lose_partition, 1),
            (self._lose_file, 1),
            (self._empty, 1),
            (self._alter, 1),
        ]
        chosen = self._chance.choices([kind for kind, _ in kinds], [weight for _, weight in kinds], k=changes)
        for kind in chosen:
            kind(self._chance.choice(list(self.tables.values())))
        self.create_table()
        self._drop_table()
        return [kind.__name__.strip("_") for kind in chosen]

    # ---- changes of the catalog

    def create_table(self) -> None:
        """Of any format, with one to four partitions or none. Few are text tables: Spark reads them one by one."""
        name = f"t{self._made}"
        kind = self._chance.choices(("parquet", "orc", "text"), (45, 45, 10))[0]
        table = LakeTable(name, kind, is_partitioned=self._made % 4 != 0)
        self._made += 1
        self.tables[name] = table
        keys = [FieldSchema(KEY, "string", None)] if table.is_partitioned else []
        struct = Table(
            tableName=name,
            dbName=DATABASE,
            owner="ann",
            sd=_descriptor(table, None),
            partitionKeys=keys,
            parameters={"EXTERNAL": "TRUE"},
            tableType="EXTERNAL_TABLE",
        )
        self._client.call("create_table", struct)
        if not table.is_partitioned:
            self._add_file(table, None)
            return
        self._store.write(table.bucket, f"{table.prefix(None)}/", b"")  # else it ends with its last partition
        for _ in range(self._chance.randint(1, 4)):
            self._registered_partition(table)

    def _drop_table(self) -> None:
        table = self.tables.pop(self._chance.choice(list(self.tables)))
        self._client.call("drop_table", DATABASE, table.name, False)
        for key in [key for unit in table.units.values() for key in unit]:
            self._store.delete(table.bucket, key)
        if table.is_partitioned:
            self._store.delete(table.bucket, f"{table.prefix(None)}/")

    def _alter(self, table: LakeTable) -> None:
        """No data: nothing has to be read for it."""
        struct = self._client.call("get_table", DATABASE, table.name)
        struct.parameters["comment"] = f"{self._chance.random()}"
        self._client.call("alter_table", DATABASE, table.name, struct)

    def _late_partition(self, table: LakeTable) -> None:
        """Writes files to a directory of which the metastore does not know."""
        if table.is_partitioned:
            table.days += 1
            for _ in range(self._chance.randint(1, 3)):
                self._add_file(table, f"{table.days:03d}")

    def _registered_partition(self, table: LakeTable) -> None:
        if table.is_partitioned:
            self._late_partition(table)
            value = f"{table.days:03d}"
            added = Partition(
                values=[value],
                dbName=DATABASE,
                tableName=table.name,
                sd=_descriptor(table, value),
                parameters={},
            )
            self._client.call("add_partition", added)

    # ---- changes of files, without an event

    def _append(self, table: LakeTable) -> None:
        unit = self._unit(table)
        if unit is not None or not table.is_partitioned:
            self._add_file(table, unit)

    def _rewrite(self, table: LakeTable) -> None:
        """Replaces all files by other rows, under new names."""
        unit = self._unit(table)
        for key in list(table.units.get(unit, ())):
            self._remove_file(table, unit, key)
            self._add_file(table, unit)

    def _rewrite_of_same_size(self, table: LakeTable) -> None:
        """Other rows in an object of the same name and, except for the format's overhead, the same size."""
        unit = self._unit(table)
        for key, one in table.units.get(unit, {}).items():
            rows: list[Row] = [
                (None if row.number is None else row.number ^ 1, None if row.length is None else self._text(row.length))
                for row in one.rows
            ]
            self._write(table, unit, key, rows)

    def _lose_partition(self, table: LakeTable) -> None:
        unit = self._unit(table)
        if unit is not None and len(table.units) > 1:
            for key in list(table.units[unit]):
                self._remove_file(table, unit, key)
            del table.units[unit]

    def _lose_file(self, table: LakeTable) -> None:
        unit = self._unit(table)
        files = table.units.get(unit, {})
        if len(files) > 1:
            self._remove_file(table, unit, self._chance.choice(list(files)))

    def _empty(self, table: LakeTable) -> None:
        """All files of a table without partitions."""
        for key in list(table.units.get(None, ())):
            self._remove_file(table, None, key)

    def _unit(self, table: LakeTable) -> str | None:
        return self._chance.choice(list(table.units)) if table.is_partitioned and table.units else None

    def _add_file(self, table: LakeTable, unit: str | None) -> None:
        self._made += 1
        count = self._chance.randint(*ROWS_OF_A_FILE)
        length = LARGE_TEXT_LENGTH if self._chance.random() < LARGE_FILES else TEXT_LENGTH
        self._write(table, unit, f"{table.prefix(unit)}/part-{self._made}", list(self._rows(count, length)))

    def _write(self, table: LakeTable, unit: str | None, key: str, rows: list[Row]) -> None:
        content = _encoded(table.kind, rows)
        self._store.write(table.bucket, key, content)
        table.units.setdefault(unit, {})[key] = DataFile(list(map(KeptRow.of, rows)), len(content))
        self.changed.add((table.name, unit))

    def _remove_file(self, table: LakeTable, unit: str | None, key: str) -> None:
        self._store.delete(table.bucket, key)
        del table.units[unit][key]
        self.changed.add((table.name, unit))

    def _rows(self, count: int, text_length: int) -> Iterator[Row]:
        for _ in range(count):
            number = None if self._chance.random() < 0.1 else self._chance.randrange(-(10**9), 10**9)
            length = self._chance.randint(text_length - 100, text_length)
            yield number, None if self._chance.random() < 0.1 else self._text(length)

    def _text(self, length: int) -> str:
        return self._chance.randbytes(length // 2 + 1).hex()[:length]


def _descriptor(table: LakeTable, unit: str | None) -> StorageDescriptor:
    input_format, output_format, library = _FORMATS[table.kind]
    return StorageDescriptor(
        cols=[FieldSchema("number", "bigint", None), FieldSchema("text", "string", None)],
        location=f"s3a://{table.bucket}/{table.prefix(unit)}",
        inputFormat=input_format,
        outputFormat=output_format,
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(serializationLib=library, parameters={"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def _encoded(kind: str, rows: list[Row]) -> bytes:
    if kind == "text":
        lines = ("\x01".join(r"\N" if value is None else str(value) for value in row) for row in rows)
        return "".join(f"{line}\n" for line in lines).encode()
    columns = zip(*rows, strict=True)
    schema = pa.schema([("number", pa.int64()), ("text", pa.string())])
    table = pa.table([list(column) for column in columns], schema=schema)
    file = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(table, file, use_dictionary=False)
    else:
        orc.write_table(table, file)
    return file.getvalue()
