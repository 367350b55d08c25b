"""Transactions, locks and the compaction queue."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from hms_cache.config.quantities import Seconds, WholeMilliseconds
from hms_cache.config.setting import Section, setting


class TransactionSettings(Section):
    """Transactions, write ids and locks."""

    timeout_s: Seconds = setting(
        300.0,
        "A transaction or lock without a heartbeat for so long is aborted.",
        reason="Hive's default.",
        site_keys=("metastore.txn.timeout", "hive.txn.timeout"),
        gt=0,
    )
    replication_timeout_s: Seconds = setting(
        11 * 86400.0,
        "The same for transactions that replication opened.",
        reason="Hive's default: longer than its event retention for replication.",
        site_keys=("metastore.repl.txn.timeout", "hive.repl.txn.timeout"),
        gt=0,
    )
    housekeeping_interval_s: Seconds = setting(
        60.0,
        "How often transactions and locks that timed out, and rows nobody needs any more, are looked for.",
        reason="Hive's default for its housekeeper.",
        site_keys=("metastore.acid.housekeeper.interval", "hive.metastore.acid.housekeeper.interval"),
        gt=0,
    )
    max_open: int = setting(
        100_000,
        "With so many open transactions a new one is refused.",
        unit="transactions",
        reason="Hive's default.",
        site_keys=("metastore.max.open.txns", "hive.max.open.txns"),
        ge=1,
    )
    max_open_batch: int = setting(
        1000,
        "Most transactions opened by one call; a request for more gets so many.",
        unit="transactions",
        reason="Hive's default.",
        site_keys=("metastore.txn.max.open.batch", "hive.txn.max.open.batch"),
        ge=1,
    )
    max_combined: int = setting(
        64,
        "So many calls of one kind (open_txns; allocate_table_write_ids; commit_txn; heartbeat; lock, check_lock and"
        " unlock) that wait at the same moment make one database transaction; 1: each call has its own.",
        unit="calls",
        reason="Row locks are held until the last of them is done: 64 take some 20 ms.",
        ge=1,
        le=1000,
    )
    open_timeout_ms: WholeMilliseconds = setting(
        1000,
        "How long opening a transaction may take; gaps in the ids younger than this count as open.",
        reason="Hive's default; every server of one database must agree on it.",
        site_keys=("metastore.txn.opentxn.timeout", "hive.txn.opentxn.timeout"),
        gt=0,
    )
    open_count_interval_s: Seconds = setting(
        1.0,
        "How old the count of open transactions that max_open is compared with may be.",
        reason="Hive's default.",
        site_keys=("metastore.count.open.txns.interval", "hive.count.open.txns.interval"),
        ge=0,
    )
    min_history_level: Literal["auto", "on", "off"] = setting(
        "auto",
        "Note for each open transaction the oldest one it saw open, which a Java cleaner waits for."
        " auto: unless on SQLite.",
        site_keys=("metastore.txn.use.minhistorylevel", "hive.txn.use.minhistorylevel"),
    )
    min_history_write_id: bool = setting(
        True,
        "Note the write ids that readers announce, so that a cleaner need not wait for readers of other tables.",
        reason="Hive 4.0 has it off but its clients send the call.",
        site_keys=("metastore.txn.use.minhistorywriteid", "hive.txn.use.minhistorywriteid"),
    )

    @field_validator("min_history_level", mode="before")
    @classmethod
    def _yes_or_no(cls, value: object) -> object:
        """Site files say true and false."""
        return {"true": "on", "false": "off"}.get(value.strip().lower(), value) if isinstance(value, str) else value


class CompactionSettings(Section):
    """The queue of compactions. The workers are Hive's or somebody else's: this server keeps the queue."""

    initiator: bool = setting(
        False,
        "Look for tables that need a compaction and ask for it. Workers elsewhere take it from the queue.",
        reason="Hive's default; one server of a set is enough.",
        site_keys=("metastore.compactor.initiator.on", "hive.compactor.initiator.on"),
    )
    delta_count_threshold: int = setting(
        10,
        "So many writes since the last compaction make a table a candidate for a minor one.",
        unit="writes",
        reason="Hive's default.",
        site_keys=("hive.compactor.delta.num.threshold",),
        ge=1,
    )
    worker_pool_timeout_s: Seconds = setting(
        12 * 3600.0,
        "A request for a pool of workers that waits longer may go to any worker.",
        reason="Hive's default.",
        site_keys=("metastore.compactor.worker.pool.timeout", "hive.compactor.worker.pool.timeout"),
        gt=0,
    )
    max_failed: int = setting(
        2,
        "After so many failures in a row nothing is initiated for a table.",
        unit="compactions",
        reason="Hive's default.",
        site_keys=(
            "metastore.compactor.initiator.failed.compacts.threshold",
            "hive.compactor.initiator.failed.compacts.threshold",
        ),
        ge=1,
        le=20,
    )
    failed_retry_s: Seconds = setting(
        7 * 86400.0,
        "After so long a table with failures is tried again.",
        reason="Hive's default.",
        site_keys=("metastore.compactor.initiator.failed.retry.time", "hive.compactor.initiator.failed.retry.time"),
        gt=0,
    )
    aborted_transactions_threshold: int = setting(
        1000,
        "More aborted transactions than this on a table make it a candidate.",
        unit="transactions",
        reason="Hive's default.",
        site_keys=("hive.compactor.abortedtxn.threshold",),
        ge=0,
    )
    aborted_transaction_age_s: Seconds = setting(
        12 * 3600.0,
        "An aborted transaction older than this makes its table a candidate, too.",
        reason="Hive's default.",
        site_keys=("hive.compactor.aborted.txn.time.threshold",),
        gt=0,
    )
    worker_timeout_s: Seconds = setting(
        86400.0,
        "A compaction that has been worked on for longer goes back to the queue.",
        reason="Hive's default.",
        site_keys=("hive.compactor.worker.timeout",),
        gt=0,
    )
    history_failed: int = setting(
        3,
        "Failed compactions kept for a table or partition.",
        unit="compactions",
        reason="Hive's default.",
        site_keys=("metastore.compactor.history.retention.failed", "hive.compactor.history.retention.failed"),
        ge=0,
    )
    history_succeeded: int = setting(
        3,
        "Compactions that succeeded kept for a table or partition.",
        unit="compactions",
        reason="Hive's default.",
        site_keys=("metastore.compactor.history.retention.succeeded", "hive.compactor.history.retention.succeeded"),
        ge=0,
    )
    history_did_not_initiate: int = setting(
        2,
        "Compactions that could not be initiated kept for a table or partition.",
        unit="compactions",
        reason="Hive's default.",
        site_keys=(
            "metastore.compactor.history.retention.did.not.initiate",
            "hive.compactor.history.retention.did.not.initiate",
        ),
        ge=0,
    )
    history_refused: int = setting(
        3,
        "Refused and aborted compactions kept for a table or partition.",
        unit="compactions",
        reason="Hive's default.",
        site_keys=("metastore.compactor.history.retention.refused", "hive.compactor.history.retention.refused"),
        ge=0,
    )
