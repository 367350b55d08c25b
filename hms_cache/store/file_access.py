"""Determines which directories a transaction may change, and which of them belong to others.

Allowed are the warehouse, `warehouse.allowed_locations`, and the directories of databases. A database may be created at
any place where nothing exists yet; this server then creates the directory, and it counts as allowed from then on. A
client cannot extend that to existing files: a database that is created where something exists is marked
(`LOCATION_LEFT_ALONE`) and allows nothing. A database outside the allowed locations without a mark is older than this
rule or was created by another metastore.

The metadata of an object may name any location of an allowed scheme. At a location that is not allowed, this server
does not create, list, move or delete files, and refuses what must not be done in part (TRUNCATE, an exchange of
partitions). `docs/security.md` has the table.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, exists, func, select, union_all

from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.direct_statements import DirectQuery
from hms_cache.store.engine.features import SchemaFeatures
from hms_cache.store.engine.read_plans import PlannedQuery, fetch_together
from hms_cache.store.rows.database_rows import LOCATION_LEFT_ALONE, MANAGED_LOCATION_LEFT_ALONE
from hms_cache.store.schema import DATABASE_PARAMS, DBS
from hms_cache.store.warehouse import AllowedLocation, Location, Warehouse
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

_LOG = logging.getLogger(__name__)


class FileAccess:
    """Checks the locations of one transaction, with at most one statement. Belongs to the transaction's thread."""

    def __init__(self, context: StoreContext, connection: Connection) -> None:
        self._warehouse = context.warehouse
        self._connection = connection
        self._declared: tuple[Location, ...] | None = None
        self._checked: dict[Location, AllowedLocation | None] = {}

    def check_all(self, locations: Iterable[Location]) -> None:
        """Checks many locations at once, for later calls of `allow`: their file systems are asked in parallel."""
        requested = [location for location in dict.fromkeys(locations) if location not in self._checked]
        if not requested:
            return
        found = self._warehouse.allow_all(requested)
        others = [
            index
            for index, each in enumerate(found)
            if each is None and self._warehouse.may_be_declared(requested[index])
        ]
        if others:
            again = self._warehouse.allow_all([requested[index] for index in others], self.declared())
            for index, each in zip(others, again, strict=True):
                found[index] = each
        self._checked.update(zip(requested, found, strict=True))

    def allow_texts_by_names(self, texts: Iterable[str]) -> list[AllowedLocation | None]:
        """Like `allow_text` for each text, but decided by names only: no file system is asked.

        For deletions after the commit, which check symbolic links themselves, without holding any database lock.
        """
        parsed = [self._parsed(text) for text in texts]
        requested = list(dict.fromkeys(each for each in parsed if each is not None))
        found = dict(zip(requested, self._warehouse.allow_by_names(requested), strict=True))
        others = [each for each in requested if found[each] is None and self._warehouse.may_be_declared(each)]
        if others:
            found.update(zip(others, self._warehouse.allow_by_names(others, self.declared()), strict=True))
        return [None if each is None else found[each] for each in parsed]

    def check_texts(self, texts: Iterable[str | None]) -> None:
        """Like `check_all`, for locations as stored."""
        self.check_all(location for text in texts if (location := self._parsed(text)) is not None)

    def allow(self, location: Location) -> AllowedLocation | None:
        """The location for file operations; None if its files must be left alone."""
        self.check_all([location])
        return self._checked[location]

    def allow_making(self, location: Location) -> AllowedLocation | None:
        """The directory to create for a new table or partition; None if none is created.

        Also outside the allowed locations if nothing exists there yet: clients that write to an external table expect
        its directory (Spark fails with PATH_NOT_FOUND). Files that appear there later are neither listed nor deleted.
        Raises MetaException.
        """
        return self.allow_making_all([location])[0]

    def allow_making_all(self, locations: Sequence[Location]) -> list[AllowedLocation | None]:
        """Like `allow_making`, for many locations at once: their file systems are asked in parallel."""
        self.check_all(locations)
        found = [self._checked[location] for location in locations]
        others = [index for index, each in enumerate(found) if each is None]
        if others:
            claimed = self._warehouse.claim_all([locations[index] for index in others])
            for index, each in zip(others, claimed, strict=True):
                found[index] = each
        return found

    def allow_text(self, text: str | None) -> AllowedLocation | None:
        """Like `allow`, for a location as stored; None also if it cannot be parsed."""
        location = self._parsed(text)
        return None if location is None else self.allow(location)

    def vacant(self, texts: Iterable[str | None]) -> list[AllowedLocation | None]:
        """The locations outside the allowed ones at which nothing exists yet, for which only that may be disclosed.
        None for all others. The file systems are asked in parallel. Raises MetaException."""
        parsed = [self._parsed(text) for text in texts]
        requested = list(dict.fromkeys(each for each in parsed if each is not None))
        found = dict(zip(requested, self._warehouse.claim_all(requested), strict=True))
        return [None if each is None else found[each] for each in parsed]

    def _parsed(self, text: str | None) -> Location | None:
        try:
            return self._warehouse.location(text) if text else None
        except MetaException:
            return None

    def allow_deletion(self, location: Location) -> AllowedLocation | None:
        """Like `allow`, but None for a directory that the configuration names itself: it contains files of other
        owners."""
        found = self.allow(location)
        if found is None or found.is_below_root:
            return found
        if location.is_root or self._warehouse.allow(location) is not None:
            return None
        # The directory of a database outside the warehouse is a root only because of that database.
        return AllowedLocation(location, (location.parent,))

    def declare(self, location: Location, what: str) -> AllowedLocation | None:
        """The directory to create for a new database or catalog; None if files are left alone.

        Outside the allowed locations, only a directory that is absent or empty. To be called before the database's rows
        are written. Raises MetaException for a scheme that is not allowed.
        """
        if not self._warehouse.manages_files:
            return None
        self._warehouse.require_known_scheme(location)
        found = self.allow(location) or self._warehouse.claim(location)
        if found is None:
            _LOG.warning(
                "%s is put at %s, which is %s and not an empty directory: files there and below are left alone",
                what,
                location,
                OUTSIDE,
            )
        return found

    def declared(self) -> tuple[Location, ...]:
        """The locations of databases that are allowed because of these databases, as of the first call in this
        transaction.

        A catalog's location is that of its default database, unless the catalog was altered: then it allows nothing.
        """
        if self._declared is None:
            self._declared = declared_locations(self._connection, self._warehouse)
        return self._declared


def declared_locations(connection: Connection, warehouse: Warehouse) -> tuple[Location, ...]:
    """The locations that are allowed because databases lie there, sorted. One statement."""
    [rows] = fetch_together(connection, [PlannedQuery(_declared_query(features_of(connection)), {})])
    locations = []
    for text in {row[0] for row in rows} - {None, ""}:
        try:
            locations.append(warehouse.location(text))
        except MetaException:
            continue  # an invalid location, written by another program
    return tuple(sorted(locations, key=str))


@lru_cache(maxsize=4)
def _declared_query(features: SchemaFeatures) -> DirectQuery:
    """Cached, since each `alter_table` of a table outside the warehouse runs it."""

    def of(column: ColumnElement[str], mark: str) -> Select[Any]:
        is_marked = exists().where(DATABASE_PARAMS.c.DB_ID == DBS.c.DB_ID, DATABASE_PARAMS.c.PARAM_KEY == mark)
        # The location of a remote database is not checked: this server has no files of it.
        return select(column).where(~is_marked, func.coalesce(features.column(DBS.c.TYPE), "NATIVE") != "REMOTE")

    return DirectQuery(
        union_all(
            of(DBS.c.DB_LOCATION_URI, LOCATION_LEFT_ALONE),
            of(features.column(DBS.c.DB_MANAGED_LOCATION_URI), MANAGED_LOCATION_LEFT_ALONE),
        )
    )


def log_files_kept(what: str, locations: Sequence[Location | str], reason: str) -> None:
    """Logs that an object was dropped whose files were not deleted."""
    if locations:
        others = f" and {len(locations) - 1} more" if len(locations) > 1 else ""
        _LOG.warning("%s: the files at %s%s stay: %s", what, locations[0], others, reason)


OUTSIDE = "outside of the warehouse and warehouse.allowed_locations"
