"""Calls of a client that tries to delete, move or overwrite files of others.

Sequences are generated from a seed. Each location is near files that must remain, in one of the spellings that file
systems, URLs and people use.
"""

from __future__ import annotations

import os
import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thrift.Thrift import TException
from thrift.transport.TTransport import TTransportException

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import table

KEYS = [("k", "string"), ("l", "string")]
DATABASES = ("h1", "h2", "h1.db", "H1", "../h", "outside")
TABLES = ("t1", "t2", "T1", "t1", "t2", "link", "k_1", "..")
VALUES = (
    "1",
    "2",
    "..",
    ".",
    "../..",
    "a/b",
    "a%2fb",
    "%2e%2e",
    "\u00e9",
    "e\u0301",
    " ",
    "",
    "k=1",
    "*",
    "link",
    "A",
    "a\nb",
)
VICTIM = "victim"
PARAMETERS: tuple[dict[str, str], ...] = (
    {},
    {"EXTERNAL": "TRUE"},
    {"EXTERNAL": "FALSE"},
    {"EXTERNAL": "true", "external.table.purge": "true"},
    {"EXTERNAL": "TRUE", "external.table.purge": "TRUE", "TRANSLATED_TO_EXTERNAL": "TRUE"},
    {"TRANSLATED_TO_EXTERNAL": "TRUE"},
    {"skip.deletion": "true"},
    {"auto.purge": "true"},
    {"transactional": "true"},
    {"transactional": "true", "transactional_properties": "insert_only", "soft_delete": "true"},
)
PROPERTIES: tuple[dict[str, str] | None, ...] = (
    None,
    {"ifPurge": "TRUE"},
    {"txnId": "7", "writeId": "3"},
    {"DO_NOT_UPDATE_STATS": "true"},
    {"CASCADE": "true"},
    {"location": "file:/", "original_location": "file:/", "skip.deletion": "false"},
)


@dataclass
class Tree:
    """What must remain unchanged."""

    root: Path
    warehouse: Path
    outside: Path
    before: dict[str, str] = field(default_factory=dict)

    def build(self) -> None:
        """Files and links of others."""
        for name in ("a/data", "a/k=1/data", "a/k=1/l=1/data", "b.db/t1/data", "deep/er/data", "A/data", "\u00e9/data"):
            place = self.outside / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(name)
        (self.outside / "within").symlink_to(self.outside / "a")
        for name, goal in (("link", self.outside / "a"), ("up", self.outside), ("loop", Path("loop"))):
            if not (self.warehouse / name).is_symlink():
                (self.warehouse / name).symlink_to(goal)
        self.before = self.look()

    def look(self) -> dict[str, str]:
        """Returns all files outside, and the victim's files, with their contents."""
        found: dict[str, str] = {}
        for top in (self.outside, self.warehouse / f"{VICTIM}.db", self.root / "declared"):
            for directory, names, files in os.walk(top):
                for name in [*names, *files]:
                    path = Path(directory, name)
                    if path.is_symlink():
                        found[str(path)] = f"link to {path.readlink()}"
                    elif path.is_dir():
                        found[str(path)] = "directory"
                    else:
                        found[str(path)] = path.read_text()
        return found

    def damage(self) -> list[str]:
        """Returns what has changed. New directories are those of tables; directories without files may be deleted."""
        now = self.look()
        files = [path for path, content in self.before.items() if content != "directory"]
        holds = {str(parent) for path in files for parent in Path(path).parents}
        gone = [
            f"{path}: {now.get(path, 'gone')}"
            for path, content in self.before.items()
            if now.get(path) != content and (content != "directory" or path in holds)
        ]
        new = [
            f"{path}: new"
            for path, content in now.items()
            if path not in self.before
            and (content != "directory" or Path(path).name.startswith("base_"))
            and str(Path(path).parent) in holds
        ]
        return gone + new


class Attacker:
    """Sends random calls, and continues whatever the replies are."""

    def __init__(self, client: Any, tree: Tree, seed: int) -> None:
        self.client = client
        self.random = random.Random(seed)
        self.tree = tree
        self.seed = seed
        self.log: list[str] = []
        self.answered = 0

    def location(self) -> str:
        """A location near something that must remain."""
        choose = self.random.choice
        warehouse, outside = self.tree.warehouse, self.tree.outside
        place = str(
            choose(
                [
                    outside / choose(["", "a", "b.db", "b.db/t1", "within", "new", "new/deep", "deep", "\u00e9"]),
                    warehouse / choose(["", "link", "up", "up/a", "loop", f"{VICTIM}.db", f"{VICTIM}.db/t1", "free"]),
                    warehouse / f"{VICTIM}.db" / choose(["t1/k=1", "t1/k=1/l=1", "t1/deeper", "plain", "ext", "new"]),
                    warehouse / self.directory_of_database() / choose(["", "t1", "t1/k=1", "t2", "link", "t1/t2"]),
                    warehouse
                    / choose(["up/a/k=1", "up/b.db/t1", "up/a/data", "link/k=1", "link/k=1/l=1", "up/deep/er"]),
                    self.tree.root / choose(["", "declared", "declared/t1", "declared/t1/k=1", "."]),
                    Path("/"),
                ]
            )
        )
        name = place.rsplit("/", 1)[-1]
        place = choose(
            [
                *[place] * 40,
                place + "/",
                place + "/.",
                place + "/x/..",
                place + "/..",
                place + "/../" + name,
                place.replace("/", "//"),
                place.replace("/" + name, "/%2e%2e/" + name) if name else place,
                place + "/%2e%2e",
                place + "::v2",
                place + "::memory",
                place + "?x",
                place + "#y",
                place + "/*",
                place + "\0",
                place.swapcase(),
                unicodedata.normalize("NFD", place),
                "/.." * 30 + place,
                place + "/" + "x" * 300,
                place + "/a\nb",
                place + " ",
            ]
        )
        return str(
            choose(
                [
                    *["file:" + place] * 30,
                    *[place] * 5,
                    "file://" + place,
                    "file:///" + place,
                    "file://localhost" + place,
                    "FILE:" + place,
                    "file:/::memory" + place,
                    "local:" + place,
                    "hdfs://namenode:8020" + place,
                    "s3a://bucket" + place,
                    place.lstrip("/"),
                    "../" + name,
                    "",
                ]
            )
        )

    def directory_of_database(self) -> str:
        return self.database().lower().replace("/", "%2F") + ".db"

    def database(self) -> str:
        return f"{self.random.choice(DATABASES)}_{self.seed}"

    def table(self) -> str:
        return self.random.choice(TABLES)

    def _databases(self) -> list[str]:
        return [name for name in self.client.get_all_databases() if name.endswith(f"_{self.seed}")]

    def known_database(self) -> str:
        """One that usually exists."""
        found = self._databases()
        return self.random.choice(found) if found and self.random.random() < 0.95 else self.database()

    def known_table(self) -> tuple[str, str]:
        """One that usually exists, and its database."""
        found = [(name, each) for name in self._databases() for each in self.client.get_all_tables(name)]
        if found and self.random.random() < 0.95:
            return self.random.choice(found)
        return self.database(), self.table()

    def known_partition(self) -> tuple[str, str, ttypes.Partition]:
        """Returns an existing partition. Raises TException if there is none."""
        found = [
            (name, each, partition)
            for name in self._databases()
            for each in self.client.get_all_tables(name)
            for partition in self.client.get_partitions(name, each, -1)
        ]
        if not found:
            raise TException("there is no partition")
        return self.random.choice(found)

    def maybe_location(self) -> str | None:
        return self.location() if self.random.random() < 0.7 else None

    def context(self) -> ttypes.EnvironmentContext | None:
        chosen = self.random.choice(PROPERTIES)
        return None if chosen is None else ttypes.EnvironmentContext(chosen)

    def new_table(self, database: str, name: str) -> ttypes.Table:
        made: ttypes.Table = table(
            name,
            dbName=database,
            location=self.maybe_location(),
            keys=KEYS if self.random.random() < 0.7 else [],
            parameters=dict(self.random.choice(PARAMETERS)),
            tableType=self.random.choice(["MANAGED_TABLE", "EXTERNAL_TABLE", "MANAGED_TABLE", "INDEX_TABLE"]),
        )
        if self.random.random() < 0.1:
            made.sd.skewedInfo = ttypes.SkewedInfo(["id"], [["1"]], {("1",): self.location()})
        return made

    def values(self) -> list[str]:
        return [self.random.choice(VALUES), self.random.choice(VALUES)]

    def partition(self, database: str, name: str) -> ttypes.Partition:
        sd = table("x").sd
        sd.location = self.maybe_location()
        parameters = (
            {"is_archived": "true", "original_location": self.location()} if self.random.random() < 0.15 else {}
        )
        return ttypes.Partition(values=self.values(), dbName=database, tableName=name, sd=sd, parameters=parameters)

    # Calls

    def create_database(self) -> object:
        return self.client.create_database(
            ttypes.Database(
                name=self.database(),
                locationUri=self.maybe_location(),
                managedLocationUri=self.location() if self.random.random() < 0.2 else None,
                parameters={"hms_cache.location.left_alone": "", "HMS_CACHE.LOCATION.LEFT_ALONE": "x"}
                if self.random.random() < 0.2
                else {},
                type=ttypes.DatabaseType.REMOTE if self.random.random() < 0.05 else None,
            )
        )

    def alter_database(self) -> object:
        name = self.known_database()
        database = self.client.get_database(name)
        database.locationUri = self.location()
        if self.random.random() < 0.3:
            database.managedLocationUri = self.location()
        return self.client.alter_database(name, database)

    def drop_database(self) -> object:
        return self.client.drop_database(self.known_database(), self.random.random() < 0.9, self.random.random() < 0.8)

    def create_table(self) -> object:
        return self.client.create_table_with_environment_context(
            self.new_table(self.known_database(), self.table()), self.context()
        )

    def alter_table(self) -> object:
        database, name = self.known_table()
        new = self.client.get_table(database, name)
        chance = self.random.random
        if chance() < 0.4:
            new.sd.location = self.location()
        if chance() < 0.5:
            new.parameters.update(self.random.choice(PARAMETERS))
            new.tableType = self.random.choice(["MANAGED_TABLE", "EXTERNAL_TABLE"])
        if chance() < 0.3:
            new.tableName = self.table()
        if chance() < 0.2:
            new.dbName = self.known_database()
        if chance() < 0.1:
            new.sd.skewedInfo = ttypes.SkewedInfo(["id"], [["1"]], {("1",): self.location()})
        return self.client.alter_table_with_environment_context(database, name, new, self.context())

    def drop_table(self) -> object:
        return self.client.drop_table_with_environment_context(
            *self.known_table(), self.random.random() < 0.9, self.context()
        )

    def truncate_table(self) -> object:
        names = [f"k={value}/l=1" for value in VALUES[:3]] if self.random.random() < 0.3 else None
        return self.client.truncate_table(*self.known_table(), names)

    def add_partitions(self) -> object:
        database, name = self.known_table()
        return self.client.add_partitions([self.partition(database, name) for _ in range(2)])

    def append_partition(self) -> object:
        return self.client.append_partition(*self.known_table(), self.values())

    def alter_partition(self) -> object:
        database, name, new = self.known_partition()
        new.sd.location = self.location()
        if self.random.random() < 0.2:
            new.parameters = {"is_archived": "true", "original_location": self.location()}
        return self.client.alter_partition_with_environment_context(database, name, new, self.context())

    def rename_partition(self) -> object:
        database, name, new = self.known_partition()
        old, new.values = new.values, self.values()
        if self.random.random() < 0.3:
            new.sd.location = self.location()
        return self.client.rename_partition(database, name, old, new)

    def drop_partition(self) -> object:
        database, name, found = self.known_partition()
        return self.client.drop_partition_with_environment_context(
            database, name, found.values, self.random.random() < 0.9, self.context()
        )

    def exchange_partition(self) -> object:
        database, name, found = self.known_partition()
        specification = dict(zip("kl", found.values, strict=True))
        if self.random.random() < 0.5:
            del specification["l"]
        return self.client.exchange_partition(specification, database, name, *self.known_table())

    def catalog(self) -> object:
        name = f"c{self.seed}"
        if self.random.random() < 0.5:
            return self.client.create_catalog(
                ttypes.CreateCatalogRequest(ttypes.Catalog(name=name, locationUri=self.location()))
            )
        return self.client.drop_catalog(ttypes.DropCatalogRequest(name=name))

    def plant(self) -> object:
        """Creates links and files in the warehouse, like another program, or a client with the right to write files."""
        directory = self.tree.warehouse / self.directory_of_database() / self.random.choice(["", "t1", "t1/k=1", "t2"])
        if not directory.is_dir() or not directory.resolve().is_relative_to(self.tree.warehouse):
            return None
        goal = self.random.choice([self.tree.outside, self.tree.outside / "a", self.tree.warehouse / f"{VICTIM}.db"])
        name = self.random.choice(["link", "k=1", "l=1", "t1", "data", "x", "base_0000003"])
        if not os.path.lexists(directory / name):
            if self.random.random() < 0.6:
                (directory / name).symlink_to(goal)
            else:
                (directory / name).write_text("1")
        return None

    CALLS = (
        *("create_database", "create_database", "create_database", "alter_database", "drop_database"),
        *(["create_table"] * 8),
        *(["alter_table"] * 4),
        *(["drop_table"] * 3),
        *(["add_partitions"] * 5),
        *("append_partition", "alter_partition", "alter_partition", "rename_partition", "drop_partition"),
        *("drop_partition", "exchange_partition", "truncate_table", "truncate_table", "catalog", "plant"),
    )

    def call(self, name: str) -> None:
        """Sends one call. Raises TTransportException if the server does not answer."""
        try:
            getattr(self, name)()
            self.answered += 1
            outcome = "done"
        except TTransportException:
            raise
        except (TException, UnicodeError) as error:
            outcome = f"{type(error).__name__} {getattr(error, 'message', error)}"[:160]
        self.log.append(f"{name}: {outcome}")

    def attack(self, calls: int, check: Callable[[str], None]) -> None:
        """The calls of one sequence; `check` is called after each."""
        for number in range(calls):
            name = self.random.choice(self.CALLS)
            if number < 6 or not self._databases():
                name = "create_database" if number % 3 == 0 else "create_table"
            self.call(name)
            check(name)
        for name in self.client.get_all_databases():
            if name.endswith(f"_{self.seed}"):
                try:
                    self.client.drop_database(name, True, True)
                    outcome = "done"
                except TException as error:
                    outcome = str(error)[:160]
                self.log.append(f"drop_database {name}: {outcome}")
                check(f"drop_database {name}")
