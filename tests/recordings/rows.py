"""Makes the contents of two databases comparable: keys from the database are replaced by names of what they
identify."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, inspect, text

from hms_cache.store.rows.parameters import COLUMN_STATS_ACCURATE
from hms_cache.store.schema import METADATA
from tests.recordings.reconciled import FEWER_EVENTS, MADE_UP_NAME

Rows = dict[str, list[str]]

#: Tables that are not compared, and why.
NOT_COMPARED = {
    **dict.fromkeys(
        ("SEQUENCE_TABLE", "NUCLEUS_TABLES", "NOTIFICATION_SEQUENCE", "NEXT_LOCK_ID", "NEXT_COMPACTION_QUEUE_ID"),
        "Where the next ids come from: the ids themselves are compared.",
    ),
    **dict.fromkeys(("VERSION", "AUX_TABLE", "TXN_LOCK_TBL"), "Of the installation: no call changes them."),
    "CDS": "Which descriptors share their columns: the columns of each are compared.",
    "NOTIFICATION_LOG": "Java's listener in the tests logs fewer kinds; `tests/differential` compares the log.",
    "RUNTIME_STATS": "Java's own task deletes them by their age.",
}
#: Columns that are not compared, and why: (table or *, column).
_TIMES = "The moment of the call."
_KEYS = "A key that the database gives; nothing refers to it, or what refers to it is compared by names."
COLUMNS_NOT_COMPARED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("CREATE_TIME", "ADD_TIME", "LAST_ANALYZED", "EVENT_TIME", "MATERIALIZATION_TIME", "CREATED_AT"),
            *("TXN_STARTED", "TXN_LAST_HEARTBEAT", "HL_LAST_HEARTBEAT", "HL_ACQUIRED_AT", "MRL_LAST_HEARTBEAT"),
            *("CTC_TIMESTAMP", "CQ_ENQUEUE_TIME", "CQ_START", "CQ_COMMIT_TIME", "CQ_CLEANER_START", "WNL_EVENT_TIME"),
            *("CC_ENQUEUE_TIME", "CC_START", "CC_END", "CC_COMMIT_TIME", "LAST_ACCESS_TIME"),
        ),
        _TIMES,
    ),
    **dict.fromkeys(
        (
            *("CS_ID", "DB_GRANT_ID", "TBL_GRANT_ID", "TBL_COLUMN_GRANT_ID", "PART_GRANT_ID", "USER_GRANT_ID"),
            *("PART_COLUMN_GRANT_ID", "ROLE_GRANT_ID", "STRING_LIST_ID", "STRING_LIST_ID_EID", "STRING_LIST_ID_KID"),
            *("CTLG_ID", "PART_NAME_ID", "DC_GRANT_ID"),
        ),
        _KEYS,
    ),
    **dict.fromkeys(("TXN_HEARTBEAT_COUNT", "HL_HEARTBEAT_COUNT"), "Not shown to clients other than by `show_locks`."),
    **dict.fromkeys(("CD_ID", "CHILD_CD_ID", "PARENT_CD_ID"), "The columns of each descriptor are compared."),
    **dict.fromkeys(
        ("NUM_DISTINCTS", "BIT_VECTOR"), "Java merges without bit vectors; the answers' numbers are compared."
    ),
    **dict.fromkeys(
        ("TXN_AGENT_INFO", "TXN_META_INFO"), "Ours keeps by which agent a transaction was opened; Java does not."
    ),
    "HISTOGRAM": "Java writes an empty one where there is none, ours nothing; no recorded client sends any.",
    "MHL_MIN_OPEN_TXNID": "It depends on which transactions are older than a second.",
    "CQ_INITIATOR_VERSION": "The release of the metastore.",
    "CC_INITIATOR_VERSION": "The release of the metastore.",
}
#: Values of parameters that are not compared, and why.
VALUES_NOT_COMPARED = {"transient_lastDdlTime": _TIMES, "repl.target.last.id": FEWER_EVENTS}
KEYS_NOT_COMPARED = {"serialization.format"}
"""Of SerDes: Java answers without it for transactional tables, and keeps it when a client alters it away by that."""
_LISTS = ("SKEWED_STRING_LIST", "SKEWED_STRING_LIST_VALUES")
_USERS_OF_LISTS = {"SKEWED_VALUES": "STRING_LIST_ID_EID", "SKEWED_COL_VALUE_LOC_MAP": "STRING_LIST_ID_KID"}
_WRONG_STATISTICS = ("hive.d3.acid2", "hive.d1.ex2/p=1")
"""Of which Java holds statistics valid: the table's that it had under its old name, before it was truncated, and the
partition's that an exchange deleted."""
_AT_NEW_LOCATION = ("hive.d1.e/y=2022/m=5",)
"""Partitions whose statistics Java holds valid at their new location. There, ours counts the files, and holds none
valid."""
_PARAMETERS_OF = {"TABLE_PARAMS": "TBL_ID", "PARTITION_PARAMS": "PART_ID"}
_NO_WRITE_ID = "'WRITE_ID': 0}"
_NEXT_TXN_ID = re.compile(r"(?<='C[CQ]_NEXT_TXN_ID': )\d+")
_WRITE_ID = re.compile(r"'WRITE_ID': \d+\}$")


def rows(engine: Engine, root: str) -> Rows:
    """Table to its rows as texts, sorted."""
    content: dict[str, list[dict[str, Any]]] = {}
    with engine.connect() as connection:
        there = {name.upper(): name for name in inspect(connection).get_table_names()}
        quote = connection.dialect.identifier_preparer.quote
        for name in METADATA.tables:
            if name not in NOT_COMPARED and name in there:
                found = connection.execute(text(f"SELECT * FROM {quote(there[name])}")).mappings()
                content[name] = [{key.upper(): value for key, value in row.items()} for row in found]
    content["SERDE_PARAMS"] = [row for row in content["SERDE_PARAMS"] if row["PARAM_KEY"] not in KEYS_NOT_COMPARED]
    names = _names(content)
    content["PARTITION_PARAMS"] = [
        row
        for row in content["PARTITION_PARAMS"]
        if row["PARAM_KEY"] != COLUMN_STATS_ACCURATE or names["PART_ID"].get(row["PART_ID"]) not in _AT_NEW_LOCATION
    ]
    used = {row[column] for table, column in _USERS_OF_LISTS.items() for row in content[table]}
    for table in _LISTS:  # Java leaves those of dropped tables behind
        content[table] = [row for row in content[table] if row["STRING_LIST_ID"] in used]
    content["COLUMNS_V2"] = _columns_of_each(content["SDS"], content["COLUMNS_V2"])
    return {
        table: sorted(repr(_comparable(table, row, names, root)) for row in found) for table, found in content.items()
    }


def differences(java: Rows, ours: Rows) -> list[str]:
    """A line for each table that differs."""
    lines = []
    ours = {
        **ours,
        "PARTITIONS": _without_forgotten_write_ids(java["PARTITIONS"], ours["PARTITIONS"]),
        **{
            table: [_with_last_txn_ids(row) for row in ours[table]]
            for table in ("COMPACTION_QUEUE", "COMPLETED_COMPACTIONS")
        },
    }
    for table in java:
        if java[table] != ours[table]:
            only = [
                [row for row in one if one.count(row) > other.count(row)]
                for one, other in ((java[table], ours[table]), (ours[table], java[table]))
            ]
            lines.append(f"{table}: only java ({len(only[0])}) {only[0][:3]}, only ours ({len(only[1])}) {only[1][:3]}")
    return lines


def _with_last_txn_ids(row: str) -> str:
    """Java 4.0.1 waits for transactions below the last id at the commit of a compaction, ours for that one, too: it may
    have been opened before the commit, and reads the files that the cleaner deletes."""
    return _NEXT_TXN_ID.sub(lambda found: str(int(found.group()) - 1), row)


def _without_forgotten_write_ids(java: list[str], ours: list[str]) -> list[str]:
    """Java drops the write id with which a partition is added until the partition is altered."""
    forgotten = {row for row in java if row.endswith(_NO_WRITE_ID)}
    forgetful = [_WRITE_ID.sub(_NO_WRITE_ID, row) for row in ours]
    return sorted(one if one in forgotten else row for one, row in zip(forgetful, ours, strict=True))


def _names(content: dict[str, list[dict[str, Any]]]) -> dict[str, dict[Any, str]]:
    """Column to key to a name."""
    databases = {row["DB_ID"]: f"{row['CTLG_NAME']}.{row['NAME']}" for row in content["DBS"]}
    tables = {row["TBL_ID"]: f"{databases[row['DB_ID']]}.{row['TBL_NAME']}" for row in content["TBLS"]}
    partitions = {row["PART_ID"]: f"{tables[row['TBL_ID']]}/{row['PART_NAME']}" for row in content["PARTITIONS"]}
    owners = {row["SD_ID"]: tables[row["TBL_ID"]] for row in content["TBLS"]}
    owners |= {row["SD_ID"]: partitions[row["PART_ID"]] for row in content["PARTITIONS"]}
    serdes: dict[Any, str] = {}
    for row in content["SDS"]:
        serdes[row["SERDE_ID"]] = owners.get(row["SD_ID"], "nobody")
    functions = {row["FUNC_ID"]: f"{databases[row['DB_ID']]}.{row['FUNC_NAME']}" for row in content["FUNCS"]}
    views = {
        row["MV_CREATION_METADATA_ID"]: f"{row['CAT_NAME']}.{row['DB_NAME']}.{row['TBL_NAME']}"
        for row in content["MV_CREATION_METADATA"]
    }
    return {
        "DB_ID": databases,
        **dict.fromkeys(("TBL_ID", "CHILD_TBL_ID", "PARENT_TBL_ID"), tables),
        "PART_ID": partitions,
        **dict.fromkeys(("SD_ID", "SD_ID_OID"), owners),
        "SERDE_ID": serdes,
        "FUNC_ID": functions,
        "ROLE_ID": {row["ROLE_ID"]: row["ROLE_NAME"] for row in content["ROLES"]},
        "MV_CREATION_METADATA_ID": views,
    }


def _columns_of_each(descriptors: list[dict[str, Any]], columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The columns with the descriptor instead of the key that it may share; -1 for unreferenced ones."""
    by_id: dict[Any, list[dict[str, Any]]] = {}
    for row in columns:
        by_id.setdefault(row["CD_ID"], []).append({key: value for key, value in row.items() if key != "CD_ID"})
    used = {row["CD_ID"] for row in descriptors}
    found = [{**column, "SD_ID": row["SD_ID"]} for row in descriptors for column in by_id.get(row["CD_ID"], ())]
    return found + [{**column, "SD_ID": -1} for key, rows in by_id.items() if key not in used for column in rows]


def _comparable(table: str, row: dict[str, Any], names: dict[str, dict[Any, str]], root: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for column, value in sorted(row.items()):
        if column in COLUMNS_NOT_COMPARED:
            continue
        if column in names:
            value = names[column].get(value, "nobody" if value else value)
        elif column == "PARAM_VALUE" and row.get("PARAM_KEY") in VALUES_NOT_COMPARED:
            value = "there"
        elif column == "PARAM_VALUE" and row["PARAM_KEY"] == COLUMN_STATS_ACCURATE and table in _PARAMETERS_OF:
            key = _PARAMETERS_OF[table]
            value = "there" if names[key].get(row[key]) in _WRONG_STATISTICS else value
        elif column == "CONSTRAINT_NAME":
            value = MADE_UP_NAME.sub(r"\1…", str(value))
        elif isinstance(value, str):
            value = value.replace(root, "ROOT")
        elif isinstance(value, bytes | bytearray):
            value = bytes(value).replace(root.encode(), b"ROOT")
        found[column] = value
    return found
