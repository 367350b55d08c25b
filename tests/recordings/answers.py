"""Compares the answers of two metastores to a recorded call; each exception from the comparison has a reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from thrift.Thrift import TApplicationException, TException

from hms_cache.wire import METHODS
from tests.differential.comparison import Call, Comparison, Outcome, plain
from tests.differential.reasons import MERGED, PREFIX, PROJECTION, is_equal_without
from tests.recordings.messages import EXCEPTION, ONEWAY, read_message
from tests.recordings.reconciled import FEWER_EVENTS, reconcile
from tests.recordings.recording import RecordedCall
from tests.recordings.spellings import body

_QUOTED = re.compile(r"(Partition\(values:\[[^\]]*\]).*", re.DOTALL)
"""Exceptions quote partitions whole: Java's have no time yet, ours have."""

Exemption = Callable[[str, Outcome, Outcome], bool]


def _is_owner_of_nobody(method: str, java: Outcome, ours: Outcome) -> bool:
    if method not in ("get_database", "get_database_req") or java.error or ours.error:
        return False
    return bool(ours.value == {**java.value, "ownerName": "anonymous"})


#: Why answers may differ, and whether these do: (method, Java's, ours). The rules in `tests.differential.reasons` are
#: not repeated here.
EXEMPTIONS: tuple[tuple[str, Exemption], ...] = (
    (
        "Java gives what is made by a client that has not said who it is to the account that the server runs as.",
        _is_owner_of_nobody,
    ),
    (
        "Java's database cannot evaluate LIKE beside a key that is no text, and then nothing of Java can; ours does.",
        lambda method, java, ours: (
            method in ("get_partitions_by_filter", "get_partitions_by_filter_req")
            and java.text.startswith("Filtering is supported only on partition keys")
        ),
    ),
    (
        "Later releases answer whether the drop is over; a client of 4.0.1 passes over the field.",
        lambda method, java, ours: (
            method in ("drop_table_req", "drop_database_req")
            and java == Outcome()
            and ours.value == {"id": "", "finished": True}
        ),
    ),
    (
        "Under the new name of a table Java holds statistics for valid that are older than its truncation.",
        lambda method, java, ours: (
            method == "get_table_req"
            and not java.error
            and java.value["table"]["tableName"] == "acid2"
            and is_equal_without(java, ours, "COLUMN_STATS_ACCURATE")
        ),
    ),
    (
        "Java leaves the table out of partitions that lie elsewhere, though it was asked for, and of what lists them.",
        lambda method, java, ours: (
            method == "get_partitions_with_specs" and is_equal_without(java, ours, "tableName", "rootPath")
        ),
    ),
    (
        MERGED,
        lambda method, java, ours: method == "set_aggr_stats_for" and (java.value, ours.value) == (False, True),
    ),
    (
        FEWER_EVENTS,
        lambda method, java, ours: (
            method in ("get_current_notificationEventId", "get_next_notification", "get_notification_events_count")
            and java.error == ours.error
        ),
    ),
    (
        f"{PREFIX} Java's text has it.",
        lambda method, java, ours: (
            bool(java.error) and java.error == ours.error and java.text.replace("@hive#", "") == ours.text
        ),
    ),
    (
        f"{PROJECTION} The type is that of a managed table for every table whose parameters were not asked for.",
        lambda method, java, ours: (
            method == "get_table_objects_by_name_req" and is_equal_without(java, ours, "tableType", "writeId")
        ),
    ),
)

#: Unordered lists: method to reason. Ids are not learnt from them.
UNORDERED: dict[str, str] = {
    **dict.fromkeys(
        ("get_all_tables", "get_tables", "get_tables_by_type", "get_databases", "get_all_databases", "get_table_meta"),
        "Java lists names as its database has them; ours are sorted.",
    ),
    **dict.fromkeys(("list_privileges", "get_privilege_set"), "Java lists grants as its database has them."),
    **dict.fromkeys(
        ("get_table_objects_by_name", "get_table_objects_by_name_req"),
        "Java lists tables as its database has them, not as they were asked for.",
    ),
}


def answer(reply: bytes) -> Any:
    """The result struct, or the exception that stands for it; None where there is none."""
    if not reply:
        return None
    message = read_message(reply)
    if message.kind == EXCEPTION:
        return body(reply, TApplicationException)
    return body(reply, METHODS[message.method].result)


def outcome(call: RecordedCall, found: Any, root: str) -> Outcome:
    """Returns the answer in plain values, without times, directories and ids of rows."""
    if found is None:
        return Outcome(error="" if call.message.kind == ONEWAY else "connection closed")
    if isinstance(found, TApplicationException):
        return Outcome(error=f"TApplicationException {found.type}", text=str(found.message))
    for entry in METHODS[call.method].result_table[1]:
        value = getattr(found, entry[2], None) if entry is not None else None
        if isinstance(value, TException):
            text = str(getattr(value, "message", value)).replace(root, "ROOT")
            return Outcome(error=type(value).__name__, text=_QUOTED.sub(r"\1", text))
    value = plain(getattr(found, "success", None), f"file:{root}")
    return Outcome(_sorted(value) if call.method in UNORDERED else value)


def difference(
    call: RecordedCall, arguments: Any, java: Any, ours: Any, our_root: str, java_root: str
) -> tuple[str, Counter[str]]:
    """Returns how the decoded answers differ, empty if they do not, and why they may differ."""
    reasons = Counter[str]()
    reconcile(java, ours, reasons)
    given = tuple(getattr(arguments, entry[2]) for entry in METHODS[call.method].args_table[1] if entry is not None)
    requested = Call(call.method, given, is_message_compared=True)
    comparison = Comparison(requested, outcome(call, java, java_root), outcome(call, ours, our_root))
    if comparison.is_equal:
        return "", reasons
    reason = comparison.reason
    for why, applies in EXEMPTIONS:
        reason = reason or (why if applies(call.method, comparison.java, comparison.ours) else "")
    if not reason:
        return str(comparison)[:3000], Counter()
    return "", reasons + Counter([reason])


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in value.items()}
    return sorted(value, key=repr) if isinstance(value, list) else value
