"""A router that sends reads to replicas, between this server and its database: the server does not start."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url
from sqlalchemy.event import listen

from hms_cache.app.database import require_schema
from hms_cache.config import load
from hms_cache.errors import StartupError
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.database_proxies import problem_of_proxy
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.installation.init import init_schema
from tests.conftest import ServerLookup
from tests.consistency.observers import wait_until
from tests.databases import (
    DatabaseServer,
    ServerMissing,
    closing,
    free_port,
    server_directory,
    start_mariadb,
    start_mariadb_replica,
    start_postgresql,
    start_postgresql_standby,
    started,
)
from tests.server.haproxy import haproxy
from tests.store.foundation.test_settings_of_the_server import exercise

PGPOOL = """
backend_clustering_mode = 'streaming_replication'
listen_addresses = '127.0.0.1'
port = {port}
pcp_port = {pcp_port}
unix_socket_directories = '{directory}'
pcp_socket_dir = '{directory}'
pid_file_name = '{directory}/pgpool.pid'
logdir = '{directory}'
num_init_children = 40
sr_check_period = 1
sr_check_user = 'postgres'
{backends}
{more}
"""
BACKEND = """
backend_hostname{number} = '127.0.0.1'
backend_port{number} = {port}
backend_weight{number} = 1
"""


def start_pgpool(primary: DatabaseServer, standby: DatabaseServer, more: str) -> DatabaseServer:
    """Starts Pgpool-II before two servers. Raises ServerMissing."""
    program = shutil.which("pgpool", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        raise ServerMissing("install pgpool2")
    directory, user = server_directory("postgres")
    port = free_port()
    file, accounts = directory / "pgpool.conf", directory / "pcp.conf"
    backends = "".join(
        BACKEND.format(number=number, port=server.admin_url.port) for number, server in enumerate((primary, standby))
    )
    file.write_text(PGPOOL.format(port=port, pcp_port=free_port(), directory=directory, backends=backends, more=more))
    accounts.write_text("")
    if user is not None:
        for path in (file, accounts):
            os.chown(path, pwd.getpwnam(user).pw_uid, -1)
    url = primary.admin_url.set(host="127.0.0.1", port=port)
    router = started([program, "-n", "-f", str(file), "-F", str(accounts)], url, directory, user)
    wait_until(lambda: _standby_is_known(router), "Pgpool-II knows the standby")
    return router


def _standby_is_known(router: DatabaseServer) -> bool:
    """Until its first check, each server counts as a primary's equal."""
    with router.admin() as connection:
        nodes = connection.exec_driver_sql("SHOW pool_nodes").mappings().all()
    return sorted((node["role"], node["status"]) for node in nodes) == [("primary", "up"), ("standby", "up")]


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[DatabaseServer, DatabaseServer]]:
    """A primary and its standby, which stands still."""
    with ExitStack() as stack:
        try:
            primary = start_postgresql()
            stack.callback(primary.stop)
            standby = start_postgresql_standby(primary)
        except ServerMissing as missing:
            pytest.skip(str(missing))
        stack.callback(standby.stop)
        yield primary, standby


@pytest.fixture
def through(pair: tuple[DatabaseServer, DatabaseServer]) -> Iterator[Callable[[str], str]]:
    """The URL of a new database through Pgpool-II with these settings, in which `DATABASE` is its name."""
    primary, standby = pair
    with ExitStack() as stack:

        def url_with(more: str) -> str:
            url = primary.create_database()
            stack.callback(primary.drop_database, url)
            with closing(Database(url)) as database:
                init_schema(database)
            try:
                router = start_pgpool(primary, standby, more.replace("DATABASE", str(make_url(url).database)))
            except ServerMissing as missing:
                pytest.skip(str(missing))
            stack.callback(router.stop)
            address = router.admin_url
            return make_url(url).set(host=address.host, port=address.port).render_as_string(False)

        yield url_with


BALANCED = "load_balance_mode = on\n"


@pytest.mark.soak
@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("settings", "is_usable"),
    [
        ("", False),  # Pgpool-II's default is to balance
        pytest.param(BALANCED, False, marks=pytest.mark.long),
        pytest.param(BALANCED + "statement_level_load_balance = on", False, marks=pytest.mark.long),
        pytest.param(
            BALANCED + "database_redirect_preference_list = 'DATABASE:standby'", False, marks=pytest.mark.long
        ),
        (BALANCED + "database_redirect_preference_list = 'DATABASE:primary'", True),
        pytest.param("load_balance_mode = off", True, marks=pytest.mark.long),
    ],
)
def test_pgpool_must_send_everything_to_the_primary(
    through: Callable[[str], str], tmp_path: Path, settings: str, is_usable: bool
) -> None:
    given = {"database.url": through(settings), "warehouse.directory": str(tmp_path)}
    configuration = load(command_line=given, environment={}).settings
    with closing(Database(given["database.url"])) as database:
        if is_usable:
            require_schema(database, configuration)
            exercise(database, tmp_path)
        else:
            with pytest.raises(StartupError, match="behind a router that sends reads to another server") as refused:
                require_schema(database, configuration)
            assert "load_balance_mode = off" in str(refused.value)


@pytest.mark.soak
@pytest.mark.mariadb
def test_sessions_must_not_lead_to_different_servers(tmp_path: Path) -> None:
    """HAProxy before a primary and a replica: each connection is one of the next server."""
    with ExitStack() as stack:
        try:
            primary = start_mariadb("--log-bin", "--server-id=1")
            stack.callback(primary.stop)
            replica = start_mariadb_replica(primary)
        except ServerMissing as missing:
            pytest.skip(str(missing))
        stack.callback(replica.stop)
        url = primary.create_database()
        with closing(Database(url)) as database:
            init_schema(database)
        servers = "".join(
            f"    server s{server.admin_url.port} 127.0.0.1:{server.admin_url.port}\n" for server in (primary, replica)
        )
        configuration = f"""
listen database
    bind 127.0.0.1:PORT
    mode tcp
    balance roundrobin
    timeout connect 5s
    timeout client 1m
    timeout server 1m
{servers}"""
        port = stack.enter_context(haproxy(tmp_path, configuration))
        with closing(Database(url)) as database:
            assert problem_of_proxy(database) is None
        balanced = make_url(url).set(host="127.0.0.1", port=port).render_as_string(False)
        with closing(Database(balanced)) as database:
            assert "another server than writes" in str(problem_of_proxy(database))


@pytest.mark.parametrize("database_kind", ["mariadb", "postgresql"], indirect=True)
def test_a_server_by_itself_is_usable_and_is_not_asked_about_a_router(initialized_database: Database) -> None:
    """PostgreSQL would log an error at each start."""
    statements: list[str] = []
    listen(initialized_database.check_engine, "before_cursor_execute", lambda *event: statements.append(event[2]))
    assert problem_of_proxy(initialized_database) is None
    assert statements and not [one for one in statements if "pool" in one]


def test_an_account_that_may_only_read_finds_nothing(database_servers: ServerLookup) -> None:
    server = database_servers("postgresql")
    assert isinstance(server, DatabaseServer)
    url = server.initialized_database()
    try:
        reading = f"{url}?options=-cdefault_transaction_read_only%3Don"
        with closing(Database(reading)) as database:
            assert problem_of_proxy(database) is None
    finally:
        server.give_back(url)


@pytest.mark.parametrize("database_kind", ["postgresql"], indirect=True)
def test_a_locked_table_does_not_prevent_the_start(
    initialized_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a backup or a change of the schema."""

    @contextmanager
    def writing() -> Iterator[None]:
        raise RetryableConflict("canceling statement due to lock timeout")
        yield

    monkeypatch.setattr(initialized_database, "writing", writing)
    assert problem_of_proxy(initialized_database) is None
