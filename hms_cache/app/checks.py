"""``hms-cache check``: checks whether this server could run here and its cache be trusted, and reports all findings.

Each check examines one subject and adds findings, each with its remedy. An error prevents the server from starting or
makes the cache wrong; a warning means lower speed or later problems. Nothing is changed, except that a file, with its
missing directories, is written to the warehouse and removed again.
"""

from __future__ import annotations

import math
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Literal
from urllib.parse import urlsplit

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from thrift.Thrift import TException

from hms_cache.app.database import open_database, require_served_schema
from hms_cache.app.peers import read_peer_settings
from hms_cache.app.security.checks import check_security, is_loopback
from hms_cache.client import Authentication, AuthenticationRefusedError, CredentialsError
from hms_cache.client.authentication.values import UNAUTHENTICATED
from hms_cache.config import Configuration, Settings
from hms_cache.errors import (
    ConfigurationError,
    DatabaseUnavailableError,
    HmsCacheError,
    SchemaError,
    StartupError,
)
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.store.engine.active_node import other_active_node
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.dialects import (
    database_time_ms,
    reason_of_stale_reads,
    settings_that_lose_commits,
)
from hms_cache.store.engine.sequences import ID_COLUMNS
from hms_cache.store.installation.check import check_schema
from hms_cache.store.installation.directories import check_directories
from hms_cache.store.installation.foreign_key_indexes import missing_indexes
from hms_cache.store.schema import DBS, NOTIFICATION_LOG, NOTIFICATION_SEQUENCE, SEQUENCE_TABLE, TBLS
from hms_cache.store.warehouse import AllowedLocation, Warehouse
from hms_cache.store.warehouse.mounts import file_system_of
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.values import frozen

#: A larger difference of clocks confuses people who compare logs; the servers of a set use the database's time.
_CLOCK_SKEW_S = 5.0

#: Only tables created at least this long after the oldest event are looked up in the log, since writers use their own
#: clocks.
_TIME_SLACK_S = 60

#: Number of the newest tables that are looked up in the log; their names are in one statement.
_NEWEST_TABLES = 200

_SEQUENCE_PACKAGE = "org.apache.hadoop.hive.metastore.model."


@frozen
class Finding:
    """One problem and its remedy."""

    severity: Literal["error", "warning"]
    problem: str
    remedy: str


class Findings:
    """The report to which checks add."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.passed: list[str] = []

    def error(self, problem: str, remedy: str) -> None:
        self.found.append(Finding("error", problem, remedy))

    def warning(self, problem: str, remedy: str) -> None:
        self.found.append(Finding("warning", problem, remedy))

    @contextmanager
    def check(self, name: str) -> Iterator[None]:
        """Context of a check, which counts as passed if it adds nothing."""
        before = len(self.found)
        yield
        if len(self.found) == before:
            self.passed.append(name)


def run_checks(
    settings: Settings, peers: tuple[str, ...] = (), peer_authentication: Authentication = UNAUTHENTICATED
) -> Findings:
    """Runs all checks, in order; those of the database only if it answers.

    ``peers``: ``thrift://host:port`` of other metastores; ``peer_authentication``: how to authenticate with them.
    """
    findings = Findings()
    try:
        database = open_database(settings)
    except StartupError as error:
        findings.error(error.problem, error.remedy)
        database = None
    if database is not None:
        database.keep_as_found()
        with closing(database):
            _check_database(findings, settings, database)
    with findings.check("the warehouse can be written"):
        _check_warehouse(findings, settings)
    with findings.check("clients reach the addresses they are told"):
        _check_addresses(findings, settings)
    check_security(findings, settings)
    for peer in peers:
        with findings.check(f"the peer {peer} logs its writes"):
            _check_peer(findings, settings, peer, peer_authentication)
    if peers and settings.cache.peers == "none":
        findings.error(
            "cache.peers is none although other metastores write to the database",
            "Set cache.peers to hive4 or hive3: objects whose changes they do not log must not be cached.",
        )
    return findings


def check_honoured(findings: Findings, configuration: Configuration) -> None:
    """Reports settings in the site files that this server does not support."""
    with findings.check("what the site files ask for is done"):
        for one in configuration.accepted_insecure:
            findings.warning(f"accepted although insecure: {one.name} = {one.value} ({one.origin})", one.note)
        if configuration.site_review.ignored:
            findings.warning(
                f"{len(configuration.site_review.ignored)} keys of the site files are not honoured",
                "See all of them: hms-cache config check --site …",
            )


def _check_database(findings: Findings, settings: Settings, database: Database) -> None:
    checks: tuple[tuple[str, Callable[[Findings, Settings, Database], None]], ...] = (
        ("the database has a schema that can be served", _check_schema),
        ("the database is the primary", _check_primary),
        ("each foreign key has an index", _check_indexes),
        ("no sequence is behind its table", _check_sequences),
        ("the notification log has no gap", _check_log),
        ("the newest tables are in the notification log", _check_newest_tables),
        ("locks of clients that are gone are released", _check_housekeeping),
        ("the clocks agree", _check_clock),
        ("directories and rows agree", _check_directories),
    )
    if settings.cache.exactness == "lease":
        checks = (*checks, ("the database keeps what it commits, as leases need", _check_commits_stay))
    for name, check in checks:
        with findings.check(name):
            try:
                check(findings, settings, database)
            except DatabaseUnavailableError as error:
                findings.error(f"the database does not answer: {error}", "Check database.url, the network, the server.")
                return
            except SchemaError as error:
                findings.error(error.problem, error.remedy)
                return
            except SQLAlchemyError as error:
                reason = getattr(error, "orig", None) or error
                findings.error(
                    f"the database refuses: {reason}", "Check the account, its rights, and the database's name."
                )
                return


def _check_schema(findings: Findings, settings: Settings, database: Database) -> None:
    version = str(require_served_schema(database, settings).version)
    differences = check_schema(database)
    if differences and version.startswith("4.0."):
        findings.warning(
            f"the schema calls itself {version} but has {len(differences)} differences, the first: {differences[0]}",
            "See all of them: hms-cache schema check",
        )


def _check_indexes(findings: Findings, _settings: Settings, database: Database) -> None:
    with database.loading() as connection:
        missing = missing_indexes(connection)
    if missing:
        findings.warning(
            f"{len(missing)} foreign keys have no index, the first: {missing[0]}; a drop of a table with many skewed"
            " values takes minutes, under locks",
            "Create them, while the servers run: hms-cache schema index",
        )


def _check_primary(findings: Findings, _settings: Settings, database: Database) -> None:
    with database.checking() as connection:
        reason = reason_of_stale_reads(connection)
        active = other_active_node(connection)
    if reason is not None:
        findings.error(f"the cache would stay off: {reason}", "Name the primary in database.url.")
    if active is not None:
        findings.warning(
            f"servers write through another node of the Galera cluster ({active}): each change of the node interrupts"
            " their writes",
            "Let database.url lead all servers to the same node.",
        )


def _check_commits_stay(findings: Findings, _settings: Settings, database: Database) -> None:
    with database.checking() as connection:
        risky = settings_that_lose_commits(connection)
    if risky:
        findings.warning(
            f"a crash of the database may lose committed transactions ({', '.join(risky)}): afterwards, answers by"
            " lease may contain lost changes until the lease ends",
            "Have the database write each commit to the disk, or set cache.exactness to check.",
        )


def _check_sequences(findings: Findings, _settings: Settings, database: Database) -> None:
    with database.loading() as connection:
        rows = connection.execute(select(SEQUENCE_TABLE.c.SEQUENCE_NAME, SEQUENCE_TABLE.c.NEXT_VAL)).all()
        values: dict[str, int] = {row[0]: row[1] for row in rows}
        for model, column in ID_COLUMNS.items():
            next_value = values.get(_SEQUENCE_PACKAGE + model)
            if next_value is None:
                continue
            largest = connection.execute(select(func.coalesce(func.max(column), 0))).scalar_one()
            if next_value <= largest:
                findings.warning(
                    f"the sequence of {model} would hand out {next_value}, but {largest} is in use",
                    "Start an hms-cache server once: it raises such sequences.",
                )


def _check_log(findings: Findings, settings: Settings, database: Database) -> None:
    log = NOTIFICATION_LOG.c
    with database.loading() as connection:
        next_event_id, sequence_rows = connection.execute(
            select(func.max(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID), func.count())
        ).one()
        first, last, count = connection.execute(
            select(func.min(log.EVENT_ID), func.max(log.EVENT_ID), func.count(log.EVENT_ID))
        ).one()
        oldest_s = connection.execute(select(func.min(log.EVENT_TIME))).scalar()
    if sequence_rows > 1:
        findings.error(
            f"NOTIFICATION_SEQUENCE has {sequence_rows} rows: writers that lock different rows use an event id twice",
            "Stop all metastores and delete all but the row with the highest NEXT_EVENT_ID.",
        )
    if last is not None and (next_event_id or 1) != last + 1:
        findings.error(
            f"the log ends with event {last}, but the next one would be {next_event_id}",
            "Rows were changed by hand. Set NEXT_EVENT_ID of NOTIFICATION_SEQUENCE to the last event plus one.",
        )
    if last is not None and last - first + 1 != count:
        findings.error(
            f"the log has {count} events between {first} and {last}: some are missing or doubled",
            "A writer whose listener is not transactional leaves such gaps: see --peer.",
        )
    if (
        oldest_s is not None
        and time.time() - oldest_s > 2 * settings.events.retention_s + settings.events.clean_interval_s
    ):
        findings.warning(
            "events are kept for more than twice events.retention_s",
            "Is a server running that deletes them? Java's does so with its EventCleanerTask, hms-cache always.",
        )


def _check_newest_tables(findings: Findings, _settings: Settings, database: Database) -> None:
    """Looks for tables that were committed without an event, or before it.

    A transactional listener writes the event in the transaction of the table, so one snapshot shows both. Tables older
    than the log, and those of catalogs that Hive's own writers may not name, are left out.
    """
    log = NOTIFICATION_LOG.c
    with database.loading() as connection:
        oldest_s = connection.execute(select(func.min(log.EVENT_TIME))).scalar()
        if oldest_s is None:
            return
        tables = [
            (database_name.lower(), name.lower())
            for database_name, name in connection.execute(
                select(DBS.c.NAME, TBLS.c.TBL_NAME)
                .join(DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
                .where(DBS.c.CTLG_NAME == DEFAULT_CATALOG, TBLS.c.CREATE_TIME > oldest_s + _TIME_SLACK_S)
                .order_by(TBLS.c.TBL_ID.desc())
                .limit(_NEWEST_TABLES)
            )
        ]
        logged = connection.execute(
            select(log.DB_NAME, log.TBL_NAME).where(log.TBL_NAME.in_([name for _, name in tables])).distinct()
        ).all()
    named = {(str(database_name).lower(), name.lower()) for database_name, name in logged}
    unnamed = [table for table in tables if table not in named]
    if unnamed:
        findings.error(
            f"no event names {len(unnamed)} of the {len(tables)} newest tables, the last of them "
            f"{'.'.join(unnamed[0])}: a writer logs only after its commits, or not at all",
            "Find it with --peer and give it a transactional listener; flush the caches after that.",
        )


def _check_housekeeping(findings: Findings, settings: Settings, _database: Database) -> None:
    if math.isinf(settings.transactions.housekeeping_interval_s):
        findings.warning(
            "this server runs no housekeeping (transactions.housekeeping_interval_s = inf)",
            "Make sure that another server of this database does. Otherwise locks of clients that are gone are never"
            " released, and rows of transactions accumulate.",
        )


def _check_clock(findings: Findings, _settings: Settings, database: Database) -> None:
    with database.checking() as connection:
        before_s = time.time()
        there_s = database_time_ms(connection) / 1000
        after_s = time.time()
    skew_s = max(before_s - there_s, there_s - after_s, 0.0)
    if skew_s > _CLOCK_SKEW_S:
        findings.warning(
            f"this machine's clock and the database's are {skew_s:.0f} s apart",
            "Synchronize both, with NTP for instance.",
        )


def _check_directories(findings: Findings, settings: Settings, database: Database) -> None:
    check_directories(findings, Warehouse(settings.warehouse), database)


def _check_warehouse(findings: Findings, settings: Settings) -> None:
    if settings.warehouse.files == "leave":
        return
    warehouse = Warehouse(settings.warehouse)
    for directory in dict.fromkeys((settings.warehouse.directory, settings.warehouse.external_or_managed_directory)):
        try:
            root = warehouse.allow(warehouse.location(directory))
            assert root is not None
            probe = root.child(f".hms-cache-check-{uuid.uuid4().hex}")
            with _removing_new_directories(warehouse, root):
                warehouse.make_directory(root)
                warehouse.write_file(probe, b"")
                warehouse.delete_file(probe)
        except MetaException as error:
            findings.error(
                f"the warehouse {directory} cannot be written: {error.message}",
                "Give this account the right, name another directory, or set warehouse.files to leave.",
            )


@contextmanager
def _removing_new_directories(warehouse: Warehouse, root: AllowedLocation) -> Iterator[None]:
    """Removes directories that were created meanwhile, unless they are in use. Raises MetaException."""
    paths = [one.path for one in (root.location, *root.location.ancestors)]

    def missing() -> list[str]:
        return [path for path in paths if not os.path.lexists(path)]

    def remove() -> None:
        with suppress(OSError):
            for path in made:
                os.rmdir(path)

    where = file_system_of(root)
    made = warehouse.run_operation(where, "inspect", f"Cannot look at {root}", missing) if root.is_local else []
    was_there = root.is_local or warehouse.is_directory(root)
    try:
        yield
    finally:
        if made:
            warehouse.run_operation(where, "remove", f"Cannot remove {root}", remove)
        elif not was_there:
            warehouse.remove_empty_directory(root)


def _check_addresses(findings: Findings, settings: Settings) -> None:
    """A site file has the addresses of metastores for clients, but none to listen on: the default is the loopback
    address."""
    advertised = [
        urlsplit(uri.strip()).hostname or "" for uri in settings.server.advertised_uris.split(",") if uri.strip()
    ]
    elsewhere = [host for host in advertised if not is_loopback(host)]
    if elsewhere and all(is_loopback(port.host) for port in settings.server.ports()):
        findings.warning(
            f"server.advertised_uris names {', '.join(elsewhere)}, but the server listens on {settings.server.host},"
            " where no other machine reaches it",
            "Set server.host to 0.0.0.0, or to an address of this machine.",
        )


def _check_peer(findings: Findings, settings: Settings, address: str, authentication: Authentication) -> None:
    try:
        peer = read_peer_settings(address, authentication)
    except (AuthenticationRefusedError, CredentialsError, ConfigurationError) as error:
        findings.error(
            f"the peer {address} cannot be queried: {error}",
            "Set --peer-auth to how this command authenticates there: see docs/security.md.",
        )
        return
    except (TException, OSError, EOFError, HmsCacheError) as error:
        findings.error(
            f"the peer {address} does not answer: {error}",
            "Check its address. The peer must use binary Thrift, and TLS if the address begins with thrift+tls://. If"
            " it authenticates clients, use --peer-auth.",
        )
        return
    if not peer.logs_in_transaction:
        how = "only after its commits, so that a crash loses events" if peer.logs_after_commit else "none of its writes"
        findings.error(
            f"the peer {address} logs {how}",
            "Have org.apache.hive.hcatalog.listener.DbNotificationListener in its"
            " metastore.transactional.event.listeners.",
        )
    for name, theirs_s, ours_s in (
        ("metastore.txn.timeout", peer.txn_timeout_s, settings.transactions.timeout_s),
        ("metastore.txn.opentxn.timeout", peer.open_txn_timeout_s, settings.transactions.open_timeout_ms / 1000),
    ):
        if theirs_s is not None and theirs_s != ours_s:
            findings.warning(
                f"{name} is {theirs_s:g} s at the peer {address} and {ours_s:g} s here",
                "All servers of a database must agree on it.",
            )
    if peer.retention_s is not None and peer.retention_s > settings.events.retention_s:
        findings.warning(
            f"events are kept for {peer.retention_s:g} s at the peer {address}, and this server would delete them after"
            f" {settings.events.retention_s:g} s",
            f"Set events.retention_s to {peer.retention_s:g}: a reader that is further behind has to start again.",
        )
    translates = settings.catalog.metadata_translation == "hive4"
    if peer.translates != translates:
        translating, other = ("this server", f"the peer {address}")[:: 1 if translates else -1]
        findings.warning(
            f"{translating} makes external tables of managed ones that are not transactional, and {other} does not",
            "Where clients rely on it set catalog.metadata_translation to hive4, else take the class out of"
            " metastore.metadata.transformer.class, which has it by default in Hive 4.",
        )
