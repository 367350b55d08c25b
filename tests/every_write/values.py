"""Other values for the fields of a request: each field in turn, at any depth."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from thrift.Thrift import TType

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import CATALOG, partition, table
from tests.every_write.catalog import DATABASE, FLAT, KEYS, MADE, PARTITIONED, POLICY, Facts, function, statistics

DEEPEST = 6
"""Structs and lists inside each other: further in there is nothing that the ways of a write depend on."""

_NUMBERS = (TType.BYTE, TType.I16, TType.I32, TType.I64)

_PARAMETERS: tuple[dict[str, str], ...] = (
    {"k": "v"},
    {"hms_cache.sync": "false"},
    {"impala.disableHmsSync": "true"},
    {"transactional": "true"},
    {"EXTERNAL": "TRUE"},
    {"repl.last.id": "77"},
    {"_metakey": "v"},
)

_CONTEXTS: tuple[dict[str, str], ...] = (
    {"CASCADE": "true"},
    {"DO_NOT_UPDATE_STATS": "true"},
    {"STATS_GENERATED": "TASK"},
    {"alterTableOpType": "ADDCOLS"},
    {"ifPurge": "TRUE"},
    {"txnId": "1"},
    {"expected_parameter_key": "comment", "expected_parameter_value": "c"},
)


class Values:
    """Generates values for fields, by their names if these have a meaning."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._texts: dict[str, str] = {
            **dict.fromkeys(("catname", "cat_name", "catalog", "catalogname"), CATALOG),
            **dict.fromkeys(("dbname", "db_name", "databasename", "database", "db", "table_db"), DATABASE),
            **dict.fromkeys(("tablename", "tbl_name", "tblname", "table", "table_name"), PARTITIONED),
            **dict.fromkeys(("part_name", "partname", "partitionname", "partition"), "p=1"),
            **dict.fromkeys(("validwriteidlist", "validwriteids"), facts.valid_write_ids),
            **dict.fromkeys(("locationuri", "managedlocationuri", "location"), "file:/elsewhere/x"),
            **dict.fromkeys(("colname", "col_name", "column_name"), "a"),
            "replpolicy": POLICY,
            "engine": "impala",
        }
        self._numbers: dict[str, int] = {
            **dict.fromkeys(("writeid", "writeidid"), facts.write_ids[0]),
            **dict.fromkeys(("txnid", "txn_id"), facts.open_txns[0]),
            "tableid": facts.tables[PARTITIONED].id,
            "lockid": facts.lock_id,
            "lastreplid": 88,
        }

    def others(self, field: Any, current: Any) -> list[Any]:
        """Values for a field of a struct (an entry of its `thrift_spec`) other than the current one."""
        _, kind, name, of, _ = field
        found = self._of_kind(kind, str(name).lower(), of, current)
        return [one for one in found if one != current]

    def _of_kind(self, kind: int, name: str, of: Any, current: Any) -> list[Any]:
        if kind == TType.BOOL:
            return [not current] if current is not None else [True]
        if kind in _NUMBERS:
            return [self._numbers[name]] if name in self._numbers else [1 if current is None else current + 1]
        if kind == TType.DOUBLE:
            return [1.5]
        if kind == TType.STRING:
            if of == "BINARY":
                return [b"x"]
            known = self._texts.get(name)
            return [known if known is not None and known != current else f"{current or ''}x"]
        if kind == TType.MAP:
            return self._maps(name, of, current)
        if kind in (TType.LIST, TType.SET):
            return self._collections(kind, name, of, current)
        assert kind == TType.STRUCT
        return self._structs(of[0]) if current is None else []

    def _maps(self, name: str, of: Any, current: Any) -> list[Any]:
        if of[0] != TType.STRING or of[2] != TType.STRING:
            return [{}]
        base = dict(current or {})
        if name in ("parameters", "params", "tblparams"):
            return [{**base, **each} for each in _PARAMETERS] + ([{}] if base else [])
        return [{**base, "k": "v"}]

    def _collections(self, kind: int, name: str, of: Any, current: Any) -> list[Any]:
        if current:
            return [type(current)()]
        element = of[0]
        if element == TType.STRUCT:
            return [[one] for one in self._structs(of[1][0])]
        if name in ("partnames", "part_names", "partitionnames", "partitionlist", "names"):
            return [["p=1"]]
        if name in ("partvals", "part_vals", "partitionvals", "partitionval", "values"):
            return [["1"]]
        if name in ("txnids", "txn_ids"):
            return [list(self._facts.open_txns)]
        value = {TType.STRING: "a", TType.I64: 1, TType.I32: 1}.get(element)
        return [] if value is None else [{value} if kind == TType.SET else [value]]

    def _structs(self, kind: Any) -> list[Any]:
        if kind is ttypes.EnvironmentContext:
            return [kind(dict(properties)) for properties in _CONTEXTS]
        return [self.sample(kind)]

    def sample(self, kind: Any, depth: int = 0) -> Any:
        """A struct of this class as a client may send it."""
        made = _SAMPLES.get(kind)
        if made is not None:
            return made(self._facts)
        struct = kind()
        for field in filter(None, kind.thrift_spec):
            if getattr(struct, field[2]) is not None:
                continue
            if field[1] == TType.STRUCT and depth < 3:
                setattr(struct, field[2], self.sample(field[3][0], depth + 1))
            elif field[1] not in (TType.STRUCT, TType.LIST, TType.SET) or field[3][0] != TType.STRUCT:
                found = self._of_kind(field[1], str(field[2]).lower(), field[3], None)
                setattr(struct, field[2], found[0] if found else None)
        return struct

    def variations(self, arguments: Any) -> Iterator[tuple[str, Any]]:
        """(path of the field, the arguments with another value in it), one field at a time."""
        for path, field, current in _fields(arguments, (), 0):
            for number, value in enumerate(self.others(field, current)):
                varied = copy.deepcopy(arguments)
                owner = varied
                for step in path[:-1]:
                    owner = owner[step] if isinstance(step, int) else getattr(owner, step)
                setattr(owner, path[-1], value)
                shown = ".".join(map(str, path))
                yield (f"{shown}#{number}" if number else shown), varied


def _fields(struct: Any, path: tuple[Any, ...], depth: int) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    if depth > DEEPEST:
        return
    for field in filter(None, struct.thrift_spec):
        current, here = getattr(struct, field[2]), (*path, field[2])
        yield here, field, current
        if hasattr(current, "thrift_spec"):
            yield from _fields(current, here, depth + 1)
        elif isinstance(current, list) and current and hasattr(current[0], "thrift_spec"):
            yield from _fields(current[0], (*here, 0), depth + 1)


def _constraint(kind: Any, prefix: str, **more: Any) -> Any:
    return lambda facts: kind(
        **{
            "table_db": DATABASE,
            "table_name": PARTITIONED,
            "column_name": "b",
            f"{prefix}_name": f"{prefix}1",
            "enable_cstr": True,
            "validate_cstr": False,
            "rely_cstr": True,
            **more,
        }
    )


_SAMPLES: dict[Any, Any] = {
    ttypes.Database: lambda facts: ttypes.Database(name=MADE, description="m", parameters={"k": "v"}),
    ttypes.Table: lambda facts: table(DATABASE, MADE, KEYS),
    ttypes.Partition: lambda facts: partition(facts.table(PARTITIONED), ("7",), k="v"),
    ttypes.Function: lambda facts: function(MADE),
    ttypes.ColumnStatistics: lambda facts: statistics(FLAT, maximum=50),
    ttypes.ReplLastIdInfo: lambda facts: ttypes.ReplLastIdInfo(
        DATABASE, 88, table=PARTITIONED, partitionList=["p=1", "p=2"]
    ),
    ttypes.CommitTxnKeyValue: lambda facts: ttypes.CommitTxnKeyValue(
        tableId=facts.tables[PARTITIONED].id, key="_meta", value="v"
    ),
    ttypes.SQLPrimaryKey: _constraint(ttypes.SQLPrimaryKey, "pk", table_name=FLAT, key_seq=1),
    ttypes.SQLUniqueConstraint: _constraint(ttypes.SQLUniqueConstraint, "uk", key_seq=1),
    ttypes.SQLNotNullConstraint: _constraint(ttypes.SQLNotNullConstraint, "nn"),
    ttypes.SQLDefaultConstraint: _constraint(ttypes.SQLDefaultConstraint, "dc", default_value="1"),
    ttypes.SQLCheckConstraint: _constraint(ttypes.SQLCheckConstraint, "dc", check_expression="b > 1"),
    ttypes.SQLForeignKey: lambda facts: ttypes.SQLForeignKey(
        pktable_db=DATABASE,
        pktable_name=PARTITIONED,
        pkcolumn_name="a",
        fktable_db=DATABASE,
        fktable_name=FLAT,
        fkcolumn_name="a",
        key_seq=1,
        update_rule=0,
        delete_rule=0,
        fk_name="fk",
        pk_name="pk",
        enable_cstr=True,
        validate_cstr=False,
        rely_cstr=True,
    ),
    ttypes.HiveObjectPrivilege: lambda facts: ttypes.HiveObjectPrivilege(
        ttypes.HiveObjectRef(ttypes.HiveObjectType.TABLE, DATABASE, FLAT),
        "u",
        ttypes.PrincipalType.USER,
        ttypes.PrivilegeGrantInfo("SELECT", 1, "g", ttypes.PrincipalType.USER, False),
        "SQL",
    ),
}
