"""All metrics of the program, one class per subsystem.

Names begin with ``hms_cache_`` and end in their unit; names of counters end in ``_total``. Labels have few values: a
method of the protocol, an outcome, a reason, but never the name of a table or a client.

Counters and durations are increased where the event occurs. Gauges are read during a scrape: the owner of the number
provides a function once, with ``set_function``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from prometheus_client import CollectorRegistry, Gauge, Info, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from hms_cache.input_limits import refused_inputs
from hms_cache.metrics.loads import CallLoads
from hms_cache.metrics.operations import Operations
from hms_cache.metrics.sharded import CountFamily, DurationFamily, TallyFamily
from hms_cache.metrics.thread_pools import ThreadPoolLoad
from hms_cache.program_version import program_version

F = TypeVar("F", bound=Collector)


class _Subsystem:
    """Creates metrics in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def _tally(self, name: str, documentation: str, *label_names: str) -> TallyFamily:
        return self._registered(TallyFamily(f"hms_cache_{name}", documentation, label_names))

    def _duration(self, name: str, documentation: str, *label_names: str) -> DurationFamily:
        return self._registered(DurationFamily(f"hms_cache_{name}", documentation, label_names))

    def _count(self, name: str, documentation: str) -> CountFamily:
        return self._registered(CountFamily(f"hms_cache_{name}", documentation))

    def _gauge(self, name: str, documentation: str, *label_names: str) -> Gauge:
        return Gauge(f"hms_cache_{name}", documentation, label_names, registry=self._registry)

    def _registered(self, family: F) -> F:
        self._registry.register(family)
        return family


class ServerMetrics(_Subsystem):
    """Connections and calls."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self._of_calls()
        self._of_connections()
        self._of_security()
        self._of_limits()
        self._of_thread_pools()
        self._of_audit()

    def _of_calls(self) -> None:
        self.calls = self._tally(
            "calls_total",
            "Calls answered. outcome: ok, fault (an exception declared by the method), error, denied, unknown_method.",
            "method",
            "outcome",
        )
        self.call_duration = self._duration(
            "call_duration_seconds", "Time from a complete message to its encoded reply.", "method"
        )
        self.lost_workers = self._count(
            "workers_lost_total",
            "Workers (server.workers) in this worker's place that ended unexpectedly: killed, out of memory, defect.",
        )
        self.unreachable_workers = self._gauge(
            "workers_unreachable",
            "Other workers (server.workers) that did not answer the worker that handles /metrics: hung or stopped.",
        )
        self.in_flight = self._gauge("calls_in_flight", "Calls that are running or waiting for a thread.")
        self.bad_messages = self._count("bad_messages_total", "Messages that could not be decoded.")

    def _of_connections(self) -> None:
        self.connections = self._gauge("connections", "Open client connections.")
        self.connections_by_port = self._gauge("port_connections", "Open client connections of one port.", "port")
        self.refused_connections = self._count(
            "connections_refused_total",
            "Connections refused because of server.max_connections or server.max_connections_per_address.",
        )
        self.displaced_connections = self._count(
            "connections_displaced_total",
            "Connections without a call closed for new ones because server.max_connections were open.",
        )
        self.connections_limit = self._gauge(
            "connections_limit",
            "Maximum number of open connections: server.max_connections, or fewer if the limit on open files is lower.",
        )
        self.timed_out_connections = self._tally(
            "connections_timed_out_total",
            "Connections closed because of a time limit. kind: message, write, first_call, idle.",
            "kind",
        )
        self.connections_over_buffer_budget = self._count(
            "connections_over_buffer_budget_total", "Connections closed because server.buffer_budget_bytes was used up."
        )
        self.buffered_bytes = self._gauge(
            "buffered_bytes",
            "Memory of requests that are arriving or running, and of replies that clients have not read yet.",
        )
        self.buffer_budget_bytes = self._gauge(
            "buffer_budget_bytes", "Limit of hms_cache_buffered_bytes: server.buffer_budget_bytes."
        )
        self.session_bytes = self._gauge(
            "session_bytes", "Size of the users, groups, variables and options that connections have set."
        )
        self.refused_session_changes = self._count(
            "session_changes_refused_total", "Users, groups and options refused because of their size or number."
        )

    def _of_security(self) -> None:
        self.tls_handshakes = self._tally(
            "tls_handshakes_total",
            "TLS handshakes. outcome: ok, plaintext (no TLS at all), protocol (no version or cipher in common),"
            " client_certificate (missing or invalid), refused_by_client (it does not trust the server's certificate),"
            " timeout, closed, other.",
            "outcome",
        )
        self.proxy_headers = self._tally(
            "proxy_headers_total",
            "Connections from addresses in server.proxy_protocol_from, by their header. outcome: ok, local (the proxy's"
            " own connection, such as a health check), invalid (no header, or a malformed one), timeout, closed (before"
            " a header arrived).",
            "outcome",
        )
        self.certificate_end = self._gauge(
            "certificate_end_timestamp_seconds",
            "Expiry time of the TLS certificate for new connections; 0: no port uses TLS.",
        )
        self.revocation_list_end = self._gauge(
            "revocation_list_end_timestamp_seconds",
            "Expiry time of the first list in server.tls_client_crl_file to expire. Then all clients with a certificate"
            " are refused. 0: there are no lists, or they do not expire.",
        )
        self.authentications = self._tally(
            "authentications_total",
            "SASL negotiations. outcome: ok, refused (wrong ticket, password or principal), refused_by_client,"
            " bad_message (incomplete, too long, unknown mechanism, not HTTP), plaintext (no SASL), unavailable (the"
            " directory did not answer), timeout, closed, bad_frame (the connection failed later: a frame was too"
            " long, modified or incomplete, or too many empty frames followed each other).",
            "outcome",
        )
        self.policy_loads = self._tally(
            "authorization_policy_loads_total",
            "Reads of authorization.policy_file. outcome: loaded, failed (the previous policy stays in force).",
            "outcome",
        )
        self.directory_groups = self._tally(
            "authorization_directory_groups_total",
            "Requests to the directory for a user's groups. outcome: ok, cached (it did not answer, and the previous"
            " answer was used), failed (the call was refused).",
            "outcome",
        )
        self.policy_requests = self._tally(
            "authorization_policy_requests_total",
            "Requests to authorization.opa_url. outcome: ok, failed (the call was refused).",
            "outcome",
        )
        self.policy_loaded = self._gauge(
            "authorization_policy_loaded_timestamp_seconds", "When the current policy was read; 0: there is none."
        )

    def _of_limits(self) -> None:
        self.refused_calls = self._count(
            "calls_refused_total",
            "Calls refused because of server.max_in_flight or server.max_waiting_per_pool.",
        )
        self.calls_over_client_limit = self._tally(
            "calls_over_client_limit_total",
            "Calls refused because of server.max_calls_per_user or max_calls_per_address. scope: user, address.",
            "scope",
        )
        self.refused_inputs = self._tally(
            "inputs_refused_total",
            "Patterns, expressions, lists and names that exceed a setting of the section limits. limit: its name.",
            "limit",
        )
        self.refused_inputs.include(lambda: {(limit,): n for limit, n in refused_inputs().items()})

    def _of_thread_pools(self) -> None:
        self.thread_pool_wait = self._duration(
            "thread_pool_wait_seconds",
            "Time that calls waited for a thread. pool: transactions, reads, writes, heavy.",
            "pool",
        )
        self.thread_pool_waiting = self._gauge(
            "thread_pool_calls_waiting", "Calls that are waiting for a thread.", "pool"
        )
        self.thread_pool_running = self._gauge(
            "thread_pool_calls_running", "Calls that are running, not counting stuck ones.", "pool"
        )
        self.thread_pool_deferred = self._gauge(
            "thread_pool_calls_deferred",
            "Waiting calls with large replies that exceed server.large_reply_threads.",
            "pool",
        )
        self.thread_pool_stuck = self._gauge(
            "thread_pool_calls_stuck",
            "Calls that have exceeded server.request_timeout_s and still occupy a thread.",
            "pool",
        )

    def _of_audit(self) -> None:
        self.audit_lines_lost = self._count(
            "audit_lines_lost_total",
            "Audit lines lost because server.audit_queue_bytes was used up, or they could not be written.",
        )
        self.audit_queue = self._gauge("audit_queue_bytes", "Memory of audit lines that are waiting to be written.")

    def show_thread_pool(self, pool: str, load: Callable[[], ThreadPoolLoad]) -> None:
        """Connects the pool's gauges to its load."""
        self.thread_pool_waiting.labels(pool).set_function(lambda: load().waiting)
        self.thread_pool_running.labels(pool).set_function(lambda: load().running)
        self.thread_pool_deferred.labels(pool).set_function(lambda: load().deferred)
        self.thread_pool_stuck.labels(pool).set_function(lambda: load().stuck)

    def observe_wait(self, pool: str, seconds: float) -> None:
        """Records the time that a call waited for its thread."""
        self.thread_pool_wait.observe(seconds, (pool,))

    def observe_call(self, method: str, outcome: str, seconds: float) -> None:
        """Counts one call. The dispatcher requires this signature."""
        self.calls.add((method, outcome))
        self.call_duration.observe(seconds, (method,))


class DatabaseMetrics(_Subsystem):
    """Statements and connections of the metastore database."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.statements = self._tally("database_statements_total", "Statements sent.")
        self.retries = self._tally(
            "database_retries_total", "Transactions repeated after a deadlock or a similar error."
        )
        self.refused_filters = self._tally(
            "filters_refused_total",
            "Filters refused because of catalog.filter_max_characters, filter_max_depth or filter_max_comparisons.",
        )
        self.reachable = self._gauge(
            "database_reachable", "1 if the database answered the last probe (one per second), otherwise 0."
        )
        self.connections_in_use = self._gauge(
            "database_connections_in_use", "Connections of the pools that are in use."
        )


class WarehouseMetrics(_Subsystem):
    """Directories and files."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.operations = self._tally(
            "file_operations_total",
            "Operations on directories and files. outcome: ok, error (including exceeded time limits), too_long (a"
            " listing that was stopped), waiting (a write released its locks meanwhile;"
            " warehouse.file_wait_with_locks_s).",
            "operation",
            "outcome",
        )
        self.threads_in_use = self._gauge(
            "file_threads_in_use",
            "Threads that work on file systems, including those whose file system does not respond. Each file system"
            " has at most warehouse.file_threads.",
        )


class CacheMetrics(_Subsystem):
    """Reads, loads and memory of the cache."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.reads = self._tally(
            "cache_reads_total",
            "Reads by the source of their answer. outcome: hit, miss (after a load), or the reason for a pass-through.",
            "kind",
            "outcome",
        )
        self.checks = self._count("cache_position_checks_total", "Position checks sent to the database.")
        self.check_requests = self._count(
            "cache_position_check_requests_total", "Reads that waited for a position check; they share checks."
        )
        self.loads = self._count("cache_loads_total", "Loads of entries from the database.")
        self.discarded_loads = self._count(
            "cache_loads_discarded_total", "Loads discarded because of a later event that concerns them."
        )
        self.refused_loads = self._count(
            "cache_loads_refused_total",
            "Loads discarded because they read another database server than the one that is followed, or an earlier"
            " state.",
        )
        self.loads_over_client_limit = self._tally(
            "cache_loads_over_client_limit_total",
            "Reads refused because of cache.max_loads_per_user or max_loads_per_address. scope: user, address.",
            "scope",
        )
        self.refills = self._count("cache_refills_total", "Entries loaded again before they were read.")
        self.background_loads = self._count(
            "cache_background_loads_total", "Large tables loaded in the background while the database answered."
        )
        self.background_loads_waiting = self._gauge(
            "cache_background_loads_waiting", "Large tables that are waiting for such a load."
        )
        self.evictions = self._count("cache_evictions_total", "Tables evicted because of the memory budget.")
        self.resets = self._count("cache_resets_total", "Number of times that everything in memory was dropped.")
        self.bytes = self._gauge("cache_bytes", "Encoded bytes in memory.")
        self.budget_bytes = self._gauge("cache_budget_bytes", "Limit of hms_cache_cache_bytes: cache.budget_bytes.")
        self.entries = self._gauge("cache_entries", "Objects in memory.", "kind")
        self.shared_bytes = self._gauge(
            "cache_shared_bytes",
            "Bytes of shared files in memory with partitions of this worker; each worker that shares a file counts it.",
        )
        self.shared_blocks = self._tally(
            "cache_shared_blocks_total",
            "Blocks of partitions for the memory that the workers share. outcome: created (by this worker), reused"
            " (created by another one), failed (no file could be created; the worker keeps the block in its own"
            " memory).",
            "outcome",
        )
        self.dump_writes = self._tally(
            "cache_dump_writes_total",
            "Writes of cache.dump_file. outcome: written, failed, unproven (not written, because there was no proven"
            " position).",
            "outcome",
        )
        self.dump_bytes = self._gauge("cache_dump_bytes", "Size of the last cache dump.")
        self.dump_written = self._gauge("cache_dump_written_timestamp_seconds", "When the last cache dump was written.")
        self.dump_restored_bytes = self._gauge(
            "cache_dump_restored_bytes", "Bytes in memory that were restored from a cache dump at start."
        )
        self.dump_discarded = self._gauge(
            "cache_dump_discarded", "1 if there was a cache dump at start that could not be used."
        )


class EventMetrics(_Subsystem):
    """The notification log as followed by this server."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.received = self._tally("events_received_total", "Events read from the notification log.")
        self.skipped = self._tally(
            "events_skipped_total",
            "Events that were not decoded. reason: not_cached (nothing of the table was in memory), excluded "
            "(properties exclude the table from the cache), operator.",
            "reason",
        )
        self.failed = self._tally(
            "events_failed_total", "Events whose message could not be decoded. The objects that they name are dropped."
        )
        self.fetch_duration = self._duration("events_fetch_duration_seconds", "Time for reading a batch.")
        self.apply_duration = self._duration("events_apply_duration_seconds", "Time for applying a batch.")
        self.position = self._gauge("events_position", "Id of the last event applied.")
        self.fetch_failures = self._tally("events_fetch_failures_total", "Batches that could not be read.")
        self.lag = self._gauge("events_lag", "Events that are not applied yet, up to the last known end of the log.")
        self.age = self._gauge(
            "events_age_seconds",
            "Time since all events of the log were last known to be applied; it grows during an outage.",
        )
        self.status = self._gauge("events_status", "1 for the poller's status, 0 for the others.", "status")


class ManagementMetrics(_Subsystem):
    """The management port."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.connections = self._gauge(
            "management_connections",
            "Open connections of the management port, and closed ones whose request is still running.",
        )
        self.refused_connections = self._count(
            "management_connections_refused_total",
            "Connections closed because of admin.max_connections or the share of one address.",
        )
        self.timeouts = self._count(
            "management_timeouts_total", "Connections closed because of admin.request_timeout_s."
        )
        self.bad_requests = self._count("management_bad_requests_total", "Requests that could not be decoded.")
        self.refused_requests = self._tally(
            "management_requests_refused_total", "Requests refused because of their host, their origin or their size."
        )
        self.listeners = self._gauge("change_feed_listeners", "Connected listeners of the change feed.")
        self.refused_listeners = self._count(
            "change_feed_listeners_refused_total",
            "Listeners refused because of admin.max_listeners or admin.max_listeners_per_address.",
        )
        self.feed_events = self._tally("change_feed_events_total", "Events sent to listeners.")
        self.feed_ends = self._tally(
            "change_feed_ends_total",
            "Feeds that the server ended. reason: expired and history_changed (the log does not continue at the "
            "listener's position), slow (admin.listener_buffer_bytes), stopping, refused (the user or the token),"
            " failed.",
            "reason",
        )


class LeaseMetrics(_Subsystem):
    """Exact reads by lease; all 0 with `cache.exactness = check`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.members = self._gauge("lease_members", "Members of the set when they were last read, including this one.")
        self.remaining = self._gauge("lease_remaining_seconds", "Remaining time of this member's lease.")
        self.is_held = self._gauge("lease_held", "1 while all exact reads are answered by lease.")
        self.is_held_for_tables = self._gauge(
            "lease_held_for_tables", "1 while reads of tables that are not being written are answered by lease."
        )
        self.open_writes = self._gauge("lease_writes_open", "Writes of members whose end has not been announced.")
        self.alarm = self._gauge("lease_alarm", "1 after an event was found that no member had announced.")
        self.waits = self._count("lease_waits_total", "Writes that waited for the end of another member's lease.")
        self.revocations = self._count("lease_revocations_total", "Members revoked by this server.")
        self.messages = self._tally(
            "lease_messages_total",
            "Messages between members. kind: sent, received, dropped, refused (from connections without the secret).",
            "kind",
        )


class Metrics:
    """All metrics of one server. Two servers in one process do not share any."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        Info("hms_cache_build", "The program's version.", registry=self.registry).info({"version": program_version()})
        self.server = ServerMetrics(self.registry)
        self.database = DatabaseMetrics(self.registry)
        self.warehouse = WarehouseMetrics(self.registry)
        self.cache = CacheMetrics(self.registry)
        self.lease = LeaseMetrics(self.registry)
        self.events = EventMetrics(self.registry)
        self.management = ManagementMetrics(self.registry)
        self.operations = Operations()
        self.loads = CallLoads()
        """Loads by user, address and table, which have too many values for labels."""

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
