"""The settings, section by section.

A default that is a number has its reason beside it. A setting that Hive has too names Hive's keys (``site_keys``) and
has Hive 4.0.1's default unless the reason says otherwise.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import SecretStr, field_validator

from hms_cache.config.database_url import sqlalchemy_url, with_credentials
from hms_cache.config.quantities import Milliseconds, Minutes, OptionalPath, Seconds, SizeBytes, Words
from hms_cache.config.setting import Section, setting


def _location_uri(text: str) -> str:
    """A directory as the location that clients get to see, as Hadoop writes it: a path is a local one, made absolute.

    Nothing is percent-encoded: Hadoop's paths are not.
    """
    if not text or "://" in text or text.startswith("file:"):
        return text.rstrip("/")
    return f"file:{Path(text).expanduser().absolute()}"


class ServerSettings(Section):
    """The Thrift listener."""

    host: str = setting(
        "127.0.0.1",
        "Address to listen on. The protocol carries no authentication of its own, so other machines are let in on"
        " purpose only.",
        site_keys=("metastore.thrift.bind.host", "hive.metastore.thrift.bind.host"),
    )
    port: int = setting(
        9083,
        "Port to listen on; 0 picks a free one.",
        reason="Hive's port, which clients assume.",
        site_keys=("metastore.thrift.port", "hive.metastore.port"),
        ge=0,
        le=65535,
    )
    advertised_uris: str = setting(
        "",
        "What clients call this metastore, such as thrift://hms:9083; it is written into the events. Empty:"
        " thrift://host:port.",
        site_keys=("metastore.thrift.uris", "hive.metastore.uris"),
    )
    threads: int = setting(
        16,
        "Threads that run the calls which need the database.",
        reason="Calls wait for the database, not for the processor: more threads than database connections only queue"
        " there.",
        ge=1,
        le=1024,
    )
    max_connections: int = setting(
        4096,
        "Client connections open at once; one more is closed at once and counted.",
        unit="connections",
        reason="An idle connection costs a few KiB; Hive allows 1000 because each costs it a thread.",
        ge=1,
    )
    max_in_flight: int = setting(
        1024,
        "Calls being answered or waiting for a thread; one more is answered with a fault that tells the client to"
        " retry.",
        unit="calls",
        reason="64 calls waiting for each thread: at 10 ms a call, the last of them waits less than a second.",
        ge=1,
    )
    max_message_bytes: SizeBytes = setting(
        100 * 1024 * 1024,
        "Largest message accepted. A larger one is refused with a fault and its connection closed.",
        unit="bytes",
        reason="Hive's default.",
        site_keys=("metastore.server.max.message.size", "hive.metastore.server.max.message.size"),
        ge=1024,
    )
    idle_timeout_s: Seconds = setting(
        86400.0,
        "A connection on which nothing was said for so long is closed; inf: never.",
        unit="seconds",
        reason="Sessions of people pause overnight, and clients reconnect by themselves.",
        gt=0,
    )
    message_timeout_s: Seconds = setting(
        120.0,
        "A message whose bytes have not all arrived by then closes its connection.",
        unit="seconds",
        reason="100 MiB at 1 MiB/s take 100 s; a client that stalls longer is gone.",
        gt=0,
    )
    request_timeout_s: Seconds = setting(
        600.0,
        "A call that has not been answered by then is answered with a fault; inf: never.",
        unit="seconds",
        reason="Hive's clients wait 600 s for an answer: a later one reaches nobody.",
        gt=0,
    )
    drain_timeout_s: Seconds = setting(
        30.0,
        "After SIGTERM, how long running calls may take to finish before their connections are closed.",
        unit="seconds",
        reason="Kubernetes kills a process 30 s after it asked it to stop.",
        ge=0,
    )
    audit: Literal["all", "writes", "off"] = setting(
        "writes",
        "Which calls get an audit line, in the shape of Hive's HiveMetaStore.audit log.",
        reason="Reads are most of the calls and change nothing.",
        reloadable=True,
    )


class DatabaseSettings(Section):
    """The metastore database."""

    url: str = setting(
        "sqlite:///hms-cache.db",
        "Where the catalog lives: sqlite:///file.db, mysql://host/database (also MariaDB),"
        " postgresql://host/database, or the"
        " JDBC form of the last two. It must be one endpoint that always is the primary.",
        site_keys=("javax.jdo.option.ConnectionURL",),
    )
    username: str = setting(
        "",
        "User name, when the URL has none.",
        site_keys=("javax.jdo.option.ConnectionUserName",),
    )
    password: SecretStr = setting(
        SecretStr(""),
        "Password, when the URL has none. Better in a file: password_file.",
        site_keys=("javax.jdo.option.ConnectionPassword",),
    )
    password_file: OptionalPath = setting(None, "File whose first line is the password.")
    pool_size: int = setting(
        16,
        "Connections kept for calls (reads, writes and loads of the cache together), and the most that are opened.",
        unit="connections",
        reason="One for each of server.threads: a call never needs two at once, so no call waits for a connection.",
        site_keys=("datanucleus.connectionPool.maxPoolSize",),
        ge=1,
        le=1000,
    )
    check_pool_size: int = setting(
        2,
        "Connections for position checks and polling, besides those of pool_size.",
        unit="connections",
        reason="Checks are shared by all calls that wait, so more than two are never busy.",
        ge=1,
        le=16,
    )
    pool_timeout_s: Seconds = setting(
        30.0,
        "How long a call waits for a connection of the pool before it fails.",
        unit="seconds",
        reason="Connections come free within milliseconds; half a minute without one is an outage.",
        gt=0,
    )
    connect_timeout_s: Seconds = setting(
        10.0,
        "How long opening a connection may take.",
        unit="seconds",
        reason="Long enough for a failover's new address, short enough to be noticed.",
        gt=0,
    )
    statement_timeout_s: Seconds = setting(
        300.0,
        "How long one statement may take, and a transaction wait for a lock (SQLite: only the latter).",
        unit="seconds",
        reason="Half of the 600 s that Hive's clients wait for an answer, so that they hear why.",
        gt=0,
    )
    recycle_s: Seconds = setting(
        1800.0,
        "A connection older than this is replaced before its next use.",
        unit="seconds",
        reason="Below the idle limits of databases (MariaDB: 8 h) and of the firewalls before them (often 1 h).",
        gt=0,
    )
    retry_attempts: int = setting(
        10,
        "How often a transaction that lost to a deadlock or a serialization error is tried in all.",
        unit="attempts",
        reason="Hive's default.",
        site_keys=("metastore.hmshandler.retry.attempts", "hive.hmshandler.retry.attempts"),
        ge=1,
        le=100,
    )
    retry_total_s: Seconds = setting(
        300.0,
        "After so long no further attempt is begun.",
        unit="seconds",
        reason="As statement_timeout_s: half of what Hive's clients wait.",
        gt=0,
    )

    @field_validator("url")
    @classmethod
    def _in_sqlalchemy_form(cls, url: str) -> str:
        return sqlalchemy_url(url)

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is an embedded one."""
        return self.url.startswith("sqlite")

    def sqlalchemy_url(self) -> str:
        """The URL to connect to, user name and password included. Not to be shown or logged."""
        return with_credentials(self.url, self.username, self.password.get_secret_value())


class WarehouseSettings(Section):
    """Directories and files of databases, tables and partitions."""

    directory: str = setting(
        "warehouse",
        "Where managed tables live: a path, or a URI of any file system that fsspec knows.",
        site_keys=("metastore.warehouse.dir", "hive.metastore.warehouse.dir"),
    )
    external_directory: str = setting(
        "",
        "Where external tables without a location live. Empty: with the managed ones.",
        site_keys=("metastore.warehouse.external.dir", "hive.metastore.warehouse.external.dir"),
    )
    files: Literal["manage", "leave"] = setting(
        "manage",
        "manage: make, move and delete directories as Hive does. leave: never touch a file; clients do.",
    )
    default_file_system: str = setting(
        "file:///",
        "File system of locations that name none.",
        site_keys=("fs.defaultFS", "fs.default.name"),
    )
    trash_interval_min: Minutes = setting(
        0.0,
        "Above 0, dropped data goes to .Trash/Current of the user this server runs as, where HDFS or a cron job"
        " empties it"
        " after so many minutes. 0: it is deleted.",
        unit="minutes",
        reason="Hadoop's default.",
        site_keys=("fs.trash.interval",),
        ge=0,
    )
    trash_directory: str = setting(
        "", "Where that trash is. Empty: .Trash in the user's home directory on that file system."
    )
    options: dict[str, dict[str, Any]] = setting(
        {}, "Arguments for fsspec's drivers, a table per scheme: [warehouse.options.s3a]. Values are never shown."
    )

    @field_validator("directory", "external_directory")
    @classmethod
    def _as_uri(cls, directory: str) -> str:
        return _location_uri(directory)

    @property
    def external_or_managed_directory(self) -> str:
        """Where an external table without a location goes."""
        return self.external_directory or self.directory


class CatalogSettings(Section):
    """Rules that change answers: the settings of Hive's with the same meaning."""

    partition_request_limit: int = setting(
        -1,
        "A request that would return more partitions than this is refused; -1: no limit.",
        unit="partitions",
        reason="Hive's default.",
        site_keys=(
            "metastore.limit.partition.request",
            "hive.metastore.limit.partition.request",
        ),
        ge=-1,
    )
    batch_retrieve_max: int = setting(
        300,
        "Objects that clients are told to ask for at once.",
        unit="objects",
        reason="Hive's default.",
        site_keys=("metastore.batch.retrieve.max", "hive.metastore.batch.retrieve.max"),
        ge=1,
    )
    batch_retrieve_table_partition_max: int = setting(
        1000,
        "Tables and partitions that clients are told to ask for at once.",
        unit="objects",
        reason="Hive's default.",
        site_keys=(
            "metastore.batch.retrieve.table.partition.max",
            "hive.metastore.batch.retrieve.table.partition.max",
        ),
        ge=1,
    )
    disallow_incompatible_column_type_changes: bool = setting(
        True,
        "Refuse an alter_table that changes a column to a type its old values cannot be read as.",
        site_keys=(
            "metastore.disallow.incompatible.col.type.changes",
            "hive.metastore.disallow.incompatible.col.type.changes",
        ),
    )
    allow_incompatible_column_type_changes_serdes: Words = setting(
        ("org.apache.hadoop.hive.kudu.KuduSerDe", "org.apache.iceberg.mr.hive.HiveIcebergSerDe"),
        "SerDes whose tables are free of that rule.",
        site_keys=(
            "metastore.allow.incompatible.col.type.changes.serdes",
            "hive.metastore.allow.incompatible.col.type.changes.serdes",
        ),
    )
    partition_name_whitelist_pattern: str = setting(
        "",
        "Regular expression that each partition value must match in whole. Empty: any value.",
        site_keys=("metastore.partition.name.whitelist.pattern", "hive.metastore.partition.name.whitelist.pattern"),
    )
    default_partition_name: str = setting(
        "__HIVE_DEFAULT_PARTITION__",
        "How a NULL or empty partition value is written in a partition's name.",
        site_keys=("metastore.default.partition.name", "hive.exec.default.partition.name"),
    )
    partition_inherit_table_properties: Words = setting(
        (),
        "Table parameters that a new partition gets too; * means all.",
        site_keys=(
            "metastore.partition.inherit.table.properties",
            "hive.metastore.partition.inherit.table.properties",
        ),
    )
    special_characters_in_table_names: bool = setting(
        True,
        "Allow characters other than letters, digits and underscores in names of tables.",
        site_keys=("metastore.support.special.characters.tablename", "hive.support.special.characters.tablename"),
    )
    retain_column_statistics_on_column_removal: bool = setting(
        True,
        "Keep the statistics of the columns that stay when a column is taken away.",
        site_keys=(
            "metastore.colstats.retain.on.column.removal",
            "hive.metastore.colstats.retain.on.column.removal",
        ),
    )
    statistics_autogather: bool = setting(
        True,
        "Count files and bytes of new tables and partitions into their parameters.",
        site_keys=("metastore.stats.autogather", "hive.stats.autogather"),
    )
    storage_schema_reader: str = setting(
        "org.apache.hadoop.hive.metastore.SerDeStorageSchemaReader",
        "Class that Hive reads the columns of tables with which keep them in their files. DefaultStorageSchemaReader:"
        " refuse.",
        site_keys=("metastore.storage.schema.reader.impl",),
    )
    metadata_translation: Literal["off", "hive4"] = setting(
        "off",
        "hive4: change new managed tables that a client cannot write as transactional ones into external ones, as"
        " Hive 4 does.",
        reason="Spark, Trino and Iceberg expect back what they wrote.",
    )

    @field_validator("partition_name_whitelist_pattern")
    @classmethod
    def _is_a_pattern(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return pattern


class CacheSettings(Section):
    """What is answered from memory, and how sure that has to be."""

    enabled: bool = setting(True, "false: every call is answered from the database.")
    max_staleness_ms: Milliseconds = setting(
        0.0,
        "How old an answer may be. 0: never older than the request (P1); a number: at most so many milliseconds; inf:"
        " whatever"
        " the events have told so far, without asking the database.",
        unit="milliseconds",
        reason="A wrong answer costs more than the one shared statement that proves a right one.",
        reloadable=True,
        ge=0,
    )
    budget_bytes: SizeBytes = setting(
        1024**3,
        "Memory for cached objects, as encoded bytes; above it the least recently used tables are dropped (P11).",
        unit="bytes",
        reason="Hive's default for its cache; room for a few million partitions.",
        site_keys=(
            "metastore.cached.rawstore.max.cache.memory",
            "hive.metastore.cached.rawstore.max.cache.memory",
        ),
        ge=1024 * 1024,
    )
    peers: Literal["none", "hive4", "hive3"] = setting(
        "none",
        "Which other metastores write to the same database, beside other hms-cache servers. What those do not log is"
        " not cached.",
    )
    include: Words = setting(
        ("*",),
        "Tables to cache, as database.table patterns with * and ?.",
        reloadable=True,
    )
    exclude: Words = setting(
        (),
        "Tables not to cache, same form; wins over include.",
        reloadable=True,
    )
    warm: Literal["full", "names", "off"] = setting(
        "full",
        "What is loaded at start, while calls are already answered: whole tables, only names, or nothing.",
    )
    warm_threads: int = setting(
        2,
        "Loads of the prewarm that run at once.",
        unit="threads",
        reason="Leaves most of database.pool_size to the calls meanwhile.",
        ge=1,
        le=64,
    )
    refill: Literal["recent", "none"] = setting(
        "recent",
        "Whether a recently used table that an event invalidated is loaded again before somebody asks.",
    )
    write_id_reads: Literal["check", "trust"] = setting(
        "check",
        "Reads that carry a validWriteIdList. check: the list must be covered and the entry current. trust: the list"
        " and the"
        " table id decide alone, without a database call; sound where every writer of transactional tables advances"
        " write ids.",
    )
    reads_without_write_ids: Literal["check", "store", "reject"] = setting(
        "check",
        "Reads of transactional tables without such a list: as any other read, always from the database, or refused.",
    )


class EventSettings(Section):
    """The notification log: what is written to it, how it is followed and how long it is kept."""

    poll_interval_s: Seconds = setting(
        1.0,
        "How often the log is read for changes when no call needs to know sooner.",
        unit="seconds",
        reason="One indexed read of one row; Impala recommends less than 5.",
        reloadable=True,
        gt=0,
    )
    batch_size: int = setting(
        1000,
        "Most events fetched with one statement.",
        unit="events",
        reason="About 2 MB of typical messages, applied in well under a second.",
        ge=1,
        le=100_000,
    )
    message_format: Literal["json-0.2", "gzip(json-2.0)"] = setting(
        "json-0.2",
        "Format of the messages written. Both are read.",
        reason="Every reader of Hive 2.3 and later, Impala included, takes json-0.2.",
        site_keys=("metastore.event.message.factory", "hive.metastore.event.message.factory"),
    )
    max_message_bytes: SizeBytes = setting(
        4 * 1024 * 1024,
        "A message that would be larger is split into several events of the same transaction.",
        unit="bytes",
        reason="A quarter of MariaDB's default max_allowed_packet of 16 MiB: quoting and the rest of the row stay"
        " below it.",
        ge=64 * 1024,
    )
    single_alter_partitions_event: bool = setting(
        False,
        "One ALTER_PARTITIONS event for all partitions of a call, in place of one for each.",
        reason="Readers older than Hive 4.1 do not know the event.",
        site_keys=("metastore.alterPartitions.notification.v2.enabled",),
    )
    exclude_parameters: Words = setting(
        (),
        "Regular expressions of parameter names that are left out of messages.",
        site_keys=(
            "metastore.notification.parameters.exclude.patterns",
            "hive.metastore.notification.parameters.exclude.patterns",
        ),
    )
    retention_s: Seconds = setting(
        86400.0,
        "Events older than this are deleted; inf: never.",
        unit="seconds",
        reason="Hive's default. A reader that was away for longer starts anew.",
        site_keys=("metastore.event.db.listener.timetolive", "hive.metastore.event.db.listener.timetolive"),
        gt=0,
    )
    clean_interval_s: Seconds = setting(
        7200.0,
        "How often old events are looked for.",
        unit="seconds",
        reason="Hive's default.",
        site_keys=("metastore.event.db.listener.clean.interval", "hive.metastore.event.db.listener.clean.interval"),
        gt=0,
    )
    clean_batch_size: int = setting(
        10_000,
        "Most events deleted in one transaction.",
        unit="events",
        reason="Hive's default.",
        site_keys=("metastore.event.db.clean.maxevents", "hive.metastore.event.db.clean.maxevents"),
        ge=1,
    )
    max_response: int = setting(
        1_000_000,
        "Most events in the answer to one get_next_notification.",
        unit="events",
        reason="Hive's default.",
        site_keys=("metastore.max.event.response", "hive.metastore.max.event.response"),
        ge=1,
    )

    @field_validator("message_format", mode="before")
    @classmethod
    def _factory_class_or_format(cls, value: object) -> object:
        """Site files name Hive's encoder classes."""
        classes = {"JSONMessageEncoder": "json-0.2", "GzipJSONMessageEncoder": "gzip(json-2.0)"}
        return classes.get(value.rpartition(".")[2], value) if isinstance(value, str) else value


class TransactionSettings(Section):
    """Transactions, write ids and locks."""

    timeout_s: Seconds = setting(
        300.0,
        "A transaction or lock without a heartbeat for so long is aborted.",
        unit="seconds",
        reason="Hive's default.",
        site_keys=("metastore.txn.timeout", "hive.txn.timeout"),
        gt=0,
    )
    replication_timeout_s: Seconds = setting(
        11 * 86400.0,
        "The same for transactions that replication opened.",
        unit="seconds",
        reason="Hive's default: longer than its event retention for replication.",
        site_keys=("metastore.repl.txn.timeout", "hive.repl.txn.timeout"),
        gt=0,
    )
    housekeeping_interval_s: Seconds = setting(
        60.0,
        "How often transactions and locks that timed out, and rows nobody needs any more, are looked for.",
        unit="seconds",
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
    open_timeout_ms: Milliseconds = setting(
        1000.0,
        "How long opening a transaction may take; gaps in the ids younger than this count as open.",
        unit="milliseconds",
        reason="Hive's default; every server of one database must agree on it.",
        site_keys=("metastore.txn.opentxn.timeout", "hive.txn.opentxn.timeout"),
        gt=0,
    )
    open_count_interval_s: Seconds = setting(
        1.0,
        "How old the count of open transactions that max_open is compared with may be.",
        unit="seconds",
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
        unit="seconds",
        reason="Hive's default.",
        site_keys=(
            "metastore.compactor.initiator.failed.retry.time",
            "hive.compactor.initiator.failed.retry.time",
        ),
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
        unit="seconds",
        reason="Hive's default.",
        site_keys=("hive.compactor.aborted.txn.time.threshold",),
        gt=0,
    )
    worker_timeout_s: Seconds = setting(
        86400.0,
        "A compaction that has been worked on for longer goes back to the queue.",
        unit="seconds",
        reason="Hive's default.",
        site_keys=("hive.compactor.worker.timeout",),
        gt=0,
    )
    history_failed: int = setting(
        3,
        "Failed compactions kept for a table or partition.",
        unit="compactions",
        reason="Hive's default.",
        site_keys=(
            "metastore.compactor.history.retention.failed",
            "hive.compactor.history.retention.failed",
        ),
        ge=0,
    )
    history_succeeded: int = setting(
        3,
        "Compactions that succeeded kept for a table or partition.",
        unit="compactions",
        reason="Hive's default.",
        site_keys=(
            "metastore.compactor.history.retention.succeeded",
            "hive.compactor.history.retention.succeeded",
        ),
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
        site_keys=(
            "metastore.compactor.history.retention.refused",
            "hive.compactor.history.retention.refused",
        ),
        ge=0,
    )


class AdminSettings(Section):
    """The management port: health, metrics, pages, commands."""

    enabled: bool = setting(True, "false: no management port.")
    host: str = setting(
        "127.0.0.1", "Address to listen on. Reading needs no token, so other machines are let in on purpose only."
    )
    port: int = setting(
        9085,
        "Port to listen on; 0 picks a free one.",
        reason="Beside the metastore's 9083 and free of Hive's own.",
        ge=0,
        le=65535,
    )
    token: SecretStr = setting(
        SecretStr(""), "What a command that changes something must carry. Empty: such commands are refused."
    )
    token_file: OptionalPath = setting(None, "File whose first line is that token.")
    ready_waits_for_warm: bool = setting(False, "Whether /readyz says no until the prewarm is through.")
    serve_stale: bool = setting(
        False, "Whether /readyz says yes while the database is away and reads within max_staleness_ms go on."
    )


class LogSettings(Section):
    """What the server writes to standard error."""

    format: Literal["text", "json"] = setting("text", "Lines for people, or one JSON object per line.")
    level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "Least important messages written.", reloadable=True
    )
    slow_call_s: Seconds = setting(
        5.0,
        "A call that takes longer is logged with where its time went; inf: none is.",
        unit="seconds",
        reason="People notice; the calls themselves take milliseconds.",
        reloadable=True,
        gt=0,
    )


def finite_s(seconds: float) -> float | None:
    """``seconds`` as most waiting functions want it: None for infinity."""
    return None if math.isinf(seconds) else seconds
