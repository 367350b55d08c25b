"""Settings of Hive's that change what the transaction store does, as one value. The defaults are Hive's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TxnOptions:
    """Behaviour of `TxnStore`; every field names the Hive setting it mirrors. All servers of a database must agree."""

    timeout_ms: int = 300_000
    """`metastore.txn.timeout`: a transaction or lock without a heartbeat for so long is aborted."""

    replication_timeout_ms: int = 11 * 86_400_000
    """`metastore.repl.txn.timeout`: the same for transactions that replication opened."""

    max_open_txns: int = 100_000
    """`metastore.max.open.txns`: with so many open a new one is refused, until 90 % of it are left."""

    max_open_batch: int = 1000
    """`metastore.txn.max.open.batch`: most transactions one call opens."""

    open_txn_timeout_ms: int = 1000
    """`metastore.txn.opentxn.timeout`: gaps in the ids younger than this count as open transactions."""

    open_count_interval_s: float = 1.0
    """`metastore.count.open.txns.interval`: how old the count of open transactions may be."""

    max_combined: int = 64
    """So many requests of one kind that wait at the same moment make one database transaction; 1: each has its own."""

    use_min_history_level: bool | None = None
    """`metastore.txn.use.minhistorylevel`: note for each open transaction the oldest one it saw open, which is what a
    Java cleaner waits for. None is Hive's default, true, except on SQLite, which no Java metastore can share."""

    use_min_history_write_id: bool = True
    """`metastore.txn.use.minhistorywriteid`: note the write ids that readers announce. Hive 4.0 has it off but sends
    the call; its rows let a cleaner go on while old transactions that read other tables are open."""

    materialization_lock_timeout_ms: int = 300_000
    """A materialized view's rebuild lock without a heartbeat for so long is given up (`metastore.txn.timeout`)."""

    max_failed_compactions: int = 2
    """`metastore.compactor.initiator.failed.compacts.threshold`: so many failures in a row and nothing is initiated."""

    failed_retry_ms: int = 7 * 86_400_000
    """`metastore.compactor.initiator.failed.retry.time`: after so long a table with failures is tried again."""

    aborted_txns_threshold: int = 1000
    """`hive.compactor.abortedtxn.threshold`: more aborted transactions than this on a table start a compaction."""

    aborted_txn_age_ms: int = 12 * 3_600_000
    """`hive.compactor.aborted.txn.time.threshold`: an aborted transaction older than this starts one, too."""

    worker_timeout_ms: int = 86_400_000
    """`hive.compactor.worker.timeout`: a compaction that works for longer goes back to the queue."""

    write_notification_retention_s: int = 86_400
    """`metastore.event.db.listener.timetolive`: how long a transaction's writes stay logged for replication."""

    delta_count_threshold: int = 10
    """`hive.compactor.delta.num.threshold`: so many writes since the last compaction start a minor one."""

    worker_pool_timeout_ms: int = 12 * 3_600_000
    """`metastore.compactor.worker.pool.timeout`: a request for a pool that waits longer may go to any worker."""

    compaction_history_failed: int = 3
    """`metastore.compactor.history.retention.failed`: failed compactions kept per table or partition."""

    compaction_history_succeeded: int = 3
    """`metastore.compactor.history.retention.succeeded`."""

    compaction_history_did_not_initiate: int = 2
    """`metastore.compactor.history.retention.did.not.initiate`."""

    compaction_history_refused: int = 3
    """Refused and aborted compactions kept; Hive has no setting of its own for refused ones."""
