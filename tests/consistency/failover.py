"""A database server and its replica, and the steps of a failover that loses one event.

The contents of the database are read with separate statements, directly at the server: not through a proxy, and not
through code of this project with a cache.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from sqlalchemy import create_engine, select
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.metadata import MetadataStore
from hms_cache.store.engine.database import Database
from hms_cache.store.installation.init import init_schema
from hms_cache.store.schema import NOTIFICATION_SEQUENCE, TABLE_PARAMS, TBLS
from tests.cache.world import CATALOG, Server, changed_table
from tests.consistency.observers import wait_until
from tests.databases import (
    DatabaseServer,
    closing,
    start_mariadb,
    start_mariadb_replica,
    start_postgresql,
    start_postgresql_standby,
)

TABLES = ("t", "u")
VERSION = "version"
Versions = tuple[str, str]
"""The versions of both tables."""

_ACCOUNT = "metastore"


class Pair:
    """Primary and replica with one database. Stopped with the stack."""

    def __init__(self, kind: str, directory: Path, stack: ExitStack) -> None:
        self.kind = kind
        self._directory = directory
        self._stack = stack
        self.primary = start_mariadb("--log-bin", "--server-id=1") if kind == "mariadb" else start_postgresql()
        stack.callback(self.primary.stop)
        url = self.primary.create_database()
        if kind == "mariadb":
            self.replica = start_mariadb_replica(self.primary)
            self._make_account()
        else:
            self.replica = start_postgresql_standby(self.primary)
        stack.callback(self.replica.stop)
        with closing(Database(url)) as database:
            init_schema(database)
        self.name = make_url(url).database
        self._writers: dict[int, MetadataStore] = {}

    def _make_account(self) -> None:
        """Creates an account to which `read_only` applies; it does not apply to the administrator's."""
        with self.primary.admin() as connection:
            connection.exec_driver_sql(f"CREATE USER '{_ACCOUNT}'@'127.0.0.1'")
            connection.exec_driver_sql(
                f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX ON *.* TO '{_ACCOUNT}'@'127.0.0.1'"
            )

    def url(self, server: DatabaseServer, port: int | None = None) -> str:
        """Returns the URL of the metastore's account at this server, through another port if given."""
        url = server.admin_url.set(database=self.name, port=port or server.admin_url.port)
        if self.kind == "mariadb":
            url = url.set(username=_ACCOUNT)
        return url.render_as_string(hide_password=False)

    def writer(self, server: DatabaseServer) -> MetadataStore:
        """A store without a cache at this server."""
        number = id(server)
        if number not in self._writers:
            made = Server(self.url(server), self._directory)
            self._stack.callback(made.close)
            self._writers[number] = made.objects
        return self._writers[number]

    def write(self, server: DatabaseServer, table: str, version: str) -> None:
        """One event."""
        store = self.writer(server)
        store.writes.tables.alter_table(
            TableName(CATALOG, "d", table), changed_table(store, "d", table, **{VERSION: version})
        )

    def versions(self, server: DatabaseServer) -> Versions:
        """The current version of both tables."""
        found = select(TBLS.c.TBL_NAME, TABLE_PARAMS.c.PARAM_VALUE).join(
            TABLE_PARAMS, TABLE_PARAMS.c.TBL_ID == TBLS.c.TBL_ID
        )
        engine = create_engine(self._sqlalchemy_url(server), poolclass=NullPool)
        with engine.connect() as connection:
            rows = connection.execute(found.where(TABLE_PARAMS.c.PARAM_KEY == VERSION)).tuples().all()
        versions = dict(rows)
        return versions.get("t", ""), versions.get("u", "")

    def last_event_id(self, server: DatabaseServer) -> int:
        """The end of the log."""
        engine = create_engine(self._sqlalchemy_url(server), poolclass=NullPool)
        with engine.connect() as connection:
            return int(connection.execute(select(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID)).scalar_one()) - 1

    def _sqlalchemy_url(self, server: DatabaseServer) -> str:
        url = server.admin_url.set(database=self.name)
        return url.render_as_string(hide_password=False)

    def wait_for_replica(self) -> None:
        """Waits until the replica contains what the primary does."""

        def is_equal() -> bool:
            with suppress(Exception):  # its tables may not be there yet
                return self.last_event_id(self.replica) == self.last_event_id(self.primary)
            return False

        wait_until(is_equal, "the replica has caught up")

    def stop_replication(self) -> None:
        """Stops replication: later commits of the primary are lost when the replica is promoted."""
        with self.replica.admin() as connection:
            if self.kind == "mariadb":
                connection.exec_driver_sql("STOP SLAVE")
                return
            connection.exec_driver_sql("ALTER SYSTEM SET primary_conninfo = ''")
            connection.exec_driver_sql("SELECT pg_reload_conf()")
            count = "SELECT count(*) FROM pg_stat_wal_receiver"
            wait_until(lambda: connection.exec_driver_sql(count).scalar_one() == 0, "it receives no more")

    def promote(self) -> None:
        """From now on, the replica is the primary."""
        with self.replica.admin() as connection:
            if self.kind == "mariadb":
                connection.exec_driver_sql("RESET SLAVE ALL")
                connection.exec_driver_sql("SET GLOBAL read_only = 0")
            else:
                connection.exec_driver_sql("SELECT pg_promote()")

    def demote(self) -> None:
        """Makes the primary read-only; its connections stay open."""
        with self.primary.admin() as connection:
            connection.exec_driver_sql("SET GLOBAL read_only = 1")

    def hang(self) -> None:
        """Makes the primary hang until the end of the test: it does not answer, and closes no connection."""
        processes = [self.primary.process_id]
        if self.kind == "postgresql":
            children = Path(f"/proc/{processes[0]}/task/{processes[0]}/children").read_text()
            processes += map(int, children.split())
        self._stack.callback(_signal, processes, signal.SIGCONT)
        _signal(processes, signal.SIGSTOP)


def _signal(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


class Epochs:
    """The states of the database and their times: from `began`, before the first commit of a state, until after the
    next state's."""

    def __init__(self) -> None:
        self.states: list[Versions] = []
        self.from_s: list[float] = []
        self.until_s: list[float] = []

    def begin(self, make: Callable[[], object], read: Callable[[], Versions]) -> None:
        """Runs a change to the next state, and records it. The previous state may be visible until it has ended."""
        began_s = time.monotonic()
        make()
        ended_s = time.monotonic()
        if self.until_s:
            self.until_s[-1] = ended_s
        self.states.append(read())
        self.from_s.append(began_s)
        self.until_s.append(float("inf"))

    def explains(self, table: str, version: str, began_s: float, ended_s: float) -> bool:
        """Whether a read at this time may have returned this."""
        index = TABLES.index(table)
        return any(
            state[index] == version and from_s <= ended_s and began_s <= until_s
            for state, from_s, until_s in zip(self.states, self.from_s, self.until_s, strict=True)
        )
