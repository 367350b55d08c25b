"""Which events of the log a principal may see: those for which it may see all named objects."""

from __future__ import annotations

from collections.abc import Sequence

from hms_cache.authorization.decisions import AccessCheck, Action, Decisions, SecuredObject
from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_identifier
from hms_cache.metadata.object_names import TableName, table_name
from hms_cache.notifications import events as ev
from hms_cache.notifications import tjson
from hms_cache.notifications.message_reader import read_event
from hms_cache.notifications.messages import MessageError, decode_message
from hms_cache.thrift_gen.hive_metastore.ttypes import Table

Needed = tuple[AccessCheck, ...] | None
"""What must be allowed for an event to be shown. Empty: it is shown to everybody; None: to nobody."""

_OF_NO_OBJECT = frozenset({"server", "servicePrincipal", "timestamp", "txnid", "txnIds", "fromTxnId", "toTxnId"})
"""Fields of messages about transactions only; other fields name databases and tables."""

_TRANSACTIONS = (ev.TransactionsOpened, ev.TransactionCommitted, ev.TransactionAborted)


def access_checks_of(row: ev.NotificationRow) -> Needed:
    """What must be allowed for the event to be shown to a principal that is not a service."""
    read = read_event(row)
    if isinstance(read, ev.UndecodedEvent):
        return None
    if isinstance(read, _TRANSACTIONS):
        return () if _names_nothing(row) else None
    scope = read.scope
    if scope.everything or scope.all_transactions:
        return None
    tables = {*scope.tables, *scope.partitions}
    try:
        tables |= _sources_of_views(row)
    except (MessageError, tjson.TJsonError):
        return None
    if row.database and row.table:
        tables.add(table_name(row.catalog, row.database, row.table))
    databases = {(one[0], one[1]) for one in (*scope.databases, *scope.whole_databases, *scope.functions)}
    if row.database and not tables:
        databases.add((normalize_identifier(row.catalog or DEFAULT_CATALOG), normalize_identifier(row.database)))
    needed: list[AccessCheck] = [(Action.READ, SecuredObject(*one)) for one in sorted(tables)]
    needed += [(None, SecuredObject(*one)) for one in sorted(databases)]
    needed += [(None, SecuredObject(one)) for one in sorted({*scope.catalogs, *scope.whole_catalogs})]
    return tuple(needed) or None


_CREATION_METADATA = ('16":{"rec', '16\\":{\\"rec')
"""The beginning of the field `Table.creationMetadata` in a table's image, by itself and embedded in a message."""


def _sources_of_views(row: ev.NotificationRow) -> set[TableName]:
    """The tables from which materialized views in an event's message are built: the message contains these tables
    entirely.

    Raises MessageError, TJsonError.
    """
    text = row.message or ""
    if text.startswith("{") and not any(mark in text for mark in _CREATION_METADATA):
        return set()
    found = set()
    for image in decode_message(row.message, row.message_format).values():
        if not isinstance(image, str) or _CREATION_METADATA[0] not in image:
            continue
        metadata = tjson.read_struct(image, Table).creationMetadata
        if metadata is None:
            continue
        own = metadata.catName or row.catalog
        for full_name in metadata.tablesUsed or ():
            *marked, database, table = ["", *full_name.split(".")][-3:]
            found.add(table_name(next(filter(None, marked), own), database, table))
        for source in metadata.sourceTables or ():
            if source.table is not None:
                for catalog in {own, source.table.catName or own}:
                    found.add(table_name(catalog, source.table.dbName or "", source.table.tableName or ""))
    return found


def visible(decisions: Decisions, events: Sequence[Needed]) -> list[bool]:
    """Whether each event is visible, by its needs. Raises UndecidedError, and what the decisions raise."""
    decisions.prepare([one for needed in events for one in needed or ()])
    return [needed is not None and all(_is_granted(decisions, one) for one in needed) for needed in events]


def _is_granted(decisions: Decisions, check: AccessCheck) -> bool:
    action, of = check
    return decisions.show(of) if action is None else decisions.allow(action, of)


def _names_nothing(row: ev.NotificationRow) -> bool:
    if row.database or row.table:
        return False
    try:
        message = decode_message(row.message, row.message_format)
    except MessageError:
        return False
    return all(not value or name in _OF_NO_OBJECT for name, value in message.items())
