"""Two servers on one database, which is reset to the same catalog after each write."""

from __future__ import annotations

import copy
import shutil
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hms_cache.notifications.messages import MessageFormat
from hms_cache.server.calls import Call
from hms_cache.server.handlers.table import all_handlers
from hms_cache.server.session import Session
from hms_cache.server.stores import Stores
from tests.cache.world import Server, encoded
from tests.every_write.catalog import Facts, fill
from tests.every_write.reads import Read, all_reads

LOG_TABLES = frozenset({"NOTIFICATION_LOG", "NOTIFICATION_SEQUENCE", "SEQUENCE_TABLE"})
"""What only ever grows and is not set back: events, and the ids that were handed out."""

CACHED_TABLES = frozenset(
    {
        *("DBS", "DATABASE_PARAMS", "TBLS", "TABLE_PARAMS", "PARTITION_KEYS", "SDS", "SD_PARAMS", "SERDES"),
        *("SERDE_PARAMS", "COLUMNS_V2", "BUCKETING_COLS", "SORT_COLS", "SKEWED_COL_NAMES", "SKEWED_VALUES"),
        *("SKEWED_COL_VALUE_LOC_MAP", "SKEWED_STRING_LIST", "SKEWED_STRING_LIST_VALUES", "PARTITIONS"),
        *("PARTITION_PARAMS", "PARTITION_KEY_VALS", "TAB_COL_STATS", "PART_COL_STATS", "KEY_CONSTRAINTS", "FUNCS"),
        *("FUNC_RU", "MV_CREATION_METADATA", "MV_TABLES_USED"),
    }
)
"""Tables whose rows cached reads show."""

TAG_TABLES = frozenset({"TXNS", "TXN_TO_WRITE_ID", "NEXT_WRITE_ID"})
"""Tables whose rows make the write ids that cached transactional tables are tagged with."""

_TEXT_PROXY = "org.apache.hadoop.hive.metastore.MsckPartitionExpressionProxy"
"""With it expressions are texts."""

Rows = dict[str, list[tuple[Any, ...]]]


@dataclass
class Outcome:
    """The effect of a call."""

    error: Exception | None
    changed: frozenset[str]
    """Tables with other rows than before."""
    events: list[str]
    """Types of the new events."""


class World:
    """`writer` executes the writes, `other` only reads; `writer.objects` reads the database without a cache."""

    def __init__(self, url: str, directory: Path, message_format: MessageFormat, files: str = "leave") -> None:
        self.writer = Server(url, directory / "warehouse", message_format=message_format, files=files)
        self.facts: Facts = fill(self.writer.objects, self.writer.transactions)
        self.other = Server(url, directory / "warehouse", message_format=message_format, files=files)
        path = str(self.writer.database.url.database)
        self._raw = sqlite3.connect(path, isolation_level=None)
        self._raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        template = directory / "template.db"
        shutil.copy(path, template)
        self._raw.execute("ATTACH ? AS template", (str(template),))
        names = self._raw.execute("SELECT name FROM main.sqlite_master WHERE type = 'table' ORDER BY name")
        self._tables = [name for (name,) in names if not name.startswith("sqlite_")]
        assert set(self._tables) >= CACHED_TABLES
        self._baseline = self.rows()
        self.reads: dict[str, Read] = all_reads(self.facts)
        self._handlers = all_handlers()
        self._is_warm = False
        site = SimpleNamespace(config_value=lambda name: None, counters=dict)
        server = self.writer
        self._stores = Stores(
            server.store.reads, server.store.writes, server.transactions.store, server.log, site, server.auxiliary
        )

    def close(self) -> None:
        """Closes everything."""
        self._raw.close()
        self.other.close()
        self.writer.close()

    def warm(self) -> None:
        """Loads everything that may be cached into both caches."""
        if self._is_warm:
            return
        self._is_warm = True
        for server in (self.writer, self.other):
            for read in self.reads.values():
                encoded(lambda read=read, server=server: read(server.store))  # type: ignore[misc]

    def change_rows(self, statements: Iterable[str]) -> None:
        """Changes the catalog from now on, like a program that writes to its tables directly."""
        for statement in statements:
            for schema in ("main", "template"):
                self._raw.execute(statement.format(schema))
        self._baseline = self.rows()
        self.set_back(frozenset())

    def ask(self, method: str, arguments: Any) -> Any:
        """Sends any call to `writer`."""
        session = Session(peer="test", variables={"metastore.expression.proxy": _TEXT_PROXY})
        return self._handlers[method].function(Call(method, session, self._stores), copy.deepcopy(arguments))

    def call(self, method: str, arguments: Any) -> Outcome:
        """Sends a write to `writer`."""
        log_end = self._log_end()
        error = None
        try:
            self.ask(method, arguments)
        except Exception as raised:
            error = raised
        rows = self.rows()
        changed = frozenset(name for name in rows if rows[name] != self._baseline[name])
        events = self._raw.execute(
            "SELECT EVENT_TYPE FROM main.NOTIFICATION_LOG WHERE EVENT_ID > ? ORDER BY EVENT_ID", (log_end,)
        )
        return Outcome(error, changed, [kind for (kind,) in events])

    def differences(self) -> list[str]:
        """Returns reads to which a cache answers differently than the database."""
        found = []
        for name, read in self.reads.items():
            expected = encoded(lambda read=read: read(self.writer.objects))  # type: ignore[misc]
            for which, server in (("writer", self.writer), ("other", self.other)):
                answer = encoded(lambda read=read, server=server: read(server.store))  # type: ignore[misc]
                if answer != expected:
                    found.append(f"{which}: {name}: {answer!r} instead of {expected!r}")
        return found

    def set_back(self, changed: frozenset[str]) -> None:
        """Restores the rows of these tables except the log. No event reports it, so caches are reset."""
        self._raw.execute("BEGIN IMMEDIATE")
        for name in changed:
            self._raw.execute(f'DELETE FROM main."{name}"')
            self._raw.execute(f'INSERT INTO main."{name}" SELECT * FROM template."{name}"')
        self._raw.execute("COMMIT")
        for server in (self.writer, self.other):
            server.poller.step()
            server.cache.shared.forget_all()
        self._is_warm = False

    def _log_end(self) -> int:
        (end,) = self._raw.execute("SELECT COALESCE(MAX(EVENT_ID), 0) FROM main.NOTIFICATION_LOG").fetchone()
        return int(end)

    def rows(self) -> Rows:
        """All rows of the catalog, the log apart, by table."""
        return {
            name: sorted(self._raw.execute(f'SELECT * FROM main."{name}"').fetchall(), key=repr)
            for name in self._tables
            if name not in LOG_TABLES
        }
