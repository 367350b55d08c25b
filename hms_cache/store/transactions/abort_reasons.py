"""Why a transaction was aborted: Hive's error codes, and the text that TXNS stores for each (Hive 4.0
`TxnErrorMsg`)."""

from __future__ import annotations

ABORTED_BY_WRITE_CONFLICT = 50003
ABORTED_BY_TIME_OUT = 50004
ABORTED_BY_ROLLBACK = 50005
ABORTED_BY_REPLICATION_ITSELF = 51000
ABORTED_AS_REPLAYED = 51001
ABORTED_AS_REPLICATED_WRITE_ID = 51002

_TEXTS = {
    50000: "none",
    50001: "abort by query command",
    50002: "concurrent committed transaction",
    ABORTED_BY_WRITE_CONFLICT: "write conflicts",
    ABORTED_BY_TIME_OUT: "heartbeat time-out",
    ABORTED_BY_ROLLBACK: "rollback",
    50006: "compaction transaction abort",
    50007: "msck transaction abort",
    50008: "managed migration transaction abort",
    ABORTED_BY_REPLICATION_ITSELF: "Replication:default replication transaction abort",
    ABORTED_AS_REPLAYED: "Replication:replayed replication transaction abort",
    ABORTED_AS_REPLICATED_WRITE_ID: (
        "Replication:abort of allocated txns for referring mapped write ids as aborted ones"
    ),
    51003: "Replication:abort of txns while trying to fetch failover metadata",
    51004: "Replication:abort of write txns for the db under replication",
    51005: "Replication:abort of ongoing txns(opened prior to failover) for the target database",
}


def reason_text(error_code: int | None) -> str:
    """The text for TXN_META_INFO. Clients before 4.0 send no code; newer ones may send codes that are unknown here."""
    return _TEXTS.get(error_code or 50000, _TEXTS[50000])
