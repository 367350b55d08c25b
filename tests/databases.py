"""Database servers for the tests: SQLite files, and private MariaDB and PostgreSQL servers from Debian's binaries.

``HMS_CACHE_TEST_MARIADB_URL`` and ``HMS_CACHE_TEST_POSTGRESQL_URL`` (SQLAlchemy's form; the account may create
databases) name running servers to use instead. Without binaries the tests that need them are skipped, or fail if
``HMS_CACHE_REQUIRE_DATABASES=1``.
"""

from __future__ import annotations

import ctypes
import glob
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing as closing_cursor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pymysql.constants import CLIENT
from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, event, insert, make_url, text
from sqlalchemy.exc import DBAPIError

from hms_cache.store.engine.database import Database
from hms_cache.store.installation.init import FIRST_ROWS, init_schema
from hms_cache.store.schema import METADATA

KINDS = ("sqlite", "mariadb", "postgresql")

_START_LIMIT_S = 60

_MEMORY = Path("/dev/shm")
_ENOUGH_MEMORY = 4 << 30
"""Free bytes there: containers have 64 MiB, unless told otherwise. All databases of a run take 1 GB."""
_parent: Path | None = None

_MARIADB_INSTALL_OPTIONS = ("--skip-test-db", "--innodb-log-file-size=16M")

#: Small and without durability. The default character set is the one for which Hive's own scripts were written: what we
#: create must specify its character set itself.
_MARIADB_OPTIONS = (
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--max-connections=500",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-doublewrite=0",
    "--innodb-log-file-size=16M",
    "--innodb-buffer-pool-size=128M",
    "--performance-schema=OFF",
    "--character-set-server=latin1",
)

_POSTGRESQL_OPTIONS = (
    *("-c", "fsync=off"),
    *("-c", "synchronous_commit=off"),
    *("-c", "full_page_writes=off"),
    *("-c", "max_connections=200"),
)


class ServerMissing(Exception):
    """The server does not exist and cannot be started here; the message contains what to install or set."""


def keep_in_memory() -> None:
    """Creates later databases in memory, if there is enough: on a disk, most of the time for creating 83 tables is
    spent on writing each of them immediately. Removes what killed runs have left there."""
    global _parent
    if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ENOUGH_MEMORY:
        _parent = _MEMORY
        for left in _MEMORY.glob("hmsdb-*-*"):
            if not Path(f"/proc/{left.name.split('-')[1]}").exists():
                shutil.rmtree(left, ignore_errors=True)


def new_directory() -> Path:
    """For databases."""
    return Path(tempfile.mkdtemp(prefix=f"hmsdb-{os.getpid()}-", dir=_parent))


def put_in_place(copy: Path, file: Path) -> None:
    """Replaces the file by the copy in one step, like a restore; the copy may be on another file system."""
    beside = file.with_name(f"{file.name}-restored")
    shutil.move(copy, beside)
    beside.replace(file)


class SqliteFiles:
    """Embedded databases in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = itertools.count()
        self._template: Path | None = None

    def create_database(self) -> str:
        return f"sqlite:///{self._new_file()}"

    def drop_database(self, url: str) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{make_url(url).database}{suffix}").unlink(missing_ok=True)

    def initialized_database(self) -> str:
        """A copy of a file in which the schema was created once."""
        if self._template is None:
            template = self._new_file()
            with closing(Database(f"sqlite:///{template}")) as database:
                init_schema(database)
            self._template = template
        copy = self._new_file()
        shutil.copyfile(self._template, copy)
        return f"sqlite:///{copy}"

    def give_back(self, url: str) -> None:
        self.drop_database(url)

    def stop(self) -> None:
        """No process runs."""

    def _new_file(self) -> Path:
        return self._directory / f"metastore-{next(self._numbers)}.db"


initialized: set[tuple[int | None, str | None]] = set()
"""Port and name of databases that have the schema, and keep it as it is (`DatabaseServer.initialized_database`)."""


class DatabaseServer:
    """A MariaDB or PostgreSQL server, started here or given. Databases with the schema are kept and emptied before each
    further use, since creating 83 tables takes time."""

    def __init__(self, url: URL, stop: Callable[[], None] = lambda: None, process_id: int = 0) -> None:
        """`process_id`: of a server of ours."""
        self._url = url
        self._stop_server = stop
        self.process_id = process_id
        self._admin: Engine = _impatient_engine(url, isolation_level="AUTOCOMMIT")
        self._numbers = itertools.count()
        self._idle: list[str] = []
        self._names: set[str] = set()
        self._emptying: dict[str, Engine] = {}

    @property
    def admin_url(self) -> URL:
        """Of the account with all rights."""
        return self._url

    def admin(self) -> Connection:
        """Returns a connection of the account with all rights, in autocommit mode."""
        return self._admin.connect()

    def create_database(self) -> str:
        """A new and empty database's URL."""
        name = f"hms_cache_test_{os.getpid()}_{next(self._numbers)}"
        with self._admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE IF EXISTS {name}"))
            connection.execute(text(f"CREATE DATABASE {name}"))
        self._names.add(name)
        return self._url.set(database=name).render_as_string(hide_password=False)

    def drop_database(self, url: str) -> None:
        name = make_url(url).database
        assert name in self._names
        force = " WITH (FORCE)" if self._url.get_backend_name() == "postgresql" else ""
        with self._admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE IF EXISTS {name}{force}"))
        self._names.discard(name)

    def initialized_database(self) -> str:
        """Returns a database with the schema and its first rows, to be given back with `give_back`."""
        if self._idle:
            url = self._idle.pop()
            with self._emptying[url].begin() as connection:
                _empty_and_fill(connection)
            return url
        url = self.create_database()
        with closing(Database(url)) as database:
            init_schema(database)
        self._emptying[url] = _impatient_engine(make_url(url), pool_pre_ping=True)  # tests end connections
        initialized.add((make_url(url).port, make_url(url).database))
        return url

    def give_back(self, url: str) -> None:
        """Returns the database, so that it can be emptied and used again. The test must not have changed its tables'
        definitions."""
        self._idle.append(url)

    def kill(self) -> None:
        """Ends a server of ours at once. `stop` must still be called; it drops no databases any more."""
        assert self.process_id
        os.kill(self.process_id, signal.SIGKILL)
        self._names.clear()

    def stop(self) -> None:
        for engine in self._emptying.values():
            engine.dispose()
        for name in sorted(self._names):
            self.drop_database(self._url.set(database=name).render_as_string(hide_password=False))
        self._admin.dispose()
        self._stop_server()


_STATEMENT_LIMIT_S = 240
"""For what fixtures do. Locks of a server that a failed test left behind would keep them waiting for a day, or ever."""


def _impatient_engine(url: URL, **options: Any) -> Engine:
    """Returns an engine with one connection, whose statements fail after `_STATEMENT_LIMIT_S`."""
    if url.get_backend_name() == "postgresql":
        limits: dict[str, object] = {"options": f"-c statement_timeout={_STATEMENT_LIMIT_S}s"}
    else:
        limits = {"read_timeout": _STATEMENT_LIMIT_S, "client_flag": CLIENT.MULTI_STATEMENTS}
    return create_engine(url, pool_size=1, connect_args=limits, **options)


def start_server(kind: str, directory: Path) -> SqliteFiles | DatabaseServer:
    """The server of a kind of `KINDS`; ``directory`` is for SQLite's files.

    :raises ServerMissing: none is given and none can be started.
    """
    if kind == "sqlite":
        return SqliteFiles(directory)
    given = os.environ.get(f"HMS_CACHE_TEST_{kind.upper()}_URL")
    if given:
        return DatabaseServer(make_url(given))
    return start_mariadb() if kind == "mariadb" else start_postgresql()


def start_mariadb(*more: str) -> DatabaseServer:
    """Starts a private MariaDB server on a free port, without durability, with `more` options. Account root, no
    password."""
    server = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin:/usr/libexec")
    install = shutil.which("mariadb-install-db")
    if server is None or install is None:
        raise ServerMissing("install mariadb-server, or set HMS_CACHE_TEST_MARIADB_URL")
    directory, user = server_directory("mysql")
    data, port = directory / "data", free_port()
    # A server that starts deletes all temporary tables from its folder for them: in a shared one those of others, too.
    shared = ["--no-defaults", f"--datadir={data}", f"--tmpdir={directory}"]
    subprocess.run(
        [
            install,
            *shared,
            *([f"--user={user}"] if user else []),
            "--auth-root-authentication-method=normal",
            *_MARIADB_INSTALL_OPTIONS,
        ],
        check=True,
        capture_output=True,
    )
    own = [f"--port={port}", f"--socket={directory / 's'}", f"--pid-file={directory / 'pid'}"]
    url = make_url(f"mysql+pymysql://root@127.0.0.1:{port}/")
    return started([server, *shared, *own, *_MARIADB_OPTIONS, *more], url, directory, user)


def start_postgresql(programs: Path | None = None) -> DatabaseServer:
    """Starts a private PostgreSQL server on a free port, without durability. Account postgres, no password.

    :param programs: the folder of its programs; None: of the newest release that is installed.
    """
    server, initdb = (str(programs / one) if programs else _postgresql(one) for one in ("postgres", "initdb"))
    directory, user = server_directory("postgres")
    data = directory / "data"
    subprocess.run(
        [initdb, "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"],
        check=True,
        capture_output=True,
        user=user,
        cwd=directory,
    )
    return _serve_postgresql(server, data, directory, user)


def start_galera() -> DatabaseServer:
    """A MariaDB server that is a Galera cluster of one.

    :raises ServerMissing: there is no Galera library.
    """
    return _start_galera_node("gcomm://", free_port(), {}, "--wsrep-new-cluster")


def start_galera_cluster(size: int) -> list[DatabaseServer]:
    """Starts a Galera cluster of MariaDB servers, one after the other. Their reads wait for commits on other nodes
    (``wsrep_sync_wait`` 1), and their databases are the same. If there are two, the first keeps the majority when they
    are separated.

    :raises ServerMissing: there is no Galera library, or no rsync, with which nodes are filled.
    """
    if shutil.which("rsync") is None or shutil.which("lsof") is None:
        raise ServerMissing("install rsync and lsof")
    ports = [free_port() for _ in range(size)]
    others = "gcomm://" + ",".join(f"127.0.0.1:{port}" for port in ports)
    # Two find out soon that they are separated. Of three, two could take each other for lost, too, on a busy machine.
    soon = {"evs.keepalive_period": "PT0.2S", "evs.suspect_timeout": "PT1S", "evs.inactive_timeout": "PT3S"}
    nodes: list[DatabaseServer] = []
    try:
        for number, port in enumerate(ports):
            nodes.append(
                _start_galera_node(
                    others,
                    port,
                    {} if size > 2 else {**soon, "pc.weight": "1" if number else "2"},
                    *(["--wsrep-new-cluster"] if not number else []),
                    f"--wsrep-node-name=node-{number + 1}",
                    "--wsrep-sst-method=rsync",
                    f"--wsrep-sst-receive-address=127.0.0.1:{free_port()}",
                    "--wsrep-sync-wait=1",
                    "--wsrep-slave-threads=2",
                )
            )
    except BaseException:
        for node in reversed(nodes):
            node.stop()
        raise
    return nodes


def _start_galera_node(cluster: str, port: int, more_options: Mapping[str, str], *more: str) -> DatabaseServer:
    libraries = [*glob.glob("/usr/lib*/galera*/libgalera_smm.so"), *glob.glob("/usr/lib/*/libgalera_smm.so")]
    if not libraries:
        raise ServerMissing("install galera-4")
    options = {
        "gmcast.listen_addr": f"tcp://127.0.0.1:{port}",
        "ist.recv_addr": f"127.0.0.1:{free_port()}",
        "gcache.size": "16M",
        **more_options,
    }
    return start_mariadb(
        "--wsrep-on=ON",
        f"--wsrep-provider={libraries[0]}",
        f"--wsrep-cluster-address={cluster}",
        f"--wsrep-provider-options={';'.join(f'{name}={value}' for name, value in options.items())}",
        f"--wsrep-node-address=127.0.0.1:{port}",
        "--binlog-format=ROW",
        "--innodb-autoinc-lock-mode=2",
        *more,
    )


def start_mariadb_replica(primary: DatabaseServer) -> DatabaseServer:
    """Starts a read-only replica of a server from `start_mariadb` with ``--log-bin`` and a ``--server-id`` other than
    2. It has the databases created on the primary from now on, and creates none."""
    replica = start_mariadb("--server-id=2", "--read-only=ON")
    source = primary.admin_url
    with replica.admin() as connection:
        connection.exec_driver_sql(
            f"CHANGE MASTER TO MASTER_HOST='{source.host}', MASTER_PORT={source.port}, MASTER_USER='root',"
            " MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1"
        )
        connection.exec_driver_sql("START SLAVE")
    return replica


def start_postgresql_standby(primary: DatabaseServer) -> DatabaseServer:
    """Starts a hot standby of a server from `start_postgresql`. It has the primary's databases, and creates none.

    :raises ServerMissing: the primary is of another release than the programs that are installed.
    """
    server, basebackup = _postgresql("postgres"), _postgresql("pg_basebackup")
    with primary.admin() as connection:
        release = str(connection.exec_driver_sql("SHOW server_version").scalar_one()).partition(".")[0]
    told = subprocess.run([basebackup, "--version"], check=True, capture_output=True, text=True).stdout
    if f" {release}." not in told:
        raise ServerMissing(f"install PostgreSQL {release}")
    directory, user = server_directory("postgres")
    data = directory / "data"
    source = primary.admin_url
    subprocess.run(
        [
            basebackup,
            "-D",
            str(data),
            "-h",
            str(source.host),
            "-p",
            str(source.port),
            "-U",
            "postgres",
            "-R",
            "--checkpoint=fast",
        ],
        check=True,
        capture_output=True,
        user=user,
        cwd=directory,
    )
    return _serve_postgresql(server, data, directory, user)


def _serve_postgresql(server: str, data: Path, directory: Path, user: str | None) -> DatabaseServer:
    port = free_port()
    own = ["-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(directory)]
    url = make_url(f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres")
    return started([server, *own, *_POSTGRESQL_OPTIONS], url, directory, user)


def _postgresql(program: str) -> str:
    folders = os.pathsep.join([os.environ.get("PATH", ""), *sorted(glob.glob("/usr/lib/postgresql/*/bin"))[::-1]])
    found = shutil.which(program, path=folders)
    if found is None:
        raise ServerMissing("install postgresql, or set HMS_CACHE_TEST_POSTGRESQL_URL")
    return found


@contextmanager
def closing(database: Database) -> Iterator[Database]:
    """The database, closed at the end."""
    try:
        yield database
    finally:
        database.close()


class StatementCount:
    """The statements that `count_statements` recorded, in order, without transaction control."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    @property
    def count(self) -> int:
        return len(self.statements)


@contextmanager
def count_statements(database: Database) -> Iterator[StatementCount]:
    """Records every statement that this process sends to the database meanwhile, from any thread."""
    seen = StatementCount()

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith("BEGIN"):
            seen.statements.append(statement)

    for engine in database.engines:
        event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        for engine in database.engines:
            event.remove(engine, "before_cursor_execute", note)


def _empty_and_fill(connection: Connection) -> None:
    """Deletes all rows, resets self-numbered ids, and inserts the first rows, with one query and one packet."""
    dialect = connection.dialect
    quote = dialect.identifier_preparer.quote
    probes = [f"(SELECT '{name}' FROM {quote(name)} LIMIT 1)" for name in METADATA.tables]
    if dialect.name == "postgresql":
        filled = connection.exec_driver_sql(" UNION ALL ".join(probes)).scalars().all()
        # For a few rows: a TRUNCATE creates new files for each table and its indexes.
        deletions = [f"DELETE FROM {quote(name)}" for name in filled]
        orders = ["SET LOCAL session_replication_role = replica", *deletions, _RESTART_OF_POSTGRESQL]
        connection.exec_driver_sql("; ".join([*orders, *_first_rows(dialect)]))
        return
    found = set(connection.exec_driver_sql(" UNION ALL ".join([*probes, _NUMBERED_OF_MARIADB])).scalars())
    orders = ["SET FOREIGN_KEY_CHECKS=0", *(f"DELETE FROM {quote(name)}" for name in found & METADATA.tables.keys())]
    orders.append("SET FOREIGN_KEY_CHECKS=1")
    if _NUMBERED in found or not getattr(dialect, "is_mariadb", False):  # MySQL may report an older number
        orders.append("ALTER TABLE `TXNS` AUTO_INCREMENT=1")
    orders.append("SET SESSION sql_mode=CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')")
    with closing_cursor(connection.connection.cursor()) as cursor:
        cursor.execute("; ".join([*orders, *_first_rows(dialect)]))
        while cursor.nextset():  # raises the error of each
            pass


_insertions: dict[str, list[str]] = {}


def _first_rows(dialect: Dialect) -> list[str]:
    """Returns the statements that insert the first rows; always the same for a kind of server."""
    if dialect.name not in _insertions:
        _insertions[dialect.name] = [
            str(insert(table).values(rows).compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
            for table, rows in FIRST_ROWS
        ]
    return _insertions[dialect.name]


_NUMBERED = "numbered"
_NUMBERED_OF_MARIADB = (
    f"(SELECT '{_NUMBERED}' FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'TXNS' AND AUTO_INCREMENT > 1)"
)
"""Whether an id was taken since the table was made or altered, which takes longer than to ask."""

_RESTART_OF_POSTGRESQL = (
    "SELECT setval(pg_get_serial_sequence(quote_ident(table_name), column_name), 1, false)"
    " FROM information_schema.columns WHERE table_schema = current_schema()"
    " AND pg_get_serial_sequence(quote_ident(table_name), column_name) IS NOT NULL"
)


def server_directory(account: str) -> tuple[Path, str | None]:
    """Returns a new directory (with a short path, since it contains sockets) and the account under which a server
    started by root has to run."""
    directory = new_directory()
    if os.geteuid() != 0:
        return directory, None
    try:
        entry = pwd.getpwnam(account)
    except KeyError:
        raise ServerMissing(f"as root the server needs the account {account}") from None
    os.chown(directory, entry.pw_uid, entry.pw_gid)
    return directory, account


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def started(command: list[str], url: URL, directory: Path, user: str | None) -> DatabaseServer:
    """Starts a server, and waits until it answers at `url`. Its directory is deleted when it is stopped.

    :param user: its account from the beginning: a process that changes it is no longer ended with its parent.
    """
    process = _start(command, directory, user)
    return DatabaseServer(url, _ready(url, process, directory), process.pid)


def _start(command: list[str], directory: Path, user: str | None) -> subprocess.Popen[bytes]:
    def die_with_parent() -> None:
        # A test run that is killed must not leave servers behind.
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)

    with (directory / "log").open("wb") as log:
        return subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            user=user,
            cwd=directory,
            preexec_fn=die_with_parent,
        )


def _ready(url: URL, process: subprocess.Popen[bytes], directory: Path) -> Callable[[], None]:
    """Wait until the server answers; what stops it."""

    def stop() -> None:
        # PostgreSQL takes SIGINT for "disconnect all and stop", MariaDB takes SIGTERM.
        process.send_signal(signal.SIGINT if url.get_backend_name() == "postgresql" else signal.SIGTERM)
        process.wait(_START_LIMIT_S)
        shutil.rmtree(directory, ignore_errors=True)

    engine = create_engine(url)
    deadline = time.monotonic() + _START_LIMIT_S
    while True:
        try:
            engine.connect().close()
            break
        except DBAPIError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                log = (directory / "log").read_text(errors="replace")
                raise RuntimeError(f"{url.get_backend_name()} did not start: {log[-2000:]}") from error
            time.sleep(0.05)
    engine.dispose()
    return stop
