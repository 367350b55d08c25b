"""Every method of the protocol is in the table of authorization, and every field that may name something is judged."""

from __future__ import annotations

from collections import Counter
from typing import Any

from thrift.Thrift import TType

from hms_cache.server.authorization.answers import EMPTY, FILTERS
from hms_cache.server.authorization.objects import (
    CATALOGS,
    DATABASES,
    NAMED,
    PAIRS,
    QUALIFIED,
    REFERENCED,
    TABLES,
)
from hms_cache.server.authorization.rules import _METHODS, RULES, RuleKind
from hms_cache.server.handlers.table import all_handlers
from hms_cache.wire import METHODS

NAMING_WORDS = ("db", "database", "table", "tbl", "cat", "name")

OF_NO_OBJECT = frozenset(
    {
        # columns, constraints, partitions, functions and what stands beside the catalog
        *("colName", "colNames", "colNamespace", "col_name", "col_names", "columnName", "column_name", "fk_name"),
        "index_name",
        *("fkcolumn_name", "nn_name", "pk_name", "pkcolumn_name", "uk_name", "constraintname", "partName", "partNames"),
        *("part_name", "part_names", "partitionName", "partitionname", "partitionnames", "partname", "funcName"),
        *("functionName", "className", "clusterNamespace", "nameSpace", "connectorName", "connector_name"),
        *("dataConnectorName", "names", "ownerName", "packageName", "poolName", "poolname", "procName", "roleName"),
        *("role_name", "resourcePlanName", "scheduleName", "schemaName", "serdeName", "triggerName", "entityName"),
        *("principalName", "principal_name", "policyName", "userName", "user_name", "groupNames", "group_names"),
        *("hostName", "hostname", "defaultPartitionName", "skewedColNames", "dc_name", "remote_dbname"),
        "renewer_kerberos_principal_name",
        # patterns: the answers are filtered
        *("db_patterns", "tbl_patterns", "tbl_types", "tableNamePattern", "tablesPattern", "tableType"),
        # of methods that need the right of a service or of an administrator, or grants of one's own
        *("objectName", "tableNames", "bucketCols"),
        # judged by the guard itself
        "tablesUsed",
        *("location", "tableObj", "mapPredicate"),
        "locationUri",
        "managedLocationUri",
    }
)
"""Fields of requests whose names sound as if they named a catalog, database or table, and that do not."""


def texts(kind: type[Any], seen: set[type[Any]]) -> set[tuple[str, str]]:
    """(struct, field) of all texts that a struct can hold."""
    if kind in seen:
        return set()
    seen.add(kind)
    found: set[tuple[str, str]] = set()
    for field in filter(None, kind.thrift_spec):
        type_, arguments = field[1], field[3]
        while type_ in (TType.LIST, TType.SET) and arguments:
            type_, arguments = arguments[0], arguments[1]
        if type_ == TType.STRUCT:
            found |= texts(arguments[0], seen)
        elif type_ == TType.STRING:
            found.add((kind.__name__, field[2]))
    return found


def test_every_method_has_one_rule() -> None:
    assert set(RULES) == set(all_handlers())
    counted = Counter(name for _, names in _METHODS for name in names.split())
    assert [name for name, times in counted.items() if times > 1] == []


def test_every_list_is_filtered() -> None:
    filtered = {name for name, rule in RULES.items() if rule.kind is RuleKind.FILTERED}
    assert filtered <= set(FILTERS)
    assert set(EMPTY) <= filtered
    for name in filtered:
        assert RULES[name].actions, name


def test_every_field_that_may_name_an_object_is_judged() -> None:
    seen: set[type[Any]] = set()
    found = set().union(*(texts(METHODS[name].args_class, seen) for name in RULES))
    pairs = {name for pair in (*PAIRS, REFERENCED) for name in pair}
    judged = CATALOGS | DATABASES | TABLES | QUALIFIED | pairs | OF_NO_OBJECT
    unknown = {
        (struct, field)
        for struct, field in found
        if field != "name" and field not in judged and any(word in field.lower() for word in NAMING_WORDS)
    }
    assert unknown == set()
    plain = {struct for struct, field in found if field == "name"} - {struct for struct, _ in NAMED}
    assert plain == {
        *("AppendPartitionsRequest", "DataConnector", "FieldSchema", "ISchema", "SerDeInfo", "StoredProcedure"),
        *("Type", "WMNullableResourcePlan", "WMResourcePlan", "alter_dataconnector_args", "drop_dataconnector_args"),
        *("get_config_value_args", "get_type_args", "get_type_all_args"),
    } | {struct for struct in plain if struct in ("SchemaVersion", "GetDataConnectorRequest")}


def test_what_only_services_call_needs_their_right() -> None:
    words = ("token", "master_key", "notification", "fire_listener", "compact", "replay", "repl_", "cm_recycle")
    own = {
        *("compact", "compact2", "get_latest_committed_compaction_info", "abort_Compactions", "show_compact"),
        *("add_write_notification_log", "add_write_notification_log_in_batch"),
        # Of the log, each sees what it may see.
        *("get_next_notification", "get_current_notificationEventId"),
        # Who may have a token, and for whom, is asked of Kerberos and of the rules for proxy users.
        *("get_delegation_token", "renew_delegation_token", "cancel_delegation_token"),
    }
    for name, rule in RULES.items():
        if any(word in name for word in words) and name not in own:
            assert rule.kind is RuleKind.METASTORE and [action.value for action in rule.actions] == ["service"], name
