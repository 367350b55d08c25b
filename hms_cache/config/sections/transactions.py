"""Transactions, locks and the compaction queue."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import field_validator

from hms_cache.config.quantities import Seconds, WholeMilliseconds, unless_negative
from hms_cache.config.setting import Section, hive_setting, metastore_keys, setting

_ZERO = re.compile(r"0+\s*[A-Za-z]*")


def _unless_zero(text: str) -> str:
    """Like `unless_negative`, for a time that zero also disables."""
    return "inf" if _ZERO.fullmatch(text.strip()) else unless_negative(text)


class TransactionSettings(Section):
    """Transactions, write ids and locks."""

    timeout_s: Seconds = hive_setting(300.0, "txn.timeout", before="hive.", gt=0)
    """A transaction or lock that has sent no heartbeat for this long is aborted."""
    replication_timeout_s: Seconds = setting(
        11 * 86400.0,
        reason="Hive's default: longer than its event retention for replication.",
        site_keys=metastore_keys("repl.txn.timeout", before="hive."),
        gt=0,
    )
    """The time-out of transactions that replication opened."""
    housekeeping_interval_s: Seconds = setting(
        60.0, reason="Hive's default for its housekeeper.", site_keys=metastore_keys("acid.housekeeper.interval"), gt=0
    )
    """Time between two runs of the housekeeper, which aborts transactions and locks that timed out, and deletes rows
    that are no longer needed. inf: this server does not run it. Another server of the database must: otherwise locks
    of clients that are gone are never released, and rows accumulate."""
    max_open: int = hive_setting(100_000, "max.open.txns", before="hive.", unit="transactions", ge=1)
    """Maximum number of open transactions. Above it, a request to open another one is refused."""
    max_open_batch: int = hive_setting(1000, "txn.max.open.batch", before="hive.", unit="transactions", ge=1)
    """Maximum number of transactions that one call opens. A request for more gets this many."""
    max_combined: int = setting(
        64, unit="calls", reason="Row locks are held until the last call is done: 64 take some 20 ms.", ge=1, le=1000
    )
    """Maximum number of waiting calls of the same kind that are combined into one database transaction. The kinds are
    open_txns, allocate_table_write_ids and commit_txn together; lock, check_lock and unlock together; heartbeat; and
    get_open_txns with get_open_txns_req, which share one read. 1: calls are not combined."""
    open_timeout_ms: WholeMilliseconds = setting(
        1000,
        reason="Hive's default; it must be the same for all servers of a database.",
        site_keys=metastore_keys("txn.opentxn.timeout", before="hive."),
        gt=0,
    )
    """Maximum time that opening a transaction may take. A gap in the transaction ids that is younger than this counts
    as an open transaction."""
    open_count_interval_s: Seconds = hive_setting(1.0, "count.open.txns.interval", before="hive.", ge=0)
    """Maximum age of the count of open transactions that is compared with max_open."""
    min_history_level: Literal["auto", "on", "off"] = setting(
        "auto", site_keys=metastore_keys("txn.use.minhistorylevel", before="hive.")
    )
    """Whether to record, for each open transaction, the oldest transaction that was open when it began. A Java cleaner
    waits for it. auto: on, except on SQLite."""
    min_history_write_id: bool = setting(
        True,
        reason="It is off in Hive 4.0, but Hive's clients send the calls.",
        site_keys=metastore_keys("txn.use.minhistorywriteid", before="hive."),
    )
    """Whether to record the write ids that readers announce, so that a cleaner does not wait for readers of other
    tables."""

    @field_validator("min_history_level", mode="before")
    @classmethod
    def _yes_or_no(cls, value: object) -> object:
        """Converts true and false of site files."""
        return {"true": "on", "false": "off"}.get(value.strip().lower(), value) if isinstance(value, str) else value


class CompactionSettings(Section):
    """The queue of compactions. This server keeps the queue; the workers are those of Hive or of other programs."""

    initiator: bool = setting(
        False,
        reason="Hive's default; one server of a set is enough.",
        site_keys=metastore_keys("compactor.initiator.on", before="hive."),
    )
    """Whether this server looks for tables that need a compaction and adds requests to the queue. Workers of other
    programs process the queue."""
    delta_count_threshold: int = setting(
        10, unit="writes", reason="Hive's default.", site_keys=("hive.compactor.delta.num.threshold",), ge=1
    )
    """Number of writes since the last compaction after which a table is considered for a minor compaction. The table
    parameter `compactorthreshold.hive.compactor.delta.num.threshold` sets another number for one table. A number above
    10,000: never."""
    worker_pool_timeout_s: Seconds = hive_setting(12 * 3600.0, "compactor.worker.pool.timeout", before="hive.", gt=0)
    """A request for a pool of workers that has waited longer than this may be given to any worker."""
    max_failed: int = hive_setting(
        2, "compactor.initiator.failed.compacts.threshold", before="hive.", unit="compactions", ge=1, le=20
    )
    """Number of consecutive failures after which no compaction of a table is initiated."""
    failed_retry_s: Seconds = hive_setting(
        7 * 86400.0, "compactor.initiator.failed.retry.time", before="hive.", from_site=_unless_zero, gt=0
    )
    """Time after which a compaction of such a table is initiated again; inf: never."""
    aborted_transactions_threshold: int = setting(
        1000, unit="transactions", reason="Hive's default.", site_keys=("hive.compactor.abortedtxn.threshold",), ge=0
    )
    """Number of aborted transactions on a table above which the table is considered for a compaction."""
    aborted_transaction_age_s: Seconds = setting(
        12 * 3600.0,
        reason="Hive's default.",
        site_keys=("hive.compactor.aborted.txn.time.threshold",),
        from_site=unless_negative,
        ge=0,
    )
    """Age of an aborted transaction above which its table is considered for a compaction; inf: its age does not
    count."""
    worker_timeout_s: Seconds = setting(
        86400.0, reason="Hive's default.", site_keys=("hive.compactor.worker.timeout",), gt=0
    )
    """A compaction that a worker has not finished within this time returns to the queue."""
    history_failed: int = hive_setting(
        3, "compactor.history.retention.failed", before="hive.", unit="compactions", ge=0
    )
    """Number of failed compactions to keep for each table or partition; at least as many as `max_failed`."""
    history_succeeded: int = hive_setting(
        3, "compactor.history.retention.succeeded", before="hive.", unit="compactions", ge=0
    )
    """Number of successful compactions to keep for each table or partition."""
    history_did_not_initiate: int = hive_setting(
        2, "compactor.history.retention.did.not.initiate", before="hive.", unit="compactions", ge=0
    )
    """Number of compactions that could not be initiated to keep for each table or partition."""
    history_refused: int = hive_setting(
        3, "compactor.history.retention.refused", before="hive.", unit="compactions", ge=0
    )
    """Number of refused and aborted compactions to keep for each table or partition."""
    history_retention_s: Seconds = hive_setting(
        7 * 86400.0, "compactor.history.retention.timeout", before="hive.", ge=0
    )
    """Time after which a failed, refused or aborted compaction, or one that could not be initiated, is forgotten once a
    later one of the table or partition has succeeded; inf: never."""
