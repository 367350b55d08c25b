"""The database at startup: opened from the settings, with a usable schema and Hive's first rows."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager

from sqlalchemy.exc import SQLAlchemyError

from hms_cache.clock import stored_s
from hms_cache.config import Settings
from hms_cache.config.database_url import masked
from hms_cache.errors import SchemaError, StartupError
from hms_cache.lease.unannounced import UnannouncedWrites
from hms_cache.metrics.registry import DatabaseMetrics
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.database_proxies import DISTRIBUTED_READS, SHARED_SESSIONS, problem_of_proxy
from hms_cache.store.engine.dialects import reason_of_stale_reads
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.engine.features import SchemaFeatures
from hms_cache.store.engine.sequences import raise_lagging_sequences
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.installation.check import check_schema, schema_version
from hms_cache.store.installation.foreign_key_indexes import (
    create_indexes_beside_writers,
    missing_indexes,
    missing_transaction_indexes,
)
from hms_cache.store.installation.init import ensure_default_database, ensure_default_roles, init_schema
from hms_cache.store.installation.required_parts import lacking_parts, summary_of
from hms_cache.store.installation.unversioned import require_room

_log = logging.getLogger(__name__)

#: The oldest schema that is used without an upgrade; what it lacks, the store does without.
OLDEST_SCHEMA = (3, 1)

_REMEDIES_OF_PROXIES = {
    SHARED_SESSIONS: "Have the pool keep sessions (PgBouncer: pool_mode = session), or name the server in"
    " database.url.",
    DISTRIBUTED_READS: "Have it send everything to the primary (Pgpool-II: load_balance_mode = off, or"
    " database_redirect_preference_list; others: no splitting of reads and writes), or name the primary in"
    " database.url.",
}


@contextmanager
def refusals_explained() -> Iterator[None]:
    """Converts refusals of the database (access denied, no such database, …) to a short message instead of a stack
    trace."""
    try:
        yield
    except SQLAlchemyError as error:
        reason = getattr(error, "orig", None) or error
        raise StartupError(
            f"the database refuses: {reason}", remedy="Check the account, its rights, and the database's name."
        ) from error


@contextmanager
def replicas_allowed(database: Database) -> Iterator[None]:
    """Skips a first write that a replica refuses: its primary has the rows, and clients can read.

    Raises the original exception if the database is not a replica.
    """
    try:
        yield
    except DatabaseUnavailable:
        with database.checking() as connection:
            reason = reason_of_stale_reads(connection)
        if reason is None:
            raise
        _log.warning("nothing can be written, and nothing is answered from memory: %s", reason)


def open_database(settings: Settings, metrics: DatabaseMetrics | None = None) -> Database:
    """The database of the settings, not connected yet."""
    given = settings.database
    try:
        database = Database(
            given.sqlalchemy_url(), given, reserved_connections=settings.server.transaction_threads, metrics=metrics
        )
        # Until this server becomes a member, if it does.
        database.write_guard = UnannouncedWrites(database, is_set_to_check=settings.cache.exactness == "check")
        return database
    except ModuleNotFoundError as error:
        raise StartupError(
            f"the database needs the driver {error.name}", remedy="Install it: pip install 'hms-cache[postgresql]'"
        ) from error


def require_schema(database: Database, settings: Settings) -> None:
    """Checks that the database can be served. An embedded one gets its schema; any other must have it.

    Raises ``SchemaError`` or ``StartupError`` with a remedy, ``DatabaseUnavailable`` if it does not answer.
    """
    # Others are first asked whether a router is in between: a replica may not have the schema yet.
    if settings.database.is_sqlite and schema_version(database) is None:
        init_schema(database)
    require_served_schema(database, settings)


def require_served_schema(database: Database, settings: Settings) -> SchemaFeatures:
    """Like :func:`require_schema`, but changes nothing. Returns which parts of the schema exist."""
    problem = problem_of_proxy(database)
    if problem is not None:
        raise StartupError(problem, remedy=_REMEDIES_OF_PROXIES[problem])
    create = f"Create it: hms-cache schema init --database '{masked(settings.database.url)}'"
    if (file := database.missing_file) is not None:  # SQLite would create it, without a schema
        raise SchemaError(f"the database has no metastore schema: there is no file {file}", remedy=create)
    features = database.features
    version = features.version
    if version is None:
        with database.loading() as connection:
            require_room(connection)
        raise SchemaError("the database has no metastore schema", remedy=create)
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST_SCHEMA:
        raise SchemaError(
            f"the database has a metastore schema of version {version}; 3.1 and later can be served",
            remedy="Upgrade it with Hive's schematool first.",
        )
    lacking = lacking_parts(features)
    if lacking:
        raise SchemaError(
            f"the metastore schema calls itself {version}, but lacks what all since 3.1 have: {summary_of(lacking)}",
            remedy="An upgrade or a restore was cut short, the version is not true, or the account has no right to some"
            " tables. Restore the database and upgrade it with Hive's schematool, or grant the account its rights.",
        )
    return features


def ensure_first_rows(database: Database, settings: Settings) -> None:
    """Creates the roles and the database ``default`` that every metastore has, as Hive's server does when it starts.

    Sequences below the ids in their table (after a restored dump, or with rows inserted manually) are raised first:
    they would make every write of their kind fail.
    """
    features = database.features  # read before the write takes its connection

    def work(transaction: WriteTransaction) -> None:
        now_s = stored_s(database.clock.epoch_s())
        for sequence in raise_lagging_sequences(transaction.connection):
            _log.warning(
                "the sequence of %s was behind its table, at %s: raised to %d",
                *(sequence.model, sequence.next_value, sequence.raised_to),
            )
        ensure_default_roles(transaction.connection, now_s)
        warehouse = settings.warehouse
        ensure_default_database(
            transaction.connection, warehouse.directory, now_s, features, external_uri=warehouse.external_directory
        )

    run_write(database, work)


def create_schema(settings: Settings) -> str:
    """Implements ``hms-cache schema init``; returns the message to print."""
    database = open_database(settings)
    with closing(database), refusals_explained():
        before = schema_version(database)
        if before is not None:
            require_served_schema(database, settings)
            return f"the database has its schema already: version {before}"
        init_schema(database)
        return f"created the schema: version {schema_version(database)}"


def index_schema(settings: Settings, *, of_transactions: bool = False) -> list[str]:
    """Implements ``hms-cache schema index``: creates the missing indexes of foreign keys, and returns them.

    `of_transactions`: also those of locks and changed rows.
    """
    finders = (missing_indexes, missing_transaction_indexes) if of_transactions else (missing_indexes,)
    database = open_database(settings)
    with closing(database), refusals_explained():
        require_served_schema(database, settings)
        return [str(one) for find in finders for one in create_indexes_beside_writers(database, find)]


def report_schema(settings: Settings) -> tuple[str, list[str]]:
    """Implements ``hms-cache schema check``: the schema's version, and its differences from Hive 4.0's, one per line.

    Raises ``SchemaError`` if there is no schema, or one that cannot be served.
    """
    database = open_database(settings)
    database.keep_as_found()
    with closing(database), refusals_explained():
        version = require_served_schema(database, settings).version
        return str(version), [str(difference) for difference in check_schema(database)]
