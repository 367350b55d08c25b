"""A pooler between this server and PostgreSQL: it works if it keeps sessions, and is refused if not."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import make_url, text

from hms_cache.app.database import open_database, require_served_schema
from hms_cache.config import load
from hms_cache.config.sections import DatabaseSettings
from hms_cache.errors import ConfigurationError, StartupError
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.database_proxies import shares_sessions
from hms_cache.store.engine.drivers.postgresql_options import settings_of
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.installation.init import init_schema
from tests.conftest import ServerLookup
from tests.databases import DatabaseServer, ServerMissing, closing, free_port, server_directory, started
from tests.store.foundation.test_settings_of_the_server import exercise

pytestmark = pytest.mark.postgresql

CONFIGURATION = """
[databases]
* = host={host} port={port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
auth_type = any
pool_mode = {mode}
default_pool_size = 100
unix_socket_dir =
"""

Pooler = Callable[[str], DatabaseServer]


def start_pooler(server: DatabaseServer, mode: str) -> DatabaseServer:
    """Starts PgBouncer before a server. Raises ServerMissing."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        raise ServerMissing("install pgbouncer")
    directory, user = server_directory("postgres")
    own_port = free_port()
    file = directory / "pgbouncer.ini"
    file.write_text(
        CONFIGURATION.format(host=server.admin_url.host, port=server.admin_url.port, own_port=own_port, mode=mode)
    )
    url = server.admin_url.set(host="127.0.0.1", port=own_port)
    return started([program, str(file)], url, directory, user)


@pytest.fixture(scope="module")
def pooler(database_servers: ServerLookup) -> Iterator[Pooler]:
    """Returns a pooler of a mode before the tests' server."""
    running: dict[str, DatabaseServer] = {}
    server = database_servers("postgresql")
    assert isinstance(server, DatabaseServer)

    def pooler_of(mode: str) -> DatabaseServer:
        if mode not in running:
            try:
                running[mode] = start_pooler(server, mode)
            except ServerMissing as missing:
                pytest.skip(str(missing))
        return running[mode]

    yield pooler_of
    for one in running.values():
        one.stop()


@pytest.fixture
def url(request: pytest.FixtureRequest, database_servers: ServerLookup, pooler: Pooler) -> Iterator[str]:
    """Of a new database, through a pooler of the mode that the test names."""
    through, server = pooler(request.param).admin_url, database_servers("postgresql")
    assert isinstance(server, DatabaseServer)
    created = server.create_database()
    yield make_url(created).set(host=through.host, port=through.port).render_as_string(False)
    server.drop_database(created)


@pytest.mark.parametrize("url", ["session"], indirect=True)
def test_a_pooler_that_keeps_sessions_makes_no_difference(url: str, tmp_path: Path) -> None:
    with closing(Database(url)) as database:
        assert not shares_sessions(database)
        init_schema(database)
        exercise(database, tmp_path)


@pytest.mark.parametrize("url", ["session"], indirect=True)
def test_settings_of_a_session_apply_through_a_pooler(url: str) -> None:
    """Also those of the URL: PgBouncer refuses libpq's parameter `options`."""
    with closing(Database(f"{url}?options=-csearch_path%3D%22x%5C+y%22,public%20--work-mem%3D5MB")) as database:
        limits = set()
        for use in (database.checking, database.loading, database.writing):
            with use() as connection:
                names = ("search_path", "work_mem", "statement_timeout", "lock_timeout")
                shown = [connection.execute(text(f"SHOW {name}")).scalar_one() for name in names]
                assert shown[:2] == ['"x y",public', "5MB"] and "0" not in shown[2:]
                limits.add(shown[2])
        assert len(limits) == 2


@pytest.mark.parametrize(
    ("options", "refused"),
    [("-c work_mem=much", "work_mem"), ("-c no_such_setting=1", "no_such_setting"), ("-c fsync=off", "fsync")],
)
@pytest.mark.parametrize("url", ["session"], indirect=True)
def test_settings_that_the_database_refuses_are_named(url: str, options: str, refused: str) -> None:
    with (
        closing(Database(f"{url}?options={quote(options)}")) as database,
        pytest.raises(ConfigurationError, match=rf"database\.url: .*{refused}"),
        database.loading(),
    ):
        pass


@pytest.mark.parametrize("url", ["transaction"], indirect=True)
def test_a_pooler_that_gives_each_transaction_another_session_is_refused(url: str) -> None:
    settings = load(command_line={"database.url": url, "security.accept_insecure": True}, environment={}).settings
    with closing(open_database(settings)) as database:
        with pytest.raises(StartupError, match="gives each transaction another session") as raised:
            require_served_schema(database, settings)
        assert "pool_mode = session" in str(raised.value.remedy)


_SSL_REQUEST = bytes.fromhex("0000000804d2162f")


def _greet_as_postgresql(client: socket.socket) -> None:
    while client.recv(8, socket.MSG_PEEK) == _SSL_REQUEST:
        client.recv(8)
        client.sendall(b"N")
    client.recv(4096)
    client.sendall(b"R\0\0\0\x08\0\0\0\0" + b"Z\0\0\0\x05I")


def _greet_as_mysql(client: socket.socket) -> None:
    capabilities, plugin = 0x000FA6FF, b"mysql_native_password\0"  # without TLS
    greeting = b"\x0a8.0.0\0" + bytes(4) + b"abcdefgh\0" + (capabilities & 0xFFFF).to_bytes(2, "little")
    greeting += b"\x2d\x02\0" + (capabilities >> 16).to_bytes(2, "little") + b"\x15" + bytes(10)
    greeting += b"ijklmnopqrst\0" + plugin
    client.sendall(len(greeting).to_bytes(3, "little") + b"\0" + greeting)
    client.recv(4096)
    client.sendall(b"\x07\0\0\x02\0\0\0\x02\0\0\0")


@pytest.mark.parametrize(
    ("kind", "greet"),
    [("postgresql", _greet_as_postgresql), ("mysql", _greet_as_mysql)],
)
@pytest.mark.timeout(60)
def test_a_pooler_that_accepts_and_then_hangs_is_unavailable_after_the_time_to_connect(
    kind: str, greet: Callable[[socket.socket], None]
) -> None:
    """As one does whose server is away. The time of a statement is five minutes."""

    def greet_and_be_silent() -> None:
        with suppress(OSError), listener.accept()[0] as client:
            greet(client)
            while client.recv(4096):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=greet_and_be_silent, daemon=True)
        thread.start()
        url = f"{kind}://postgres@127.0.0.1:{listener.getsockname()[1]}/d"
        with (
            closing(Database(url, DatabaseSettings(connect_timeout_s=0.5))) as database,
            pytest.raises(DatabaseUnavailable, match=r"did not answer in time|timed out"),
            database.loading(),
        ):
            pass
        thread.join(30)


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("-c a=1 -cb=2 --c-d=3", {"a": "1", "b": "2", "c_d": "3"}),
        (r"-csearch_path=\"x\ y\",public", {"search_path": '"x y",public'}),
        ("  -c  a=b=c ", {"a": "b=c"}),
        ("", {}),
        ("-c", None),
        ("-d 5", None),
        ("-c a=1 -e", None),
        ("a=1", None),
    ],
)
def test_the_settings_of_a_url(options: str, settings: dict[str, str] | None) -> None:
    assert settings_of(options) == settings


@given(st.dictionaries(st.from_regex(r"\A[a-z_]{1,9}\Z"), st.text("aZ=-c \\\t'\"\n,", max_size=9), max_size=4))
def test_every_value_of_a_setting_is_read_as_it_was_written(settings: dict[str, str]) -> None:
    def escaped(value: str) -> str:
        return "".join(f"\\{one}" if one.isspace() or one == "\\" else one for one in value)

    assert settings_of(" ".join(f"-c {name}={escaped(value)}" for name, value in settings.items())) == settings
