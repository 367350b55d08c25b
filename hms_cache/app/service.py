"""`Service`: one metastore in this process, built from a configuration, started and stopped as a whole."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Literal

from hms_cache.admin.bearers import Bearers
from hms_cache.admin.feed.listeners import ListenerGate
from hms_cache.admin.siblings import Siblings
from hms_cache.admin.sources import AdminSources
from hms_cache.app.audit_output import lost_lines
from hms_cache.app.background import BackgroundTask
from hms_cache.app.caching import Caching, build_caching, reason_against_caching
from hms_cache.app.database import (
    ensure_first_rows,
    open_database,
    refusals_explained,
    replicas_allowed,
    require_schema,
)
from hms_cache.app.event_loop import EventLoopThread
from hms_cache.app.housekeeping import Housekeeping
from hms_cache.app.leasing import show_unannounced, start_lease
from hms_cache.app.management import Management, start_management
from hms_cache.app.positions import position_source
from hms_cache.app.security.authorization import (
    external_authorizer,
    follow_grants,
    keep_current,
    policy_file,
    policy_service,
    require_authentication,
)
from hms_cache.app.security.authorization import reload as reload_policy
from hms_cache.app.security.certificates import server_context
from hms_cache.app.security.delegation import token_manager
from hms_cache.app.security.expiry import CertificateEnd, RevocationListEnd
from hms_cache.app.security.groups import directory_groups, groups_for_proxies
from hms_cache.app.security.listeners import listener_tokens, new_listener_tokens
from hms_cache.app.security.ports import Ports, open_ports, settings_of_ports
from hms_cache.app.site import Site
from hms_cache.app.stores import DatabaseStores, build_database_stores
from hms_cache.app.system.allocator import keep_trimmed
from hms_cache.app.system.open_files import connections_allowed
from hms_cache.app.system.ports import OTHER_SERVER
from hms_cache.app.warming_process import WarmingProcess
from hms_cache.app.worker_heartbeats import BEAT_INTERVAL_S, Heartbeat
from hms_cache.authentication.delegation.token_manager import TokenManager
from hms_cache.authentication.listener_tokens import ListenerTokens
from hms_cache.authorization.cached_groups import CachedGroups
from hms_cache.authorization.decisions import Authorizer
from hms_cache.authorization.external import ExternalAuthorizer
from hms_cache.authorization.grouped_policy import GroupedPolicy
from hms_cache.authorization.policy_file import PolicyFile
from hms_cache.cache.reads.assembly import Cache
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.worker_positions import WorkerPositions
from hms_cache.config import Configuration, finite_s
from hms_cache.errors import PortError
from hms_cache.input_limits import use_input_limits
from hms_cache.lease.membership import Membership
from hms_cache.metrics import Metrics
from hms_cache.metrics.loads import Traffic
from hms_cache.metrics.ports import PortState
from hms_cache.metrics.thread_pools import ThreadPoolLoad
from hms_cache.notifications.poller_status import PollerStatus
from hms_cache.program_version import program_version
from hms_cache.server.dispatch import Dispatcher
from hms_cache.server.handlers.table import all_handlers
from hms_cache.server.hot_path import HotPath
from hms_cache.server.kept_replies import KeptReplies
from hms_cache.server.listener import Listener, ListenError
from hms_cache.server.service import MetastoreServer
from hms_cache.server.stores import Stores
from hms_cache.store.contract.metadata import MetadataReads
from hms_cache.store.engine.database import Database
from hms_cache.store.transactions.committed_writes import read_committed_writes
from hms_cache.thrift_gen.hive_metastore.ttypes import NotificationEventRequest, NotificationEventResponse

_log = logging.getLogger(__name__)

#: In addition to ``server.drain_timeout_s``: time to close connections of interrupted calls and to write the audit log.
_STOP_MARGIN_S = 10.0

#: When the server stops, a database connection that is held this long probably waits for a statement, whose time limit
#: each task would wait for.
_STUCK_S = 1.0


class Service:
    """A metastore. `start` and `stop` are called once each, by one thread.

    Everything that is started is pushed onto a stack: `stop`, and a start that fails half-way, shut it down in reverse
    order.
    """

    def __init__(
        self,
        configuration: Configuration,
        metrics: Metrics | None = None,
        siblings: Siblings | None = None,
        warming: Sequence[WarmingProcess] = (),
        positions: WorkerPositions | None = None,
        heartbeat: Heartbeat | None = None,
        database: Database | None = None,
    ) -> None:
        """`siblings`: the place among the worker processes of a server. They share `positions`, and their parent
        monitors the `heartbeat`. `warming`: processes that read for the prewarm. `database`: the database of the
        settings if it was created already; it is closed with the rest."""
        self._warming = warming
        self._siblings = siblings or Siblings()
        self._positions = positions
        self._heartbeat = heartbeat
        self._database = database
        self._pending_restart: tuple[str, ...] = ()
        self._configuration = configuration
        self._settings = configuration.settings
        self.metrics = metrics or Metrics()
        self._site = Site(configuration, self.metrics)
        self._started = ExitStack()
        self._caching: Caching | None = None
        self._dispatcher: Dispatcher | None = None
        self._ports: Ports | None = None
        self._policy: PolicyFile | None = None
        self._authorizer: Authorizer | None = None
        self._listener_tokens: ListenerTokens | None = None
        self._certificate_end: CertificateEnd | None = None
        self._revocation_list_end: RevocationListEnd | None = None
        self._cache_off_reason = ""
        self.membership: Membership | None = None
        """This server as a member of a set with leases; None with `cache.exactness = check`."""
        self._thread_pool_loads: Callable[[], tuple[ThreadPoolLoad, ...]] = tuple
        self._traffic_by: Callable[[Literal["user", "address"]], tuple[Traffic, ...]] = lambda of: ()
        self._port_states: Callable[[], tuple[PortState, ...]] = tuple
        self.admin_sources: AdminSources | None = None
        """What the management port reads; None without one."""
        self.management: Management | None = None
        """The management port; None without one."""

    def start(self) -> str:
        """Opens the database, listens, and starts the background work. Returns the URI for clients.

        Raises `SchemaError`, `StartupError` (the port is in use, …) or `DatabaseUnavailableError`; then nothing is left
        running.
        """
        for one in self._configuration.accepted_insecure:
            _log.warning("accepted although insecure: %s", one)
        if self._configuration.site_review.ignored:
            _log.warning(
                "%d keys of the site files are not honoured: see hms-cache config check",
                len(self._configuration.site_review.ignored),
            )
        use_input_limits(self._settings.limits)
        self.metrics.server.lost_workers.set_function(lambda: self._siblings.lost_before)
        with ExitStack() as starting:
            database = self._database or open_database(self._settings, self.metrics.database)
            starting.callback(database.close)
            cutting = BackgroundTask("hms-interrupt", partial(_interrupt_stuck, database))
            starting.callback(cutting.stop, 2 * _STUCK_S)
            show_unannounced(database, self.metrics.lease)
            with refusals_explained():
                require_schema(database, self._settings)
                stores = build_database_stores(self._settings, database, self.metrics.warehouse)
                # the first worker starts before the others, which find what it created
                if not self._siblings.own_index:
                    with replicas_allowed(database):
                        ensure_first_rows(database, self._settings)
                        stores.auxiliary.roles.ensure_admins(self._settings.catalog.users_in_admin_role)
            groups = directory_groups(self._settings)
            if groups is not None:
                outcomes = groups.outcomes
                self.metrics.server.directory_groups.include(lambda: {(outcome,): n for outcome, n in outcomes.items()})
            self._authorize(stores, groups if self._settings.authorization.directory_groups else None, starting)
            reads = self._cached(stores, database, starting)
            tokens = token_manager(
                self._settings,
                stores.auxiliary.tokens,
                groups_for_proxies(groups if self._settings.authentication.proxy_groups == "directory" else None),
                is_hive_3=(database.features.version or "").startswith("3."),
            )
            Housekeeping(self._settings, stores, tokens).start(starting)
            keep_trimmed(starting)
            # When the server has stopped listening, no client waits for an answer any more.
            starting.callback(cutting.start)
            uri = self._listen(self._stores(reads, stores, tokens), database, starting)
            if self._settings.admin.enabled:
                self.admin_sources = self._admin_sources(uri, database, stores)
                self.management = start_management(self.admin_sources, starting, self._siblings)
            gauge = self.metrics.server.certificate_end
            self._certificate_end = CertificateEnd(self._settings, gauge, database.clock)
            self._certificate_end.start(starting)
            gauge = self.metrics.server.revocation_list_end
            self._revocation_list_end = RevocationListEnd(self._settings, gauge, database.clock)
            self._revocation_list_end.start(starting)
            self._started = starting.pop_all()
        return uri

    def stop(self) -> None:
        """Drains the listener (at most `server.drain_timeout_s`), ends the background work, and closes the database."""
        self._started.close()

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Host and number of each listening port, the main one first; empty before `start`."""
        return tuple((port.host, port.number) for port in self._ports.ports) if self._ports is not None else ()

    @property
    def management_address(self) -> tuple[str, int] | None:
        """Host and port of the management port; None without one."""
        return self.management.address if self.management is not None else None

    def calls_by_method(self) -> dict[str, int]:
        """Number of calls by method since the start."""
        return self._site.calls_by_method()

    def reads_by_outcome(self) -> dict[str, int]:
        """Number of reads answered from memory (`hit`; `miss` after a load), or by the reason why the database
        answered."""
        return self._site.reads_by_outcome()

    def reload(self, configuration: Configuration) -> tuple[list[str], list[str]]:
        """Applies the settings that a running server can apply. Returns their names, and the names of those that need a
        restart.

        Open connections keep their TLS; new ones get certificates and keys from the current files. Raises
        `StartupError` without a change if files cannot be used.
        """
        # Files may have changed although their names have not. All are read before the first one is applied.
        install: list[Callable[[], None]] = []
        if self._listener_tokens is not None:
            install.append(new_listener_tokens(self._listener_tokens, configuration.settings))
        if self._ports is not None:
            # The set of ports does not change after the start.
            listeners = {"listeners": self._settings.server.listeners}
            install.append(self._ports.renewed(configuration.settings.server.model_copy(update=listeners)))
        has_certificate = configuration.settings.server.tls_certificate_file is not None
        if self.management is not None and self.management.tls is not None and has_certificate:
            context = server_context(configuration.settings.server, requests_client_certificates=False)
            install.append(partial(setattr, self.management.tls, "context", context))
        if self._certificate_end is not None and has_certificate:
            # Which ports have TLS does not change after the start.
            files = configuration.settings.server.model_copy(
                update={"listeners": self._settings.server.listeners, "tls_enabled": self._settings.server.tls_enabled}
            )
            shown = self._settings.model_copy(update={"server": files})
            install.append(self._certificate_end.renewed(shown))
        if self._revocation_list_end is not None:
            install.append(self._revocation_list_end.renewed(configuration.settings))
        if self._policy is not None:
            reload_policy(self._policy)  # reads and applies in one step: the last one that can fail
        for one in install:
            one()
        applied, refused = self._configuration.reloadable_changes(configuration.settings)
        self._configuration = self._configuration.with_changes(configuration, applied)
        self._pending_restart = tuple(refused)
        if self._dispatcher is not None:
            self._dispatcher.slow_call_s = self._configuration.settings.log.slow_call_s
        if self._caching is not None:
            self._caching.reload(self._configuration.settings)
        return applied, refused

    def _cached(self, stores: DatabaseStores, database: Database, starting: ExitStack) -> MetadataReads:
        """The store from which handlers read: a cache over the object store, if caching is enabled."""
        reason = reason_against_caching(self._settings)
        if reason is not None:
            self._cache_off_reason = reason
            for status in PollerStatus:
                self.metrics.events.status.labels(status.value).set(status is PollerStatus.DISABLED)
            _log.warning("the cache is off: %s", reason)
            return stores.objects.reads
        self._caching = build_caching(
            self._settings,
            stores.objects.reads,
            database,
            stores.log,
            self.metrics,
            lambda txn_ids: read_committed_writes(database, txn_ids),
            self._warming,
            self._positions.slot(self._siblings.own_index) if self._positions is not None else None,
            self._siblings.memory_directory,
            writes_files=not self._siblings.own_index,
        )
        if isinstance(self._authorizer, ExternalAuthorizer):
            follow_grants(self._settings, self._authorizer, self._caching.cache)
        self._caching.start(starting)
        if self._settings.cache.exactness == "lease":
            self.membership = start_lease(self._settings, self._caching, database, self.metrics.lease, starting)
        return self._caching.cache.reads

    def _stores(self, reads: MetadataReads, stores: DatabaseStores, tokens: TokenManager | None = None) -> Stores:
        """The stores for handlers, with these reads."""
        return Stores(
            reads, stores.objects.writes, stores.transactions, stores.log, self._site, stores.auxiliary, tokens
        )

    def _admin_sources(self, uri: str, database: Database, stores: DatabaseStores) -> AdminSources:
        caching = self._caching

        def read_notifications(
            request: NotificationEventRequest, known_event_id: int | None
        ) -> NotificationEventResponse:
            found = stores.log.get_next_notification(request, known_event_id)
            if found.events and caching is not None:
                caching.cache.reads.record_other_answer(found.events[-1].eventId)
            return found

        return AdminSources(
            version=program_version(),
            uri=uri,
            started_at_s=database.clock.epoch_s(),
            clock=database.clock,
            configuration_in_force=lambda: self._configuration,
            metrics=self.metrics,
            read_log_end=stores.log.current_event_id,
            read_notifications=read_notifications,
            store=stores.objects.reads,
            transactions=stores.transactions,
            cache=caching.cache if caching is not None else None,
            poller=caching.poller if caching is not None else None,
            operations=self.metrics.operations,
            kept_replies=KeptReplies(all_handlers(), self._stores(stores.objects.reads, stores), self._authorizer),
            cache_off_reason=self._cache_off_reason,
            thread_pool_loads=self._thread_pool_loads,
            traffic_by=self._traffic_by,
            ports=self._port_states,
            pending_restart=lambda: self._pending_restart,
            membership=self.membership,
            listeners=self._listener_gate(),
            bearers=self._bearers(),
        )

    def _bearers(self) -> Bearers | None:
        tokens = self._ports.tokens if self._ports is not None and self._settings.admin.jwt_rights_claim else None
        return Bearers(tokens) if tokens is not None else None

    def _listener_gate(self) -> ListenerGate | None:
        if self._authorizer is None:
            return None
        tokens = self._listener_tokens = listener_tokens(self._settings)
        return ListenerGate(self._authorizer, tokens, self._ports.tokens if self._ports is not None else None)

    def _listen(self, stores: Stores, database: Database, starting: ExitStack) -> str:
        settings = self._settings.server
        loop = EventLoopThread()
        loop.start()
        starting.callback(loop.stop)
        max_connections = connections_allowed(settings.max_connections)
        cache = self._caching.cache if self._caching is not None else None
        server = MetastoreServer(
            stores,
            all_handlers(),
            settings,
            self.metrics.server.observe_call,
            cache=cache.reading if cache is not None else None,
            position_source=position_source(database, cache.check, cache.freshness) if cache is not None else None,
            operations=self.metrics.operations,
            slow_call_s=self._settings.log.slow_call_s,
            max_connections=max_connections,
            on_transaction_thread=database.use_reserved_connections,
            connections=database.thread_connections,
            observe_wait=self.metrics.server.observe_wait,
            authorizer=self._authorizer,
            loads=self.metrics.loads,
        )
        self._dispatcher = server.dispatcher
        self._thread_pool_loads = server.thread_pool_loads
        self._traffic_by = server.traffic_by
        ports = self._ports = open_ports(self._settings, stores.delegation, server.listener.buffers)
        starting.callback(ports.close)
        try:
            loop.run(server.start(ports.ports, reuse_port=settings.workers > 1))
        except ListenError as error:
            raise PortError(
                error.where,
                error.error,
                if_in_use=OTHER_SERVER,
            ) from error
        starting.callback(_stop, server, loop, settings.drain_timeout_s + _STOP_MARGIN_S)
        if self._heartbeat is not None:
            loop.call_each(BEAT_INTERVAL_S, self._heartbeat.beat)
            starting.callback(self._heartbeat.end)
        listener = server.listener
        metrics = self.metrics.server
        metrics.connections.set_function(lambda: listener.connections)
        metrics.in_flight.set_function(lambda: listener.in_flight)
        metrics.bad_messages.set_function(lambda: listener.bad_messages)
        metrics.refused_connections.set_function(lambda: listener.admission.refused)
        metrics.displaced_connections.set_function(lambda: listener.admission.displaced)
        metrics.connections_limit.set(max_connections)
        metrics.timed_out_connections.include(lambda: {(kind,): n for kind, n in listener.timeouts.items()})
        metrics.buffered_bytes.set_function(lambda: listener.buffers.used_bytes)
        metrics.buffer_budget_bytes.set(listener.buffers.limit_bytes)
        metrics.connections_over_buffer_budget.set_function(lambda: listener.buffers.disconnected)
        metrics.session_bytes.set_function(lambda: listener.session_budget.used_bytes)
        metrics.refused_session_changes.set_function(lambda: listener.session_budget.refused)
        for name, pool in server.pools.by_name.items():
            metrics.show_thread_pool(name.value, pool.load)
        metrics.calls_over_client_limit.include(lambda: {(of,): n for of, n in listener.client_limits.refused.items()})
        metrics.refused_calls.set_function(lambda: listener.refused_calls)
        metrics.audit_lines_lost.set_function(lambda: server.audit.lost + lost_lines())
        metrics.audit_queue.set_function(lambda: server.audit.queued_bytes)
        if cache is not None and listener.hot_path is not None:
            self._count_hot_path(cache, listener.hot_path)
        self._show_ports(ports, listener)
        host, port = ports.ports[0].host, ports.ports[0].number
        return f"thrift://{f'[{host}]' if ':' in host else host}:{port}"

    def _show_ports(self, ports: Ports, listener: Listener) -> None:
        metrics = self.metrics.server
        metrics.tls_handshakes.include(ports.handshakes)
        metrics.authentications.include(ports.authentications)
        metrics.proxy_headers.include(ports.proxy_headers)
        for port in ports.ports:
            metrics.connections_by_port.labels(str(port.number)).set_function(partial(listener.connections_of, port))
            _log.info(
                "listening on %s:%d: %s, authentication: %s", port.host, port.number, port.uri, port.authentication
            )
        if any(port.mechanisms for port in ports.ports):
            for port in ports.ports:
                if not port.mechanisms:
                    _log.warning(
                        "port %d does not authenticate clients, although other ports do: everybody who can reach it may"
                        " do everything under any name",
                        port.number,
                    )
        self._port_states = lambda: tuple(
            PortState(port.uri, port.authentication, listener.connections_of(port)) for port in ports.ports
        )

    def _authorize(self, stores: DatabaseStores, groups: CachedGroups | None, starting: ExitStack) -> None:
        for _, settings in settings_of_ports(self._settings):
            require_authentication(settings)
        metrics = self.metrics.server
        policy = self._authorizer = self._policy = policy_file(self._settings)
        if policy is not None:
            keep_current(policy, self._settings.authorization.policy_check_interval_s, starting)
            metrics.policy_loads.include(lambda: {(outcome,): n for outcome, n in policy.outcomes.items()})
            metrics.policy_loaded.set_function(lambda: policy.loaded_at_s)
            if groups is not None:
                self._authorizer = GroupedPolicy(policy, groups)
            return
        service = policy_service(self._settings)
        self._authorizer = external_authorizer(self._settings, stores.auxiliary.rights, service, groups)
        if service is not None:
            metrics.policy_requests.include(lambda: {(outcome,): n for outcome, n in service.outcomes.items()})

    def _count_hot_path(self, cache: Cache, hot: HotPath) -> None:
        """Replies from the hot path count as calls and reads."""
        self.metrics.server.calls.include(lambda: {(method, "ok"): hits for method, hits in hot.hits.copy().items()})
        metrics = self.metrics.cache
        metrics.reads.include(lambda: {("reply", Reason.HIT): sum(hot.hits.copy().values())})
        metrics.checks.set_function(lambda: cache.check.checks + hot.checks)
        metrics.check_requests.set_function(lambda: cache.check.requests + hot.requests)


def _interrupt_stuck(database: Database) -> float:
    database.thread_connections.interrupt_stuck(_STUCK_S)
    return _STUCK_S / 10


def _stop(server: MetastoreServer, loop: EventLoopThread, timeout_s: float) -> None:
    """Stops the server. If this takes too long, the rest is shut down nevertheless."""
    try:
        loop.run(server.stop(), finite_s(timeout_s))
    except TimeoutError:
        _log.warning("the server has not stopped within %g s: running calls are aborted", timeout_s)
