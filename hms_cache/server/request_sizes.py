"""Limits on the number of elements in the lists of some requests, whose elements cost more than their bytes.

In general, a list may be as long as its message. The elements counted here become rows written under a lock that others
wait for, parameters of one statement, or separate statements. They are counted before anything else is done.
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
    PrincipalPrivilegeSet,
    PrivilegeBag,
)


def _grants(bag: PrivilegeBag | None) -> int:
    """One element may name several privileges: `select,insert`."""
    some = bag.privileges or () if bag is not None else ()
    return sum(1 + str(getattr(one.grantInfo, "privilege", "")).count(",") for one in some)


def _objects_of_grants(bag: PrivilegeBag | None) -> int:
    """Names with different spellings count separately."""
    some = bag.privileges or () if bag is not None else ()
    return len({_object_of_grants(one.hiveObject) for one in some})


def _object_of_grants(reference: HiveObjectRef) -> tuple[Any, ...]:
    """Without the column: privileges on the columns of a table take as many statements as those on one column."""
    names = reference.catName, reference.dbName, reference.objectName
    return (*names, reference.objectType, tuple(reference.partValues or ()))


def _names_of_events(request: NotificationEventRequest) -> int:
    """The length of the longest list that selects events."""
    return max(len(some or ()) for some in (request.tableNames, request.eventTypeList, request.eventTypeSkipList))


def _sources(of: CreationMetadata | None) -> int:
    """Source tables of a materialized view. There are two fields, of clients of Hive 3.1 and of Hive 4."""
    return max(len(of.tablesUsed or ()), len(of.sourceTables or ())) if of is not None else 0


def _granted_with(of: PrincipalPrivilegeSet | None) -> int:
    """Privileges that come with a new table."""
    kinds = (of.userPrivileges, of.groupPrivileges, of.rolePrivileges) if of is not None else ()
    return sum(len(infos) for grants in kinds for infos in (grants or {}).values())


_Count = Callable[[Any], int]


def _limits() -> dict[str, int]:
    """The limits in force, by name of the setting."""
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
    **dict.fromkeys(
        ("create_table", "create_table_with_environment_context", "create_table_with_constraints"),
        ("request_grants", lambda a: _granted_with(a.tbl.privileges)),
    ),
    "create_table_req": ("request_grants", lambda a: _granted_with(a.request.table.privileges)),
    "grant_privileges": ("request_grant_objects", lambda a: _objects_of_grants(a.privileges)),
    "revoke_privileges": ("request_grant_objects", lambda a: _objects_of_grants(a.privileges)),
    "grant_revoke_privileges": ("request_grant_objects", lambda a: _objects_of_grants(a.request.privileges)),
    "refresh_privileges": ("request_grant_objects", lambda a: _objects_of_grants(a.grantRequest.privileges)),
}
"""Other parts of these requests that cost more than their bytes."""


def check_request_size(method: str, arguments: Any) -> None:
    """Raises MetaException, naming the setting, if there are more elements than the limits of the method allow."""
    for counted in (_COUNTS.get(method), _ALSO_COUNTED.get(method)):
        if counted is not None:
            _check(method, arguments, *counted)


def _check(method: str, arguments: Any, limit: str, count: _Count) -> None:
    try:
        found = count(arguments)
    except (AttributeError, TypeError):
        return  # a required field is missing: the handler reports it
    most = _limits()[limit]
    if found > most:
        raise MetaException(f"{method} has {found} elements, and may have {most} ({exceeded(limit)})")
