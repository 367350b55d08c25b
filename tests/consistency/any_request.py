"""Random reads of the catalog with any of their fields, generated from the protocol's description."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from hms_cache.server.calls import Kind
from hms_cache.server.handlers.table import all_handlers
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from hms_cache.wire import METHODS
from tests.every_write.catalog import ACID, DATABASE, FLAT, MADE, OTHER_DATABASE, PARTITIONED, SOURCE, VIEW, Facts

NOT_OF_THE_CATALOG = frozenset(
    {
        *("find_package", "get_active_resource_plan", "get_all_packages", "get_all_resource_plans"),
        *("get_all_stored_procedures", "get_all_token_identifiers", "get_all_write_event_info"),
        *("get_current_notificationEventId", "get_dataconnector_req", "get_dataconnectors", "get_ischema"),
        *("get_latest_committed_compaction_info", "get_latest_txnid_in_conflict", "get_master_keys"),
        *("get_max_allocated_table_write_id", "get_metastore_db_uuid", "get_next_notification"),
        *("get_notification_events_count", "get_open_txns", "get_open_txns_info", "get_open_txns_req"),
        *("get_properties", "get_replayed_txns_for_policy", "get_replication_metrics", "get_resource_plan"),
        *("get_runtime_stats", "get_scheduled_query", "get_schema_all_versions", "get_schema_latest_version"),
        *("get_schema_version", "get_schemas_by_cols", "get_serde", "get_stored_procedure", "get_token"),
        *("get_triggers_for_resourceplan", "get_type", "get_valid_write_ids", "show_compact", "show_locks"),
        *("partition_name_has_valid_characters", "partition_name_to_spec", "partition_name_to_vals"),
        *("validate_resource_plan", "translate_table_dryrun", "get_principals_in_role", "get_role_names"),
        *("get_role_grants_for_principal", "list_roles"),
    }
)
"""Reads of what is never cached, and of which nothing that is cached is a part."""

_TABLES = (PARTITIONED, PARTITIONED, ACID, ACID, FLAT, SOURCE, VIEW, MADE, "Parts", " acid ", "absent", "")
_DATABASES = (DATABASE, DATABASE, DATABASE, DATABASE, "@hive#d", "D", OTHER_DATABASE, MADE, "absent", "@absent#d", "")
_CATALOGS = (None, None, "hive", "HIVE", "absent", "")
_PATTERNS = (None, "", "*", "d", "p*|m*", "*a*", "PARTS", ".*", "absent")
_FILTERS = ("", 'p = "1"', 'p > "1"', 'p like "1%"', 'p != "2" and p <= "9"', "p = 1", "q = 1", "p in ('1','2')", "p =")
_VALUES = ("1", "2", "3", "7", "8", "9", "", "01", "__HIVE_DEFAULT_PARTITION__")
_COLUMNS = ("a", "b", "A", "p", "absent", "changed")
_FIELDS = (
    "values",
    "sd.location",
    "parameters",
    "sd.cols.name",
    "sd.serdeInfo.name",
    "createTime",
    "tableName",
    "dbName",
)
_TABLE_FIELDS = ("tableName", "dbName", "sd.location", "parameters", "sd.cols.name", "partitionKeys", "owner", "id")
_CAPABILITIES = ("HIVEFULLACIDREAD", "EXTREAD", "EXTWRITE", "HIVECACHEINVALIDATE", "CONNECTORREAD", "x")
_TYPES = ("MANAGED_TABLE", "EXTERNAL_TABLE", "MATERIALIZED_VIEW", "VIRTUAL_VIEW", "")

_TEXTS: dict[str, Sequence[str | None]] = {
    **dict.fromkeys(("catname", "catalog", "catalogname"), _CATALOGS),
    **dict.fromkeys(("dbname", "database", "parentdbname", "foreigndbname"), _DATABASES),
    **dict.fromkeys(("tblname", "tablename", "table", "parenttblname", "foreigntblname"), _TABLES),
    **dict.fromkeys(("pattern", "tablespattern", "tablenamepattern", "dbpatterns", "tblpatterns"), _PATTERNS),
    **dict.fromkeys(("colname", "columnname"), _COLUMNS),
    **dict.fromkeys(("partname", "partitionname"), ("p=1", "p=2", "P=1", "p=7", "p=1/q=1", "q=1", "")),
    **dict.fromkeys(("username", "user"), ("u", "x", "")),
    **dict.fromkeys(("order", "orderbyclause"), ("1+", "1-", "0:-", "+", "-", "", "x")),
    **dict.fromkeys(("includeparamkeypattern", "excludeparamkeypattern"), ("k%", "%", "changed", "transient%", "")),
    "engine": ("hive", "impala", "Hive", ""),
    "defaultpartitionname": ("__HIVE_DEFAULT_PARTITION__", "1", ""),
    "funcname": ("f", "F", MADE, "absent"),
    "filter": _FILTERS,
    "name": (*_DATABASES, "f", "hive"),
    "tabletype": _TYPES,
    "validtxnlist": ("9:9223372036854775807::", ""),
}
_LISTS: dict[str, Sequence[str]] = {
    **dict.fromkeys(("partvals", "partvalues", "partitionvals"), _VALUES),
    **dict.fromkeys(("partnames", "partitionnames"), ("p=1", "p=2", "p=7", "P=1", "p=01", "absent", "")),
    **dict.fromkeys(("tblnames",), _TABLES),
    **dict.fromkeys(("colnames",), _COLUMNS),
    **dict.fromkeys(("groupnames",), ("g", "h")),
    **dict.fromkeys(("tbltypes",), _TYPES),
    **dict.fromkeys(("processorcapabilities",), _CAPABILITIES),
    **dict.fromkeys(("filters",), (*_FILTERS, "p=1", "1")),
}

_MOSTLY_SET = frozenset(
    {
        *("dbname", "db_name", "tblname", "tbl_name", "tablename", "table_name", "database", "name"),
        *("foreign_db_name", "foreign_tbl_name", "colnames", "partnames", "names", "partvals", "partvalues"),
        *("partitionkeys", "expr", "filter", "filterspec", "filtermode", "objecttype", "partitionreq"),
        "requestedfields",
    }
)
"""Fields, in lower case, without which a request is refused or asks for nothing; the others are set now and then."""


def read_methods() -> list[str]:
    """Those of the catalog."""
    found = {name for name, handler in all_handlers().items() if handler.kind is Kind.READ}
    assert found >= NOT_OF_THE_CATALOG
    return sorted(found - NOT_OF_THE_CATALOG)


class Requests:
    """Generates requests. Their names are those in the catalog of the `every_write` tests."""

    def __init__(self, chance: random.Random, facts: Facts) -> None:
        self._chance = chance
        self._methods = read_methods()
        self.ids = [table.id for table in facts.tables.values()]
        acid = f"{DATABASE}.{ACID}"
        self.lists = [
            *(f"{acid}:{high}:9223372036854775807::" for high in (0, 1, 2, 2, 2, 3, 5, 9)),
            *(f"{acid}:5:3:3,4:", f"{acid}:5:3:3:4", f"{acid}:8:3:3,4,5,6,7,8:", f"{DATABASE}.{FLAT}:0:0::"),
            *(f"{DATABASE}.{PARTITIONED}:0:9223372036854775807::", "", "no list"),
        ]

    def draw(self, method: str | None = None) -> tuple[str, Any]:
        """(method, its arguments)."""
        method = method or self._chance.choice(self._methods)
        while True:
            arguments = METHODS[method].args_class()
            self._fill(arguments, method, self._chance.choice([0.0, 0.15, 0.5]), is_argument=True)
            if _can_be_sent(arguments):
                return method, arguments

    def _fill(self, struct: Any, method: str, share: float, *, is_argument: bool = False) -> None:
        for field in filter(None, struct.thrift_spec):
            _, kind, name, of, default = field
            is_optional = not (is_argument or name.lower() in _MOSTLY_SET)
            if is_optional and self._chance.random() >= share:
                continue
            value = self._value(kind, name.lower().replace("_", ""), of, method, share)
            if value is not None or default is not None:
                setattr(struct, name, value)

    def _value(self, kind: int, name: str, of: Any, method: str, share: float) -> Any:
        choose = self._chance.choice
        if kind == TType.BOOL:
            return choose([True, False])
        if kind == TType.STRUCT:
            struct = of[0]()
            self._fill(struct, method, share)
            return struct
        if kind in (TType.LIST, TType.SET):
            return self._collection(name, of, method, share)
        if kind == TType.MAP:
            return choose([{}, {"k": "v"}])
        if kind in (TType.BYTE, TType.I16, TType.I32, TType.I64):
            if name in ("id", "tableid"):
                return choose([*self.ids, -1, 0])
            if name == "filtermode":
                return choose([0, 1, 2])
            if name == "requestedfields":
                return choose([0, 1, 2, 3])
            if name in ("ownertype", "objecttype"):
                return choose([1, 2, 3])
            return choose([-1, -1, 0, 1, 2, 100])
        if kind == TType.DOUBLE:
            return 1.5
        if name == "expr":
            return choose([text.encode() for text in _FILTERS])
        if name == "validwriteidlist":
            return choose(self.lists)
        if name == "name" and "aterializ" in method:
            return DATABASE
        if name in ("name", "dbname", "database") and self._chance.random() < 0.7:
            return self._usual(name, method)
        if name in ("tblname", "tablename") and self._chance.random() < 0.7:
            return choose((PARTITIONED, ACID, FLAT))
        return choose(_TEXTS.get(name, ("x", "")))

    def _usual(self, name: str, method: str) -> str:
        if name == "name" and "catalog" in method:
            return "hive"
        return DATABASE

    def _collection(self, name: str, of: Any, method: str, share: float) -> Any:
        count = self._chance.choice([0, 1, 1, 1, 2, 3])
        element = of[0]
        if name == "capabilities" or (name == "values" and element == TType.I32):
            return [self._chance.choice([1, 2]) for _ in range(count)]
        if element == TType.STRUCT:
            if of[1][0] is t.FieldSchema:
                return [t.FieldSchema(self._chance.choice(["p", "p", "P", "q"]), "string", None)]
            made = []
            for _ in range(count):
                made.append(of[1][0]())
                self._fill(made[-1], method, share)
            return made
        if element == TType.LIST:
            return []
        pool: Sequence[Any] = _LISTS.get(name, ("x",))
        if name == "fieldlist":
            pool = _TABLE_FIELDS if "table" in method else _FIELDS
        elif name == "names":
            pool = _LISTS["partnames"]
        elif name == "values":
            pool = _VALUES
        elif element != TType.STRING:
            pool = (1, 2)
        found = [self._chance.choice(pool) for _ in range(count)]
        if name in ("partvals", "partvalues") and self._chance.random() < 0.7:
            found = [self._chance.choice(pool)]
        return set(found) if name == "tablesused" else found


def _can_be_sent(arguments: Any) -> bool:
    try:
        arguments.write(TBinaryProtocolAccelerated(TMemoryBuffer()))
    except Exception:
        return False
    return True


def ask(connection: Any, method: str, arguments: Any) -> Any:
    """The server's answer to these arguments."""
    names = [field[2] for field in arguments.thrift_spec if field]
    return getattr(connection, method)(*(getattr(arguments, name) for name in names))
