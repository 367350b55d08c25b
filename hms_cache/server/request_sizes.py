"""How many elements the lists of some requests may have: those of which each costs more than its bytes.

A list in general may be as long as its message. These become rows that are written under a lock that others wait for,
parameters of one statement, or statements of their own. They are counted before anything else is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hms_cache.input_limits import exceeded, input_limits
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CreationMetadata,
    HiveObjectRef,
    MetaException,
    NotificationEventRequest,
    PrivilegeBag,
)


def _grants(bag: PrivilegeBag | None) -> int:
    """One element may name several privileges: `select,insert`."""
    some = bag.privileges or () if bag is not None else ()
    return sum(1 + str(getattr(one.grantInfo, "privilege", "")).count(",") for one in some)


def _objects_of_grants(bag: PrivilegeBag | None) -> int:
    """Those that are spelled in different ways count as several."""
    some = bag.privileges or () if bag is not None else ()
    return len({_object_of_grants(one.hiveObject) for one in some})


def _object_of_grants(reference: HiveObjectRef) -> tuple[Any, ...]:
    """Without its column: what is granted on the columns of a table takes as many statements as on one of them."""
    names = reference.catName, reference.dbName, reference.objectName
    return (*names, reference.objectType, tuple(reference.partValues or ()))


def _names_of_events(request: NotificationEventRequest) -> int:
    """The longest of the lists that select events."""
    return max(len(some or ()) for some in (request.tableNames, request.eventTypeList, request.eventTypeSkipList))


def _sources(of: CreationMetadata | None) -> int:
    """Tables that a materialized view is made from. Two fields name them, of clients of 3.1 and of 4."""
    return max(len(of.tablesUsed or ()), len(of.sourceTables or ())) if of is not None else 0


_Count = Callable[[Any], int]


def _limits() -> dict[str, int]:
    """Those in force, by the name of the setting."""
    limits = input_limits()
    return {
        "lock_components": limits.lock_components,
        "request_transactions": limits.request_transactions,
        "request_tables": limits.request_tables,
        "request_grants": limits.request_grants,
        "request_grant_objects": limits.request_grant_objects,
        "request_metrics": limits.request_metrics,
    }


_COUNTS: Final[Mapping[str, tuple[str, _Count]]] = {
    "lock": ("lock_components", lambda a: len(a.rqst.component or ())),
    "abort_txns": ("request_transactions", lambda a: len(a.rqst.txn_ids or ())),
    "abort_Compactions": ("request_transactions", lambda a: len(a.rqst.compactionIds or ())),
    "allocate_table_write_ids": (
        "request_transactions",
        lambda a: max(len(a.rqst.txnIds or ()), len(a.rqst.srcTxnToWriteIdList or ())),
    ),
    "open_txns": ("request_transactions", lambda a: len(a.rqst.replSrcTxnIds or ())),
    "get_valid_write_ids": ("request_tables", lambda a: len(a.rqst.fullTableNames or ())),
    "add_write_ids_to_min_history": ("request_tables", lambda a: len(a.writeIds or ())),
    "get_materialization_invalidation_info": ("request_tables", lambda a: _sources(a.creation_metadata)),
    "update_creation_metadata": ("request_tables", lambda a: _sources(a.creation_metadata)),
    **dict.fromkeys(
        ("create_table", "create_table_with_environment_context", "create_table_with_constraints"),
        ("request_tables", lambda a: _sources(a.tbl.creationMetadata)),
    ),
    **dict.fromkeys(
        ("create_table_req", "translate_table_dryrun"),
        ("request_tables", lambda a: _sources(a.request.table.creationMetadata)),
    ),
    **dict.fromkeys(
        ("alter_table", "alter_table_with_cascade", "alter_table_with_environment_context"),
        ("request_tables", lambda a: _sources(a.new_tbl.creationMetadata)),
    ),
    "alter_table_req": ("request_tables", lambda a: _sources(a.req.table.creationMetadata)),
    "update_table_params": ("request_tables", lambda a: len(a.updates or ())),
    "add_write_notification_log_in_batch": ("request_tables", lambda a: len(a.rqst.requestList or ())),
    "commit_txn": ("request_tables", lambda a: len(a.rqst.writeEventInfos or ())),
    "get_next_notification": ("request_tables", lambda a: _names_of_events(a.rqst)),
    "get_notification_events_count": ("request_tables", lambda a: len(a.rqst.tableNames or ())),
    "grant_privileges": ("request_grants", lambda a: _grants(a.privileges)),
    "revoke_privileges": ("request_grants", lambda a: _grants(a.privileges)),
    "grant_revoke_privileges": ("request_grants", lambda a: _grants(a.request.privileges)),
    "refresh_privileges": ("request_grants", lambda a: _grants(a.grantRequest.privileges)),
    "add_replication_metrics": (
        "request_metrics",
        lambda a: len(a.replicationMetricList.replicationMetricList or ()),
    ),
}


_ALSO_COUNTED: Final[Mapping[str, tuple[str, _Count]]] = {
    "grant_privileges": ("request_grant_objects", lambda a: _objects_of_grants(a.privileges)),
    "revoke_privileges": ("request_grant_objects", lambda a: _objects_of_grants(a.privileges)),
    "grant_revoke_privileges": ("request_grant_objects", lambda a: _objects_of_grants(a.request.privileges)),
    "refresh_privileges": ("request_grant_objects", lambda a: _objects_of_grants(a.grantRequest.privileges)),
}
"""What else costs more than its bytes in the same requests."""


def check_request_size(method: str, arguments: Any) -> None:
    """Raises MetaException, which names the setting, for more elements than the method's limits let in."""
    for counted in (_COUNTS.get(method), _ALSO_COUNTED.get(method)):
        if counted is not None:
            _check(method, arguments, *counted)


def _check(method: str, arguments: Any, limit: str, count: _Count) -> None:
    try:
        found = count(arguments)
    except (AttributeError, TypeError):
        return  # something required is missing: the handler says what
    most = _limits()[limit]
    if found > most:
        raise MetaException(f"{method} has {found} elements, and may have {most} ({exceeded(limit)})")
