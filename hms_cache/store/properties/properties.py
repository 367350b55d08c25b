"""`Properties`: maps of properties, one row each. Facts: `HMSPropertyManager`, `PropertyManager`, `JdoPropertyStore`.

A property's full name has parts separated by dots: one part (name) for the metastore's properties, two (database, name)
for a database's, three or more (database, table, name) for a table's. Each database or table has one map, stored under
``hms.<database>.<table>``. Hive accepts only names that a Java plugin has declared with their types (and none without a
plugin); here any name may be used, and every value is text.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.store.engine.context import PartOfStore
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.listing import limited, listed
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.properties.selection import SelectionError, matches, parse_expression, project
from hms_cache.store.properties.serialized_maps import read_map, write_map
from hms_cache.store.schema import METASTORE_DB_PROPERTIES
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, NoSuchObjectException

NAMESPACE = "hms"
"""The only namespace that Hive's own property manager serves."""

_SCHEMAS = ("cluster", "database", "table")
_UNESCAPED_DOT = re.compile(r"(?<!\\)\.")

_ROWS = METASTORE_DB_PROPERTIES.c


class Properties(PartOfStore):
    """Reads and writes of property maps. Thread-safe; each method is one transaction."""

    def set(self, namespace: str, properties: Mapping[str, str]) -> None:
        """Sets properties by their full names; others are not changed.

        :raises NoSuchObjectException: no such namespace.
        :raises MetaException: a name or value is too long, or a map contains values that are not text.
        """
        self._require(namespace)
        requested: dict[str, dict[str, str]] = {}
        for full_name, value in properties.items():
            key, name = _place(full_name)
            requested.setdefault(key, {})[name] = value

        def work(transaction: WriteTransaction) -> None:
            # In sorted order, so that two calls that change the same maps cannot deadlock.
            for key in sorted(requested):
                self._save(transaction.connection, key, requested[key])

        if requested:
            run_write(self._database, work)

    def get(
        self, namespace: str, prefix: str | None, predicate: str | None, selection: Sequence[str] | None
    ) -> dict[str, dict[str, str]]:
        """Maps by name, of those whose names begin with `prefix` and that match `predicate` (None: all).

        :param selection: names of the properties to return, or map literals; None or empty: all.
        :raises NoSuchObjectException: no such namespace.
        :raises MetaException: the predicate cannot be parsed or evaluated.
        """
        self._require(namespace)
        start = f"{NAMESPACE}.{prefix}" if prefix else NAMESPACE
        found = run_read(self._database, lambda connection: _read_maps(connection, start))
        answer: dict[str, dict[str, str]] = {}
        try:
            expression = None if predicate is None else parse_expression(predicate)
            for key, properties in found:
                if expression is not None and not matches(expression, properties):
                    continue
                seen = project(list(selection), properties) if selection else properties
                if seen:
                    answer[key.partition(".")[2] or key] = dict(sorted(seen.items()))
        except SelectionError as error:
            raise MetaException(f"The predicate of get_properties: {error}") from error
        return answer

    def _require(self, namespace: str) -> None:
        if namespace != NAMESPACE:
            raise NoSuchObjectException(f"no PropertyManager namespace is declared, namespace {namespace}")
        if not self._database.features.has(_ROWS.PROPERTYCONTENT):
            raise MetaException(f"The metastore schema {self._database.features.version} cannot keep properties")

    def _save(self, connection: Connection, key: str, changes: Mapping[str, str]) -> None:
        is_it = _ROWS.PROPERTY_KEY == key
        known = select(_ROWS.PROPERTY_KEY, _ROWS.PROPERTYCONTENT).where(is_it)
        row = connection.execute(known.with_for_update()).first()
        if row is not None and row.PROPERTY_KEY != key:
            raise MetaException(f"The database takes the names {key} and {row.PROPERTY_KEY} for the same")
        before = {} if row is None or row.PROPERTYCONTENT is None else _content(key, row.PROPERTYCONTENT)
        after = {**before, **changes}
        try:
            content = write_map(_SCHEMAS[min(key.count("."), len(_SCHEMAS) - 1)], after)
        except ValueError as error:
            raise MetaException(f"The properties of {key}: {error}") from error
        now_s = self._context.clock.epoch_s()
        timestamp = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now_s))}.{int(now_s * 1000) % 1000:03d}"
        values = {
            # Hive compares it to find out whether a map has changed.
            "PROPERTY_VALUE": str(uuid.uuid5(uuid.NAMESPACE_OID, content.hex())),
            "PROPERTYCONTENT": content,
            "DESCRIPTION": f"Metastore property {'created' if row is None else 'updated'} {timestamp}",
        }
        values = features_of(connection).writable(METASTORE_DB_PROPERTIES, values)
        if row is not None:
            connection.execute(update(METASTORE_DB_PROPERTIES).where(is_it).values(values))
            return
        try:
            connection.execute(insert(METASTORE_DB_PROPERTIES).values(PROPERTY_KEY=key, **values))
        except IntegrityError as error:
            raise RetryableConflict(f"somebody else wrote the properties of {key}") from error


def _place(full_name: str) -> tuple[str, str]:
    """Key of the map, and the property's name in it."""
    parts = _UNESCAPED_DOT.split(full_name)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    above = len(_SCHEMAS)
    key = ".".join([NAMESPACE, *parts[: min(above, len(parts) - 1)]])
    return key, parts[-1] if len(parts) <= above else ".".join(parts[above:])


def _content(key: str, content: bytes) -> dict[str, str]:
    try:
        return read_map(bytes(content))
    except ValueError as error:
        raise MetaException(f"The properties of {key} cannot be read: {error}") from error


def _read_maps(connection: Connection, start: str) -> list[tuple[str, dict[str, str]]]:
    statement = (
        select(_ROWS.PROPERTY_KEY, _ROWS.PROPERTYCONTENT)
        .where(_ROWS.PROPERTY_KEY.startswith(start, autoescape=True), _ROWS.PROPERTYCONTENT.is_not(None))
        .order_by(_ROWS.PROPERTY_KEY)
    )
    rows = listed(connection.execute(limited(statement)).all(), "maps of properties")
    # SQLite compares case-insensitively, and other programs store rows of their own in this table.
    mine = (row for row in rows if row.PROPERTY_KEY.startswith(start) and row.PROPERTY_KEY.split(".")[0] == NAMESPACE)
    return [(row.PROPERTY_KEY, _content(row.PROPERTY_KEY, row.PROPERTYCONTENT)) for row in mine]
