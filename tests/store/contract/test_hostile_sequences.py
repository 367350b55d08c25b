"""Sequences of writes with hostile locations and names: files that were not created through the server remain
unchanged.

Created before: files of others outside of the warehouse, and tables that no operation names, in the warehouse and in a
database that the server created elsewhere. Whatever is created, altered, renamed, dropped, truncated and exchanged,
these files remain, and nothing appears outside of the warehouse except directories of databases located there.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from thrift.Thrift import TException

from hms_cache.config.sections import WarehouseSettings
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.partitions import AllPartitions, PartitionQuery
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, StoreUnderTest, table

OPERATIONS = 50

DATABASES = ("a", "b", "../others", "..", "x/../../others")
TABLES = ("t", "u", "victim", "..", "../victim", "k=1")
CATALOGS = ("c", "e")
VALUES = ("1", "..", "../..", "x/../..", "%2e%2e")
WEIGHTS = {"do_create_table": 3.0, "do_add_partition": 2.0, "do_drop_database": 0.6, "do_create_database": 1.5}
PREFIXES = (*("file:",) * 12, "file://", "", "FILE:", "file://localhost", "memory:", "hdfs://namenode:8020")
SUFFIXES = ("/..", "/.", "//", "/x", "/x/..", "/../others", "::v2", "/x::y", "/%2e%2e", "/a b", "/*", "?", "#x", "/k=1")
KINDS = (
    {},
    {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}},
    {"tableType": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE", "external.table.purge": "TRUE"}},
)


@pytest.fixture(params=["object"])
def store_kind(request: pytest.FixtureRequest) -> str:
    """The cache does not affect files."""
    kind: str = request.param
    return kind


@pytest.fixture(params=["sqlite", pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.soak])])
def database_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def warehouse_settings(tmp_path: Path) -> WarehouseSettings:
    """The defaults: only the warehouse is allowed."""
    return WarehouseSettings(directory=f"file:{tmp_path}/warehouse")


class Sequence:
    """One tree of files and one sequence of operations on it."""

    def __init__(self, under_test: StoreUnderTest, scratch: Path, choices: random.Random) -> None:
        self.t = under_test
        self.store = under_test.store
        self.scratch = scratch
        self.choices = choices
        self.log: list[str] = []
        self.refused: Counter[str] = Counter()
        self._declared: set[str] = {f"{scratch}/made"}
        self._planted: dict[Path, bytes] = {}
        self._plant()
        self._before = self._outside()
        self._bases = (
            under_test.directory,
            under_test.directory / "link",
            under_test.directory / "up",
            under_test.directory / "keep.db" / "victim",
            under_test.directory / "keep.db",
            under_test.directory / "a.db",
            under_test.directory / "a.db" / "t",
            scratch,
            scratch / "others",
            scratch / "others" / "deep",
            scratch / "warehouse2",
            scratch / "made",
            scratch / "made" / "victim",
            scratch / "new",
            scratch / "new" / "t",
            Path("/"),
        )

    def _plant(self) -> None:
        for name in ("others/data", "others/deep/data", "warehouse2/data", "data"):
            self._file(self.scratch / name)
        for name, target in (("link", self.scratch / "others"), ("up", self.scratch)):
            (self.t.directory / name).symlink_to(target, target_is_directory=True)
        self.t.create_database("keep")
        self.t.create_database("made", locationUri=f"file:{self.scratch}/made")
        for database, kind in (("keep", KINDS[0]), ("keep", KINDS[1]), ("made", KINDS[0]), ("made", KINDS[2])):
            name = "victim" if not kind else "external"
            made = table(name, dbName=database, **kind)
            self.store.writes.tables.create_table(made)
            place = self.store.reads.tables.get_table(TableName(CATALOG, database, name)).sd.location
            self._file(Path(place.removeprefix("file:")) / "data")

    def _file(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(str(path).encode())
        self._planted[path] = str(path).encode()

    def _outside(self) -> set[str]:
        """Everything outside of the warehouse, by its path; links are not followed."""
        return {
            os.path.join(root, name)
            for root, directories, files in os.walk(self.scratch)
            if not f"{root}/".startswith(f"{self.t.directory}/")
            for name in [*directories, *files]
        }

    def location(self) -> str:
        """A hostile location, or an ordinary one."""
        base = self.choices.choice(self._bases)
        # Nothing is created beside the directories of this machine itself.
        end = "" if base == Path("/") else "".join(self.choices.choices(SUFFIXES, k=self.choices.randrange(4)))
        return f"{self.choices.choice(PREFIXES)}{base}{end}"

    def run(self) -> None:
        """All operations; each may be refused, with an exception of the protocol."""
        operations = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("do_")]
        weights = [WEIGHTS.get(operation.__name__, 1.0) for operation in operations]
        first = [self.do_create_database] * 6 + [self.do_create_table] * 8 + [self.do_add_partition] * 8
        rest = self.choices.choices(operations, weights, k=OPERATIONS)
        for operation in (*first, *rest):
            self.log.append(operation.__name__)
            try:
                operation()
            except TException as error:
                self.refused.update([operation.__name__])
                self.log.append(f"  refused: {getattr(error, 'message', error)}")
            self.check()

    def check(self) -> None:
        """The files created before are unchanged, and no file has been added outside.

        A missing directory is created for a table or partition located there, as clients expect.
        """
        for path, content in self._planted.items():
            assert path.is_file(), self._story(f"{path} is gone")
            assert path.read_bytes() == content
        for added in self._outside() - self._before:
            is_declared = any(
                added == each or added.startswith(f"{each}/") or each.startswith(f"{added}/") for each in self._declared
            )
            assert is_declared or Path(added).is_dir(), self._story(f"{added} has appeared")

    def _story(self, end: str) -> str:
        return "\n".join([*self.log, end])

    def say(self, *what: object) -> None:
        self.log.append(f"  {what}")

    def pick(self, *, is_new: bool = False) -> tuple[str, str]:
        """The names of a table: nearly always an existing one, or a new one in an existing database."""
        names = self.store.reads.databases.get_database_names(CATALOG)
        databases = [each for each in names if each not in ("default", "keep", "made")]
        if self.is_lucky(0.1) or not databases:
            return self.choices.choice(DATABASES), self.choices.choice(TABLES)
        tables = [
            (each, name)
            for each in databases
            for name in self.store.reads.tables.get_table_names(DatabaseName(CATALOG, each))
        ]
        if is_new or not tables:
            return self.choices.choice(databases), self.choices.choice(TABLES)
        return self.choices.choice(tables)

    def value(self, database: str, name: str) -> str:
        """A partition's value: usually of an existing one."""
        found = self.store.reads.partitions.get_partitions(
            PartitionQuery(TableName(CATALOG, database, name))
        ).partitions
        return self.choices.choice(found).values[0] if found and self.is_lucky(0.9) else self.choices.choice(VALUES)

    def is_lucky(self, odds: float = 0.5) -> bool:
        return self.choices.random() < odds

    def _declare(self, text: str | None) -> str | None:
        """Possible locations of a database: links lead there, too."""
        if text is not None:
            try:
                path = self.t.context.warehouse.location(text).path
            except ttypes.MetaException:
                return text
            self._declared |= {path, os.path.realpath(path)}
        return text

    # Operations

    def do_create_database(self) -> None:
        name, location = self.choices.choice(DATABASES), self._declare(self.location() if self.is_lucky() else None)
        managed = self._declare(self.location() if self.is_lucky(0.2) else None)
        catalog = self.choices.choice(CATALOGS) if self.is_lucky(0.2) else CATALOG
        self.say(catalog, name, location, managed)
        self.t.create_database(name, locationUri=location, managedLocationUri=managed, catalogName=catalog)

    def do_alter_database(self) -> None:
        name, location = self.choices.choice(DATABASES), self._declare(self.location())
        field = self.choices.choice(("locationUri", "managedLocationUri"))
        self.say(name, field, location)
        self.store.writes.databases.alter_database(
            DatabaseName(CATALOG, name), ttypes.Database(name=name, parameters={}, **{field: location})
        )

    def do_drop_database(self) -> None:
        name = self.choices.choice(DATABASES)
        catalog = self.choices.choice(CATALOGS) if self.is_lucky(0.2) else CATALOG
        self.say(catalog, name)
        self.store.writes.databases.drop_database(
            DatabaseName(catalog, name), delete_data=self.is_lucky(0.8), cascade=self.is_lucky(0.8)
        )

    def do_create_catalog(self) -> None:
        name, location = self.choices.choice(CATALOGS), self._declare(self.location())
        self.say(name, location)
        self.store.writes.catalogs.create_catalog(ttypes.Catalog(name=name, locationUri=location))

    def do_alter_catalog(self) -> None:
        name, location = self.choices.choice(CATALOGS), self._declare(self.location())
        self.say(name, location)
        self.store.writes.catalogs.alter_catalog(name, ttypes.Catalog(name=name, locationUri=location))

    def do_drop_catalog(self) -> None:
        self.store.writes.catalogs.drop_catalog(self.choices.choice(CATALOGS))

    def do_create_table(self) -> None:
        database, name = self.pick(is_new=True)
        location = self.location() if self.is_lucky() else None
        fields = dict(self.choices.choice(KINDS))
        if self.is_lucky(0.6):
            fields["keys"] = [("k", "string")]
        self.say(database, name, location, fields)
        self.store.writes.tables.create_table(table(name, dbName=database, location=location, **fields))

    def do_alter_table(self) -> None:
        database, name = self.pick()
        new = self.t.get(name, database)
        if self.is_lucky():
            new.sd.location = self.location()
        else:
            new.dbName, new.tableName = self.pick(is_new=True)
        self.say(database, name, new.dbName, new.tableName, new.sd.location)
        self.store.writes.tables.alter_table(TableName(CATALOG, database, name), new)

    def do_drop_table(self) -> None:
        database, name = self.pick()
        self.say(database, name)
        self.store.writes.tables.drop_table(TableName(CATALOG, database, name), delete_data=self.is_lucky(0.9))

    def do_truncate(self) -> None:
        database, name = self.pick()
        self.say(database, name)
        self.store.writes.tables.truncate_table(TableName(CATALOG, database, name))

    def do_add_partition(self) -> None:
        database, name = self.pick()
        value, location = self.choices.choice(VALUES), self.location() if self.is_lucky() else None
        self.say(database, name, value, location)
        added = ttypes.Partition(values=[value], dbName=database, tableName=name, sd=table(name).sd, parameters={})
        added.sd.location = location
        self.store.writes.partitions.add_partitions(TableName(CATALOG, database, name), [added])

    def do_alter_partition(self) -> None:
        database, name = self.pick()
        found = self.store.reads.partitions.get_partitions(
            PartitionQuery(TableName(CATALOG, database, name))
        ).partitions
        for new in found[:1]:
            new = ttypes.Partition(values=list(new.values), dbName=database, tableName=name, sd=table(name).sd)
            new.parameters = {}
            new.sd.location = self.location()
            self.say(database, name, new.values, new.sd.location)
            self.store.writes.partitions.alter_partitions(TableName(CATALOG, database, name), [new])

    def do_rename_partition(self) -> None:
        database, name = self.pick()
        old, value = self.value(database, name), self.choices.choice(VALUES)
        self.say(database, name, old, value)
        new = ttypes.Partition(values=[value], dbName=database, tableName=name, sd=table(name).sd, parameters={})
        self.store.writes.partitions.rename_partition(TableName(CATALOG, database, name), [old], new)

    def do_drop_partitions(self) -> None:
        database, name = self.pick()
        self.say(database, name)
        self.store.writes.partitions.drop_partitions(
            TableName(CATALOG, database, name), AllPartitions(), delete_data=True
        )

    def do_exchange(self) -> None:
        source, destination = self.pick(), self.pick()
        value = self.value(*source)
        self.say(source, destination, value)
        self.store.writes.partitions.exchange_partitions(
            {"k": value}, TableName(CATALOG, *source), TableName(CATALOG, *destination)
        )


@pytest.mark.parametrize("number", [*range(4), *(pytest.param(n, marks=pytest.mark.soak) for n in range(4, 16))])
def test_files_of_others_stay(under_test: StoreUnderTest, tmp_path: Path, number: int) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    Sequence(under_test, tmp_path, random.Random(seed)).run()
