"""How a read is answered: freshness first, then memory, then one load, then the store."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

from hms_cache.cache.answers import Answer, Reply
from hms_cache.cache.entries import Entry, Facet, Key
from hms_cache.cache.freshness import Freshness
from hms_cache.cache.policy import CachePolicy
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming.background_loads import BackgroundLoads, LoadDecision
from hms_cache.cache.warming.load_limits import LoadLimitReached
from hms_cache.cache.warming.loader import Loader
from hms_cache.cache.warming.snapshot_reads import LoadRequest
from hms_cache.call_context import call_context
from hms_cache.clock import Clock
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.expressions import FilterLimits
from hms_cache.limited_log import LimitedLog
from hms_cache.metadata.name_ranges import NameRange
from hms_cache.metadata.names import is_valid_name
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.store.contract.read_version import ANY_VERSION, ReadVersion
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, NoSuchObjectException, Table
from hms_cache.txn.id_lists import IdListFormatError
from hms_cache.txn.valid_write_ids import ValidWriteIdList, parsed_write_ids
from hms_cache.values import frozen

_log = LimitedLog(logging.getLogger(__name__))
"""A client may be able to repeat a failure."""

T = TypeVar("T")

ReadObserver = Callable[[str, Reason], None]
"""(kind of question, reason for the way it was answered)."""

ROUNDS = 3
"""Looks at memory before the store answers: for a table, for its partitions, and for what an event dropped
meanwhile."""


HEAL_AFTER_READS = 3
"""Uncovered write-id lists in a row before a tag is read again: one may belong to a session that began before others
committed."""

HEAL_INTERVAL_S = 10.0
"""Interval between two such loads of one table: a statement or two every ten seconds, whatever lists clients send."""


@frozen
class Need:
    """Memory lacks this."""

    requested: tuple[LoadRequest, ...]
    gaps: tuple[NameRange, ...] = ()
    """If all partitions are wanted: the ranges of names that the read needs."""
    once: bool = False
    """If it is still missing after its load, memory cannot say whether it exists."""

    def as_stored(self) -> Need:
        """The same with names as they are stored, not as the request spells them."""
        return replace(self, requested=tuple(one.as_stored() for one in self.requested))


@frozen
class Bypass:
    """Memory must not answer."""

    reason: Reason


@frozen
class ReadModes:
    """The settings that affect reads; replaced as a whole on a reload."""

    enabled: bool = True
    trust_write_ids: bool = False
    """`write_id_reads = trust`: a request with a covered list and the right table id is answered without a position
    check."""
    without_write_ids: str = "check"
    """`reads_without_write_ids`: requests without a list for transactional tables: `check`, `store` or `reject`."""


class Reading:
    """The algorithm, shared by all kinds of questions. Immutable except `modes` and `policy`, which are replaced."""

    def __init__(
        self,
        cache: SharedCache,
        freshness: Freshness,
        loader: Loader,
        clock: Clock,
        policy: CachePolicy,
        modes: ReadModes,
        observe: ReadObserver | None = None,
        limits_partitions: bool = False,
        filter_limits: FilterLimits | None = None,
        *,
        background: BackgroundLoads,
    ) -> None:
        self.background = background
        self.filter_limits = filter_limits or FilterLimits()
        """Requests beyond these go to the store, which refuses and counts them."""
        self.limits_partitions = limits_partitions
        """`metastore.limit.partition.request` is set: the store counts the requested partitions and refuses too
        many."""
        self.cache = cache
        self._view = cache.view()
        self.freshness = freshness
        self.loader = loader
        self.clock = clock
        self.policy = policy
        self.modes = modes
        self._observe = observe or (lambda kind, reason: None)

    def answer(
        self,
        kind: str,
        from_memory: Callable[[SharedCache], T | Need | Bypass],
        from_store: Callable[[], T],
        *,
        facet: Facet,
        table: TableName | None = None,
        subject: Key | None = None,
        version: ReadVersion = ANY_VERSION,
        selects_all: bool = False,
    ) -> T:
        """Answers one read. `from_memory` runs under the cache's lock and uses memory only; `from_store` reads from the
        store.

        `selects_all`: the store would read the whole table for it, so that loading the whole table costs no more.

        Raises what `from_store` raises, and what `from_memory` raises if complete lists of names show that the object
        does not exist. Other errors on the way to memory are logged, and the store answers (P9), with two exceptions:
        if the database cannot be asked for its position, it cannot be asked for the answer either
        (DatabaseUnavailable), and a user or address with the maximum number of loads gets no further one
        (LoadLimitReached).
        """
        # Entries kept by a name must not contain the spelling of this request.
        table = None if table is None else table.as_stored
        subject = table if table is not None else subject
        if not self.modes.enabled:
            return self._from_store(kind, Reason.DISABLED, from_store)
        if not self.policy.may_cache(facet) or (table is not None and not self.policy.names_table(table)):
            return self._from_store(kind, Reason.EXCLUDED, from_store)
        # Not under the lock: a range of a few characters stands for a million ids.
        if version.valid_write_ids is not None and _parsed(version.valid_write_ids) is None:
            return self._from_store(kind, Reason.UNSUPPORTED_FIELD, from_store)
        may_trust = self._may_trust(version)
        if may_trust:
            trusted = self._trusted(from_memory, table, kind, facet)
            if trusted is not None:
                self._observe(kind, Reason.HIT)
                return cast(T, trusted)
        if not self._is_fresh(table if facet is not Facet.CONSTRAINTS else None):
            return self._from_store(kind, Reason.BEHIND_EVENTS, from_store)
        reason, is_up_to_date, was_loaded = Reason.HIT, False, False
        for _ in range(ROUNDS):
            try:
                with self._view:
                    applied_position = self.cache.applied_position
                    found = from_memory(self.cache)
                    if not isinstance(found, Need | Bypass):
                        self._record_source(kind, subject, facet, may_trust=may_trust)
            except (NoSuchObjectException, MetaException):
                self._observe(kind, reason)
                call_context.record_position(applied_position)
                raise
            except Exception as error:
                return self._from_store_instead(kind, subject, from_store, error)
            if isinstance(found, Bypass):
                if found.reason is Reason.STALE_WRITE_IDS and table is not None:
                    # A lease does not cover events that concern transactions only: the list may contain a transaction
                    # that memory does not know yet.
                    if not is_up_to_date and self.freshness.holds_lease(table):
                        is_up_to_date = self._is_up_to_date()
                        if is_up_to_date:
                            continue
                    self._heal(table, version)
                return self._from_store(kind, found.reason, from_store)
            if not isinstance(found, Need):
                self._observe(kind, reason)
                call_context.record_position(applied_position)
                return found
            if found.once and was_loaded:
                break
            was_loaded = was_loaded or found.once
            found = found.as_stored()
            if not all(is_valid_name(_catalog_of(one.key), special_characters=False) for one in found.requested):
                # No catalog has such a name. But with Hive's script for MySQL, names that differ in accents are found
                # by it, and no event would contain this name.
                return self._from_store(kind, Reason.EXCLUDED, from_store)
            decision = self._decide(table, facet, found, selects_all)
            if decision is LoadDecision.PASS_THROUGH:
                return self._from_store(kind, Reason.NOT_CACHED, from_store)
            reason = Reason.MISS
            if not self._load(found, facet, decision):
                break
        return self._from_store(kind, Reason.INCOMPLETE, from_store)

    def answer_made(
        self,
        kind: str,
        from_memory: Callable[[SharedCache], Callable[[], T] | Need | Bypass],
        from_store: Callable[[], T],
        *,
        facet: Facet,
        table: TableName | None = None,
        subject: Key | None = None,
        version: ReadVersion = ANY_VERSION,
        selects_all: bool = False,
    ) -> T:
        """Like `answer`, for long answers: `from_memory` selects the data, and what it returns makes the answer,
        without the lock. The selected data does not change."""

        def read_store() -> Callable[[], T]:
            answered = from_store()
            return lambda: answered

        make = self.answer(
            kind,
            from_memory,
            read_store,
            facet=facet,
            table=table,
            subject=subject,
            version=version,
            selects_all=selects_all,
        )
        try:
            return make()
        except (NoSuchObjectException, MetaException):
            raise
        except Exception as error:
            return self._from_store_instead(kind, table.as_stored if table is not None else subject, from_store, error)

    def _is_fresh(self, table: TableName | None) -> bool:
        try:
            return self.freshness.ensure(table, wants_proof=call_context.serves_a_write)
        except DatabaseUnavailableError:
            raise
        except Exception as error:
            _log.fault("whether memory is recent could not be found out", error)
            return False

    def _is_up_to_date(self) -> bool:
        """After a check, even if the lease holds."""
        try:
            return self.freshness.ensure_by_check()
        except DatabaseUnavailableError:
            raise
        except Exception as error:
            _log.fault("whether memory is up to date could not be found out", error)
            return False

    def _from_store_instead(self, kind: str, subject: Key | None, from_store: Callable[[], T], error: Exception) -> T:
        """The store's answer after memory could not be read. What is held of the subject may be the cause, and is
        dropped, unless the store fails in the same way: then the request is the cause, and no client may empty memory
        with it."""
        try:
            answer = self._from_store(kind, Reason.CORRUPT, from_store)
        except Exception as failure:
            if type(failure) is not type(error):
                self._drop_broken(subject, error)
            raise
        self._drop_broken(subject, error)
        return answer

    def _drop_broken(self, subject: Key | None, error: Exception) -> None:
        _log.fault("the cached entry of %s cannot be read and is dropped", error, subject)
        try:
            if subject is not None:
                self.cache.forget(subject)
            else:
                self.cache.forget_all()
        except Exception as problem:
            _log.fault("it could not be dropped", problem)

    def _record_source(self, kind: str, subject: Key | None, facet: Facet, *, may_trust: bool) -> None:
        entry = self.cache.entry(subject) if subject is not None else None
        if entry is not None:
            entry.reads += 1
            call_context.source.from_entry(
                entry,
                kind,
                follows_other_tables=facet is Facet.CONSTRAINTS,
                is_trusted=may_trust and _may_be_trusted(entry),
            )
        else:
            call_context.source.from_elsewhere()

    def keep_answer(
        self,
        key: bytes,
        method: str,
        render: Callable[[bytes], Reply],
        size_bytes: int,
        is_allowed: Callable[[], bool] | None = None,
    ) -> None:
        """Keeps the encoded reply of the call that this thread just answered, if it came from one entry that has not
        changed since.

        The call began with `call_context.begin`. `is_allowed`: whether the decision behind the answer is in force;
        called under the cache's lock, so that rights do not change in between.
        """
        source = call_context.source
        entry = source.entry
        if not isinstance(entry, Entry) or not source.is_pure:
            return
        if isinstance(entry.key, TableName) and not self.policy.names_table(entry.key):
            return  # a reload has excluded the table during the call: it must not be answered by its bytes
        try:
            with self._view:
                if is_allowed is not None and not is_allowed():
                    return
                if entry.version == source.version and self.cache.entry(entry.key) is entry:
                    table = entry.key if isinstance(entry.key, TableName) and not source.follows_other_tables else None
                    answer = Answer(method, source.kind, render, size_bytes, entry, table, is_trusted=source.is_trusted)
                    self.cache.answers.add(key, answer)
        except Exception as error:
            _log.fault("a reply could not be cached", error)  # P9: the reply is right anyway

    def wants_large_answer(self, key: bytes) -> bool:
        """Whether to keep the large reply of the call that this thread just answered; see `Answers.wants_large`."""
        if call_context.source.entry is None or not call_context.source.is_pure:
            return False
        with self._view:
            return self.cache.answers.wants_large(key)

    def pass_through(self, kind: str, from_store: Callable[[], T]) -> T:
        """A question that memory never answers."""
        return self._from_store(kind, Reason.UNSUPPORTED_FIELD if self.modes.enabled else Reason.DISABLED, from_store)

    def _may_trust(self, version: ReadVersion) -> bool:
        if not self.modes.trust_write_ids or version.table_id is None or call_context.serves_a_write:
            return False
        request = None if version.valid_write_ids is None else _parsed(version.valid_write_ids)
        return request is not None and not request.is_no_list

    def _trusted(
        self, from_memory: Callable[[SharedCache], Any], table: TableName | None, kind: str, facet: Facet
    ) -> Any:
        """Reads memory without a position check: only a transactional table whose tag covers the list may answer, and
        only while no read has shown more than memory contains (P3).

        None: it may not, or there is an error, which the ordinary path reports.
        """
        try:
            if not self.freshness.may_serve() or self.freshness.is_check_required():
                return None
            with self._view:
                entry = self.cache.tables.get(table) if table is not None else None
                if entry is None or not _may_be_trusted(entry) or self.cache.position < self.freshness.floor:
                    return None
                found = from_memory(self.cache)
                if isinstance(found, Need | Bypass):
                    return None
                entry.reads += 1
                call_context.source.from_entry(
                    entry, kind, follows_other_tables=facet is Facet.CONSTRAINTS, is_trusted=True
                )
                call_context.record_position(self.cache.applied_position)
                return found
        except Exception:
            return None

    def _decide(self, table: TableName | None, facet: Facet, need: Need, selects_all: bool) -> LoadDecision:
        """How to get what is missing, which may be more than the read asked for (P12)."""
        if not call_context.fills_cache or any(map(self._is_cooling_down, need.requested)):
            return LoadDecision.PASS_THROUGH
        if table is None or facet not in (Facet.PARTITIONS, Facet.PARTITION_STATISTICS):
            return LoadDecision.LOAD
        if selects_all:
            return LoadDecision.PASS_THROUGH if self.background.is_loading(table) else LoadDecision.LOAD
        try:
            return self.background.decide(table, need.requested, need.gaps)
        except DatabaseUnavailableError:
            raise
        except Exception as error:
            _log.fault("how large a table is could not be found out", error)
            return LoadDecision.PASS_THROUGH

    def _is_cooling_down(self, requested: LoadRequest) -> bool:
        """Whether these are lists of names that change too often to be worth loading."""
        is_of_names = requested.facet is Facet.TABLE_NAMES and isinstance(requested.key, DatabaseName)
        return is_of_names and not self.loader.name_list_cooldowns.is_over(cast(DatabaseName, requested.key))

    def _load(self, need: Need, facet: Facet, decision: LoadDecision) -> bool:
        requested = need.requested
        is_few = decision is LoadDecision.LOAD_FEW and facet is Facet.PARTITIONS
        if is_few and [one.facet for one in requested] == [Facet.TABLE]:
            # Its partitions are missing, too, and are loaded with it.
            requested = (*requested, LoadRequest(requested[0].key, Facet.PARTITIONS))
        try:
            with self.loader.limits.one_load(may_refuse=not call_context.serves_a_write):
                return self.loader.load(requested, is_few=is_few)
        except (DatabaseUnavailableError, LoadLimitReached):
            raise
        except Exception as error:
            # P9: the store answers, or reports the error in its own words.
            _log.fault("a load failed", error)
            return False

    def _from_store(self, kind: str, reason: Reason, from_store: Callable[[], T]) -> T:
        self._observe(kind, reason)
        call_context.source.from_elsewhere()
        call_context.record_position(None)
        try:
            answer = from_store()
        except DatabaseUnavailableError:
            raise  # no client has seen anything
        except Exception:
            self.freshness.require_check()
            raise
        self.freshness.require_check()
        return answer

    # Shared parts of reads from memory, under the lock

    def table_entry(self, cache: SharedCache, table: TableName, version: ReadVersion) -> Entry | Need | Bypass:
        """The entry of a table that may answer this request.

        Raises NoSuchObjectException, with the store's text, if complete names show that the table does not exist (P6).
        """
        entry = cache.tables.get(table)
        if entry is None or Facet.TABLE not in entry.facets:
            if entry is not None and Facet.EXCLUDED in entry.facets:
                return Bypass(Reason.EXCLUDED)
            if self.is_absent(cache, table):
                if _has_seen_table(version):
                    return Bypass(Reason.STALE_WRITE_IDS)
                raise NoSuchObjectException(f"{table.as_sent} table not found")
            return Need((LoadRequest(table, Facet.TABLE),))
        reason = self.version_test(entry, version)
        if reason is not None:
            return Bypass(reason)
        if call_context.fills_cache:
            cache.touch(entry, self.clock.monotonic_s())
        return entry

    def is_absent(self, cache: SharedCache, table: TableName) -> bool:
        """Whether complete names show that the table does not exist (P6)."""
        database = cache.databases.get(table.in_database)
        names = database.facets.get(Facet.TABLE_NAMES) if database is not None else None
        return names is not None and table.table not in names

    def version_test(self, entry: Entry, version: ReadVersion) -> Reason | None:
        """None if the entry may answer a request of this version, else the reason (P2). Raises MetaException:
        reject."""
        if version.table_id is not None and version.table_id != entry.table_id:
            return Reason.WRONG_TABLE_ID
        if version.valid_write_ids is None:
            return self._without_list(entry)
        request = _parsed(version.valid_write_ids)
        if request is None:
            return Reason.UNSUPPORTED_FIELD
        if request.is_no_list:
            return self._without_list(entry)
        assert isinstance(entry.key, TableName)
        if not request.is_for_table(f"{entry.key.database}.{entry.key.table}"):
            return Reason.STALE_WRITE_IDS
        if not entry.is_transactional:
            # Hive sends lists for external tables, too. They contain no write ids.
            return None if request.high_watermark == 0 else Reason.STALE_WRITE_IDS
        if entry.tag is None or not entry.tag.covers(request):
            return Reason.STALE_WRITE_IDS
        return None

    def _heal(self, table: TableName, version: ReadVersion) -> None:
        """If lists stay uncovered, drops the table, so that the next read loads it with its tag.

        An aborted write id that the cleaner has removed is in no list any more, but stays invalid in the tag, since no
        event reports it. A list that goes further than the tag only waits for its commit events. Each table is dropped
        at most once in `HEAL_INTERVAL_S`: a client may send lists that nothing covers.
        """
        request = _parsed(version.valid_write_ids) if version.valid_write_ids is not None else None
        with self._view:
            entry = self.cache.tables.get(table)
            if request is None or entry is None or entry.tag is None or entry.tag.covers(request):
                return
            if not request.is_for_table(f"{table.database}.{table.table}"):
                return
            if request.high_watermark > entry.tag.high_watermark:
                return
            entry.uncovered += 1
            if entry.uncovered >= HEAL_AFTER_READS:
                self.cache.forget_tag(table, self.clock.monotonic_s(), HEAL_INTERVAL_S)
                entry.uncovered = 0

    def _without_list(self, entry: Entry) -> Reason | None:
        if not entry.is_transactional or self.modes.without_write_ids == "check":
            return None
        if self.modes.without_write_ids == "reject":
            raise MetaException(
                f"The transactional table {'.'.join(entry.key)} was read without a ValidWriteIdList "
                "(setting cache.reads_without_write_ids = reject)"
            )
        return Reason.EXCLUDED


def _catalog_of(key: Key) -> str:
    return key if isinstance(key, str) else key.catalog


def _has_seen_table(version: ReadVersion) -> bool:
    """Whether the reader's snapshot contains a table of this name: then its absence in memory is no answer (P2)."""
    if version.table_id is not None:
        return True
    request = _parsed(version.valid_write_ids) if version.valid_write_ids is not None else None
    return request is not None and not request.is_no_list and request.high_watermark > 0


def _parsed(text: str) -> ValidWriteIdList | None:
    """The list; None if it cannot be read, which is left to the store."""
    try:
        return parsed_write_ids(text)
    except (IdListFormatError, ValueError):
        return None


def frozen_table(entry: Entry) -> Table:
    """The entry's table struct. Must not be changed."""
    table: Table = entry.facets[Facet.TABLE]
    return table


def _may_be_trusted(entry: Entry) -> bool:
    """Whether a request with a list that the entry covers may be answered without a position check, in the mode
    `trust`."""
    return entry.is_transactional and Facet.TABLE in entry.facets


__all__ = [
    "Bypass",
    "Key",
    "Need",
    "ReadModes",
    "ReadObserver",
    "Reading",
    "frozen_table",
]
