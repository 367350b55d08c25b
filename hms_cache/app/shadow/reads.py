"""Decides which calls are sent to both metastores, and which lists in answers have an order."""

from __future__ import annotations

from typing import Any, Final

from thrift.Thrift import TType

from hms_cache.wire import METHODS

_READS: Final = ("get_", "list_", "show_", "partition_name_", "isPartitionMarkedForEvent")

#: Methods whose names begin like those of reads, but which only the primary receives.
NOT_COMPARED: Final = frozenset(
    {
        # these change data
        "get_lock_materialization_rebuild",
        "get_lock_materialization_rebuild_req",
        "get_delegation_token",
        # these differ between any two moments or servers
        "get_config_value",
        "get_current_notificationEventId",
        "get_metastore_db_uuid",
        "get_next_notification",
        "get_notification_events_count",
        "get_open_txns",
        "get_open_txns_info",
        "get_open_txns_req",
        "get_runtime_stats",
        "show_compact",
        "show_locks",
        # these return secrets, which would appear in a report
        "get_master_keys",
        "get_token",
    }
)

#: Methods that return lists of columns, whose order matters. All other top-level lists are sets in Hive, whose direct
#: SQL and JDO return them in different orders (ObjectStore, 2.3 to 4.0).
_ORDERED: Final = ("get_fields", "get_schema", "partition_name_to_vals")


def is_compared(method: str) -> bool:
    """Whether a call of this method changes nothing, and two metastores should answer it alike."""
    return method.startswith(_READS) and method not in NOT_COMPARED


def has_order(method: str) -> bool:
    """Whether the order of the answer's top-level lists matters."""
    return method.startswith(_ORDERED)


def returns_wrapper(method: str) -> bool:
    """Whether the answer is a response object that contains the actual answer, as for the ``_req`` calls."""
    result_class = METHODS[method].result_class
    success = result_class.thrift_spec[0] if result_class is not None and result_class.thrift_spec else None
    if success is None or success[1] != TType.STRUCT:
        return False
    wrapper: str = success[3][0].__name__
    return wrapper.endswith(("Response", "Result", "Resp"))


def summary(arguments: Any, limit: int = 200) -> str:
    """Returns the arguments as a short text for users: ``dbname=shop, tbl_name=orders``."""
    parts = [f"{name}={value}" for name, value in _leaves(arguments)]
    text = ", ".join(parts)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _leaves(struct: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for field in struct.thrift_spec:
        value = None if field is None else getattr(struct, field[2], None)
        if field is None or value is None:
            continue
        if hasattr(value, "thrift_spec"):
            found += _leaves(value)
        elif isinstance(value, (list, set)) and len(value) > 3:
            found.append((field[2], f"{len(value)} values"))
        else:
            found.append((field[2], repr(value) if isinstance(value, bytes) else str(value)))
    return found
