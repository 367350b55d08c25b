"""Fixtures that all tests share: databases of the three kinds, server processes, one Spark for all."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from hms_cache.config import secrets
from hms_cache.input_limits import input_limits, use_input_limits
from hms_cache.limited_log import LimitedLog
from hms_cache.server import layer
from hms_cache.store.engine.database import Database
from tests.clients.spark.session import SparkProcess
from tests.collecting import compiled_once
from tests.database_kinds import ALL_KINDS
from tests.databases import DatabaseServer, ServerMissing, SqliteFiles, closing, keep_in_memory, new_directory
from tests.databases import start_server as start_database_server
from tests.done_once import done_once
from tests.protocol.releases import BRIEF, ICEBERG_FOR_SPARK, jar
from tests.servers import ServerProcess, server_process
from tests.store.schema.distribution import load_hive_schema
from tests.time_limits import ended_after_limit, note_errors, refuse_too_long

# Continuous integration tests each change with the same examples, so half of hypothesis' number suffices; elsewhere,
# new examples are generated. Their time does not matter: on a busy machine, the first one may take a second.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("random", deadline=None)
if os.environ.get("HMS_CACHE_FIXED_EXAMPLES") == "1":
    settings.load_profile("fixed")
    # Hypothesis also tries constants of all modules that are imported when a test runs. In each process, and each time,
    # these are different modules; and to parse all of them takes each process several seconds.
    providers._get_local_constants = lambda: providers._local_constants
else:
    settings.load_profile("random")


#: The thresholds of a server's interpreter: with Python's own, collections that find nothing take a part of the time.
GARBAGE_THRESHOLDS = (50_000, 20, 10)


@pytest.fixture
def put_in_force() -> Iterator[Callable[..., None]]:
    """Changes limits of inputs, by name, for the test."""
    before = input_limits()
    yield lambda **limits: use_input_limits(before.model_copy(update=limits))
    use_input_limits(before)


#: `database_server` by name, for tests that need one kind only: ``database_servers("mariadb")``.
ServerLookup = Callable[[str], SqliteFiles | DatabaseServer]

#: Makes servers: kind of database or the URL of one, directory under the test's, settings.
ServerStarter = Callable[..., ServerProcess]


def pytest_configure(config: pytest.Config) -> None:
    note_errors(config)


def pytest_sessionstart() -> None:
    keep_in_memory()
    os.environ.setdefault("MAVEN_OPTS", " ".join(BRIEF))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with ended_after_limit(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Garbage collection does not visit what is collected here, which remains; later, it runs where and as often as in
    a server."""
    gc.disable()
    with compiled_once(session.config):
        result = yield
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    gc.enable()
    return result


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Garbage collection does not visit again what a file's tests leave for the session, above all compiled statements:
    otherwise a test that collects its own garbage would take seconds."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Orders tests: first those with Spark, then files with long tests, which would otherwise keep one process busy
    when the others are done. A test that also runs on MariaDB runs on PostgreSQL only in the short soaks."""
    refuse_too_long(items)
    on_mariadb = {item.nodeid.partition("[")[0] for item in items if "mariadb" in _parameters_of(item)}
    for item in items:
        if "postgresql" in _parameters_of(item) and item.nodeid.partition("[")[0] in on_mariadb:
            item.add_marker(pytest.mark.soak)
    yield  # the order is shuffled
    files_of_spark = {item.path for item in items if item.get_closest_marker("spark")}
    long_files = {item.path for item in items if item.get_closest_marker("timeout")}
    items.sort(key=lambda item: (item.path not in files_of_spark, item.path not in long_files))


def _parameters_of(item: pytest.Item) -> list[str]:
    found = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    return [one for one in found if isinstance(one, str)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Loaded where there are several processes only."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.scheduling import FilesScheduling

    return FilesScheduling(config, log)


@pytest.fixture(autouse=True, scope="session")
def _done_once() -> Iterator[None]:
    with done_once():
        yield


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process masks every secret that it was given, by value: one test's password may be a word in another's
    texts."""
    monkeypatch.setattr(secrets, "_masked_forms", set(secrets._masked_forms))
    monkeypatch.setattr(secrets, "_pattern", secrets._pattern)


@pytest.fixture(autouse=True)
def _no_lines_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process logs at most one line of a kind in ten seconds, so another test's line could suppress this one's."""
    monkeypatch.setattr(layer, "_limited_log", LimitedLog(layer._log))


@pytest.fixture(scope="session")
def database_servers() -> Iterator[ServerLookup]:
    """Returns the server of a kind. It starts at the first use and is stopped at the end of the session."""
    files = new_directory()
    started: dict[str, SqliteFiles | DatabaseServer] = {}
    missing: dict[str, str] = {}

    def server_of(kind: str) -> SqliteFiles | DatabaseServer:
        if kind not in started and kind not in missing:
            try:
                started[kind] = start_database_server(kind, files)
            except ServerMissing as error:
                missing[kind] = str(error)
        if kind in missing:
            if os.environ.get("HMS_CACHE_REQUIRE_DATABASES") == "1":
                pytest.fail(f"no {kind} server: {missing[kind]}")
            pytest.skip(f"no {kind} server: {missing[kind]}")
        return started[kind]

    yield server_of
    for server in started.values():
        server.stop()
    shutil.rmtree(files, ignore_errors=True)


@pytest.fixture(params=ALL_KINDS)
def database_kind(request: pytest.FixtureRequest) -> str:
    """``sqlite``, ``mariadb`` and ``postgresql`` in turn; a test narrows it with ``@pytest.mark.parametrize``."""
    kind: str = request.param
    return kind


@pytest.fixture
def database_server(database_kind: str, database_servers: ServerLookup) -> SqliteFiles | DatabaseServer:
    """The server of the test's kind of database."""
    return database_servers(database_kind)


@pytest.fixture
def database_url(database_server: SqliteFiles | DatabaseServer) -> Iterator[str]:
    """URL of a new and empty database, dropped afterwards."""
    url = database_server.create_database()
    yield url
    database_server.drop_database(url)


@pytest.fixture
def empty_database(database_url: str) -> Iterator[Database]:
    """A new and empty database."""
    with closing(Database(database_url)) as database:
        yield database


@pytest.fixture
def initialized_database_url(database_server: SqliteFiles | DatabaseServer) -> Iterator[str]:
    """URL of a database with the schema and the rows of Hive's script only. Tests must not change its tables'
    definitions."""
    url = database_server.initialized_database()
    yield url
    database_server.give_back(url)


@pytest.fixture
def initialized_database(initialized_database_url: str) -> Iterator[Database]:
    """A database with the schema and the rows of Hive's script only (no roles, no database ``default``)."""
    with closing(Database(initialized_database_url)) as database:
        yield database


@pytest.fixture(params=[*ALL_KINDS, pytest.param("hive", id="hive", marks=[pytest.mark.mariadb, pytest.mark.java])])
def database_of_any_schema(request: pytest.FixtureRequest, database_servers: ServerLookup) -> Iterator[Database]:
    """Like `initialized_database`, and one of MariaDB made by Hive's script, which ignores case and accents."""
    is_of_hive = request.param == "hive"
    server = database_servers("mariadb" if is_of_hive else request.param)
    url = server.create_database() if is_of_hive else server.initialized_database()
    if is_of_hive:
        load_hive_schema(url, "4.0.1")
    with closing(Database(url)) as database:
        yield database
    (server.drop_database if is_of_hive else server.give_back)(url)


@pytest.fixture
def sqlite_database(database_servers: ServerLookup) -> Iterator[Database]:
    """Like `initialized_database`, only on SQLite: for tests that do not depend on the kind."""
    server = database_servers("sqlite")
    url = server.initialized_database()
    with closing(Database(url)) as database:
        yield database
    server.give_back(url)


@pytest.fixture
def start_server(tmp_path: Path, database_servers: ServerLookup) -> Iterator[ServerStarter]:
    """``start_server("mariadb", "a", **{"cache.enabled": "false"})``: a server process, stopped after the test.

    Servers that share a database are given the URL of the first one; their warehouse is shared too.
    """
    with ExitStack() as stack:

        def start(database: str, name: str = "server", **settings: object) -> ServerProcess:
            url = database
            if "://" not in database:
                databases = database_servers(database)
                url = databases.initialized_database()
                stack.callback(databases.give_back, url)
            settings.setdefault("warehouse.directory", tmp_path / "warehouse")
            return stack.enter_context(server_process(tmp_path / name, url, settings))

        yield start


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """Spark in a separate process; a test begins with `SparkProcess.session`."""
    jars: tuple[Path, ...] = ()
    if shutil.which("mvn"):
        jars = (jar(ICEBERG_FOR_SPARK),)
    process = SparkProcess(tmp_path_factory.mktemp("spark"), jars)
    yield process
    process.close()
