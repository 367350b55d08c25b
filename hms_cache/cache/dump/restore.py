"""Installs the contents of a dump in a cache that has just been created.

The dump is true at its position P, so it is installed like a load whose snapshot showed P. Small entries are installed
at once, before the poller starts. Large partition sets are installed later, while calls are served, through load slots
taken at P. Later events are recorded on these slots: they remove the partitions they name from a set, or discard the
set (`SharedCache.install`). The cache answers with none of it until the poller has proven that the log still has the
row at P (P7). The poller starts from P, and resets the cache if it cannot prove that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hms_cache.cache.dump.file import ENTRIES, PARTITIONS, DumpReader, NotADump, Section
from hms_cache.cache.dump.partitions import decode_set
from hms_cache.cache.dump.values import UNREADABLE, BadDump, decode_value
from hms_cache.cache.dump.writing import FORMAT, Identity
from hms_cache.cache.entries import Entry, Facet, Key
from hms_cache.cache.loads import Load
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.process_memory import SharedParts
from hms_cache.cache.weights import weight_of
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications.event_log import LogPosition
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.thrift_gen.hive_metastore.ttypes import Table
from hms_cache.txn.valid_write_ids import ValidWriteIdList

_log = logging.getLogger(__name__)

MAX_SMALL_S: Final = 5.0
"""How long the server's start waits for small entries, the most recently used first; enough for some 100,000 tables.
The rest is loaded when it is requested."""

_FACETS: Final = {facet.value: facet for facet in Facet}


@dataclass(slots=True)
class _Late:
    """A set of partitions that is installed later."""

    section: Section
    key: TableName
    load: Load


class Restore:
    """Restores one dump into one cache. Call `begin` before the poller starts, then `step` until it returns False, and
    `close` at the end. Not thread-safe."""

    def __init__(
        self, cache: SharedCache, path: Path, identity: Identity, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._cache = cache
        self._path = path
        self._identity = identity
        self._now_s = now_s
        self._reader: DumpReader | None = None
        self._late: list[_Late] = []
        self._position = -1
        self._parts = SharedParts()
        self.outcome = "none"
        """`none` (there is no dump), `discarded` (its contents cannot be used), `foreign` (the file must not be
        replaced), or `read`."""
        self.tables = 0
        self.bytes = 0
        """What was installed: the number of tables, and the bytes that the cache is charged for them."""

    def begin(self) -> LogPosition | None:
        """Returns the position from which the poller starts. None: it starts at the end of the log, with an empty
        cache.

        Does not raise: a dump that cannot be used is discarded, with a line in the log.
        """
        try:
            # A dump is at most as large as the charges of its entries, plus names and section headers.
            self._reader = DumpReader(self._path, 2 * self._cache.budget_bytes + 2**30)
            place, later = self._head()
            self._cache.start_at(place.event_id)
            self._position = place.event_id
            self._read_small()
            # The poller has not started: every event after P finds the slots.
            self._reserve_slots(later)
        except FileNotFoundError:
            return None
        except (BadDump, OSError) as error:
            self._discard(str(error))
            if not isinstance(error, BadDump) or isinstance(error, NotADump):
                self.outcome = "foreign"
            return None
        self.outcome = "read"
        _log.info(
            "the cache dump is read: %d tables as of event %d; %d large partition sets follow",
            self.tables,
            *self._counts(),
        )
        return place

    def _counts(self) -> tuple[int, int]:
        return self._position, len(self._late)

    def _discard(self, reason: str) -> None:
        _log.warning("the cache dump %s is not used: %s", self._path, reason)
        self.outcome = "discarded"
        self.close()
        self._cache.start_at(-1)

    def close(self) -> None:
        """Gives up what is not installed yet; further calls do nothing."""
        for one in self._late:
            self._cache.end_load(one.load)
        self._late.clear()
        self._parts = SharedParts()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    @property
    def is_done(self) -> bool:
        """Whether everything has been installed."""
        return not self._late

    def step(self) -> bool:
        """Installs one partition set. Returns False if there are no more."""
        if not self._late:
            if self._reader is not None:
                _log.info("the cache dump is completely read: its entries take %d bytes of memory", self.bytes)
            self.close()
            return False
        one = self._late[0]
        try:
            if not one.load.abandoned and not self._cache.is_filled_ahead:
                assert self._reader is not None
                tree, blobs = self._reader.read(one.section)
                if _key(tree["key"]) != one.key:
                    raise BadDump("they belong to another table")
                self._install(one.load, Facet.PARTITIONS, decode_set(tree["set"], blobs), 0)
        except (BadDump, OSError, *UNREADABLE) as error:
            _log.warning("the partitions of %s in the cache dump are not used: %s", one.key, error)
        finally:
            self._cache.end_load(one.load)
            del self._late[:1]  # only now: until then the dump is still being read
        return True

    def _head(self) -> tuple[LogPosition, list[Key]]:
        """Returns (the position, the tables whose partition sets have their own sections)."""
        assert self._reader is not None
        head, _ = self._reader.read(self._reader.sections[0])
        try:
            if head["format"] != FORMAT:
                raise BadDump(f"its format is {head['format']!r}, not {FORMAT}")
            if head["build"] != self._identity.build:
                raise BadDump("another version of this program wrote it")
            if head["settings"] != self._identity.settings:
                raise BadDump("it was written under other settings")
            event_id, row_digest, server_identity = head["position"]
            later = [_key(names) for names in head["later"]]
        except UNREADABLE as error:
            raise BadDump(f"its head cannot be read: {error!r}") from error
        if not (isinstance(event_id, int) and isinstance(row_digest, str) and isinstance(server_identity, str)):
            raise BadDump("its position cannot be read")
        return LogPosition(event_id, row_digest, server_identity), later

    def _read_small(self) -> None:
        assert self._reader is not None
        end_s = self._now_s() + MAX_SMALL_S
        for section in self._reader.sections:
            if section.kind != ENTRIES:
                continue
            trees, blobs = self._reader.read(section)
            for tree in trees:
                if self._cache.is_filled_ahead or self._now_s() > end_s:
                    return
                try:
                    self._install_entry(tree, blobs)
                except UNREADABLE as error:
                    raise BadDump(f"an entry cannot be read: {error!r}") from error

    def _install_entry(self, tree: Any, blobs: list[bytes]) -> None:
        key = _key(tree["key"])
        facets = {_FACETS[name]: given for name, given in tree["facets"].items()}
        load = self._cache.begin_load(key, facets)
        try:
            for facet, (weight, given) in facets.items():
                value = decode_set(given["set"], blobs) if facet is Facet.PARTITIONS else decode_value(given, blobs)
                if facet is Facet.TABLE:
                    self._install_table(load, tree, value, blobs[given["bytes"]], weight)
                else:
                    self._install(load, facet, value, weight)
        finally:
            self._cache.end_load(load)
        with self._cache.view():
            entry = self._cache.entry(key)
            if entry is not None and isinstance(key, TableName):
                entry.reads = int(tree["reads"])
                # Entries come with the most recently used first; eviction starts at the other end.
                self._cache.tables.move_to_end(key, last=False)

    def _install_table(self, load: Load, tree: Any, table: Any, encoded: bytes, weight: int) -> None:
        if not isinstance(table, Table):
            raise BadDump("an invalid table")
        tag = ValidWriteIdList.parse(tree["tag"]) if tree["tag"] is not None else None
        if is_transactional(table) is not tree["is_transactional"] or table.id != tree["table_id"]:
            raise BadDump("a table does not match its recorded properties")
        self._parts.share(table)

        def prepare(entry: Entry) -> None:
            entry.fence = self._position
            entry.table_id, entry.tag, entry.encoded_table = table.id, tag, encoded
            entry.is_transactional = tree["is_transactional"]
            entry.has_commit_parameters = bool(tree["has_commit_parameters"])

        if self._install(load, Facet.TABLE, table, weight, prepare):
            self.tables += 1

    def _install(
        self, load: Load, facet: Facet, value: Any, weight: int, prepare: Callable[[Entry], None] | None = None
    ) -> bool:
        """Installs a facet unless the cache already has a complete one, which is at least as new. Returns whether it
        was installed."""
        with self._cache.view():
            entry = self._cache.entry(load.key)
            cached = entry.facets.get(facet) if entry is not None else None
        if cached is not None and getattr(cached, "complete", True):
            return False
        if facet is Facet.PARTITIONS:
            weight = weight_of(value)
        if not self._cache.install(load, self._position, facet, value, weight, prepare):
            return False
        self.bytes += weight
        return True

    def _reserve_slots(self, keys: list[Key]) -> None:
        assert self._reader is not None
        sections = [section for section in self._reader.sections if section.kind == PARTITIONS]
        if len(sections) != len(keys):
            raise BadDump("sections of partitions are missing")
        for section, key in zip(sections, keys, strict=True):
            if not isinstance(key, TableName):
                raise BadDump("partitions without a table")
            self._late.append(_Late(section, key, self._cache.begin_load(key, {Facet.PARTITIONS})))


def _key(names: Any) -> Key:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadDump("invalid names")
    match names:
        case [catalog]:
            return str(catalog)
        case [catalog, database]:
            return DatabaseName(catalog, database)
        case [catalog, database, table]:
            return TableName(catalog, database, table)
    raise BadDump("invalid names")
