"""`hms-cache check`: each finding provoked on a real database, and no findings on a sound one."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from hmsclient.genthrift.hive_metastore.ttypes import Database
from sqlalchemy import create_engine, make_url, text
from thrift.Thrift import TException

from benchmarks.java_metastore import JavaMetastore, fetch, load_schema, statement_counter
from hms_cache.app.checks import Findings, run_checks
from hms_cache.app.database import create_schema, index_schema, report_schema
from hms_cache.app.service import Service
from hms_cache.errors import DatabaseUnavailableError, SchemaError, StartupError
from tests.app.test_service import client, configured, table
from tests.conftest import ServerLookup
from tests.database_kinds import SERVER_KINDS

Execute = Callable[[str], None]

TESTS = Path(__file__).parents[1]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """A running server with two events in its log; its URI."""
    service = Service(configured(tmp_path))
    uri = service.start()
    with client(uri) as metastore:
        metastore.create_database(Database(name="shop"))
        metastore.create_database(Database(name="depot"))
    yield uri
    service.stop()


@pytest.fixture
def execute(tmp_path: Path) -> Execute:
    def run(statement: str) -> None:
        with closing(sqlite3.connect(tmp_path / "hms.db", timeout=30)) as connection, connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")  # databases made by Hive 3.1 have none
            connection.execute(statement)

    return run


def texts(findings: Findings, severity: str) -> list[str]:
    return [finding.problem for finding in findings.found if finding.severity == severity]


def test_a_sound_installation_passes_everything(served: str, tmp_path: Path) -> None:
    findings = run_checks(configured(tmp_path, cache__peers="hive4").settings, (served,))
    assert findings.found == []
    assert len(findings.passed) == 12
    assert list((tmp_path / "warehouse").glob(".hms-cache-check-*")) == []


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in directory.rglob("*")}


@pytest.mark.parametrize("found", ["nothing", "an empty file", "another journal", "a warehouse"])
def test_a_check_changes_nothing(found: str, tmp_path: Path) -> None:
    settings = configured(tmp_path, warehouse__directory=str(tmp_path / "a" / "b" / "warehouse")).settings
    if found == "an empty file":
        (tmp_path / "hms.db").touch()
    elif found == "another journal":
        with closing(sqlite3.connect(tmp_path / "hms.db")) as connection:
            connection.execute("CREATE TABLE OF_SOMEBODY_ELSE (A INTEGER)")
    elif found == "a warehouse":
        (tmp_path / "a" / "b" / "warehouse").mkdir(parents=True)
        create_schema(settings)
    before = contents(tmp_path)
    findings = run_checks(settings)
    assert contents(tmp_path) == before
    assert len(texts(findings, "error")) == (0 if found == "a warehouse" else 1)
    with suppress(StartupError, DatabaseUnavailableError):
        report_schema(settings)
    assert contents(tmp_path) == before


def test_all_findings_are_told_at_once(served: str, tmp_path: Path, execute: Execute) -> None:
    execute("UPDATE SEQUENCE_TABLE SET NEXT_VAL = 1 WHERE SEQUENCE_NAME LIKE '%MDatabase'")
    execute("UPDATE NOTIFICATION_SEQUENCE SET NEXT_EVENT_ID = 77")
    execute("UPDATE NOTIFICATION_LOG SET EVENT_ID = EVENT_ID + 5 WHERE EVENT_ID = 2")
    (tmp_path / "a-file").write_text("")
    settings = configured(
        tmp_path, warehouse__directory=str(tmp_path / "a-file" / "below"), transactions__timeout_s=60
    ).settings
    findings = run_checks(settings, (served, "127.0.0.1:1"))
    errors, warnings = texts(findings, "error"), texts(findings, "warning")
    assert any("ends with event 7, but the next one would be 77" in text for text in errors)
    assert any("has 2 events between 1 and 7" in text for text in errors)
    assert any("a-file/below cannot be written" in text for text in errors)
    assert any("127.0.0.1:1 does not answer" in text for text in errors)
    assert any("cache.peers is none" in text for text in errors)
    assert any("the sequence of MDatabase would hand out 1" in text for text in warnings)
    assert any("metastore.txn.timeout is 300 s at the peer" in text and "60 s here" in text for text in warnings)
    assert len(findings.found) == 7
    assert all(finding.remedy for finding in findings.found)


@pytest.mark.parametrize(
    ("host", "advertised", "told"),
    [
        ("127.0.0.1", "", False),
        ("127.0.0.1", "thrift://localhost:9083", False),
        ("127.0.0.1", "thrift://metastore-1:9083,thrift://metastore-2:9083", True),
        ("::1", "thrift://10.0.0.7:9083", True),
        ("0.0.0.0", "thrift://metastore-1:9083", False),
        ("metastore-1", "thrift://metastore-1:9083", False),
    ],
)
def test_an_address_that_clients_are_told_and_cannot_reach_is_told(
    host: str, advertised: str, told: bool, tmp_path: Path
) -> None:
    """As in a site file, which names the metastores but not the address to listen on."""
    settings = configured(tmp_path, server__host=host, server__advertised_uris=advertised).settings
    assert any("no other machine reaches it" in one for one in texts(run_checks(settings), "warning")) == told


def test_two_rows_that_give_event_ids_are_told(served: str, tmp_path: Path, execute: Execute) -> None:
    execute("INSERT INTO NOTIFICATION_SEQUENCE SELECT NNI_ID + 1, NEXT_EVENT_ID FROM NOTIFICATION_SEQUENCE")
    (error,) = texts(run_checks(configured(tmp_path).settings), "error")
    assert "NOTIFICATION_SEQUENCE has 2 rows" in error


def test_clocks_that_differ_are_told(served: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hms_cache.app.checks.time", SimpleNamespace(time=lambda: time.time() + 3600))
    (warning,) = texts(run_checks(configured(tmp_path).settings), "warning")
    assert "this machine's clock and the database's are 3" in warning and "s apart" in warning


def test_a_server_without_housekeeping_is_told(served: str, tmp_path: Path) -> None:
    settings = configured(tmp_path, transactions__housekeeping_interval_s="inf").settings
    assert texts(run_checks(settings), "warning") == [
        "this server runs no housekeeping (transactions.housekeeping_interval_s = inf)"
    ]


def test_another_limit_of_open_transactions_is_told(served: str, tmp_path: Path) -> None:
    settings = configured(tmp_path, cache__peers="hive4", transactions__open_timeout_ms=90_000).settings
    (warning,) = texts(run_checks(settings, (served,)), "warning")
    assert "metastore.txn.opentxn.timeout is 1 s at the peer" in warning and "90 s here" in warning


def test_events_that_a_peer_keeps_for_longer_are_told(served: str, tmp_path: Path) -> None:
    """Each server of the database deletes them by its own setting: the shortest one applies."""
    settings = configured(tmp_path, cache__peers="hive4", events__retention_s=3600).settings
    (warning,) = texts(run_checks(settings, (served,)), "warning")
    assert warning == (
        f"events are kept for 86400 s at the peer {served}, and this server would delete them after 3600 s"
    )
    settings = configured(tmp_path, cache__peers="hive4", events__retention_s="inf").settings
    assert texts(run_checks(settings, (served,)), "warning") == []


def test_a_peer_that_makes_other_tables_of_the_same_request_is_told(served: str, tmp_path: Path) -> None:
    settings = configured(tmp_path, cache__peers="hive4", catalog__metadata_translation="hive4").settings
    (warning,) = texts(run_checks(settings, (served,)), "warning")
    assert warning == (
        f"this server makes external tables of managed ones that are not transactional, and the peer {served} does not"
    )


def test_events_that_nobody_deletes_are_told(served: str, tmp_path: Path, execute: Execute) -> None:
    execute("UPDATE NOTIFICATION_LOG SET EVENT_TIME = 1000000000")
    findings = run_checks(configured(tmp_path).settings)
    assert texts(findings, "warning") == ["events are kept for more than twice events.retention_s"]


def test_a_schema_that_was_changed_is_told(tmp_path: Path, execute: Execute) -> None:
    settings = configured(tmp_path).settings
    create_schema(settings)
    execute("ALTER TABLE TBLS DROP COLUMN WRITE_ID")
    (warning,) = texts(run_checks(settings), "warning")
    assert "calls itself 4.0.0 but has 1 differences" in warning
    assert "TBLS.WRITE_ID" in warning


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DROP TABLE FUNC_RU", "4.0.0, but lacks what all since 3.1 have: FUNC_RU"),
        ("ALTER TABLE TBLS DROP COLUMN OWNER_TYPE", "4.0.0, but lacks what all since 3.1 have: TBLS.OWNER_TYPE"),
        ("UPDATE VERSION SET SCHEMA_VERSION = '2.3.0'", "of version 2.3.0; 3.1 and later can be served"),
        ("DELETE FROM VERSION", "does not say which version its metastore schema has"),
    ],
)
def test_a_schema_that_cannot_be_served_is_left_as_it_is(
    tmp_path: Path, execute: Execute, statement: str, problem: str
) -> None:
    """By all commands that examine it, and by the server, which created rows in some tables and failed at others."""
    configuration = configured(tmp_path)
    settings = configuration.settings
    create_schema(settings)
    execute(statement)
    path = make_url(settings.database.sqlalchemy_url()).database
    with closing(sqlite3.connect(str(path))) as database:
        before = list(database.iterdump())
    for looks in (report_schema, index_schema, create_schema):
        with pytest.raises(SchemaError, match=problem):
            looks(settings)
    (error,) = texts(run_checks(settings), "error")
    assert problem in error
    with pytest.raises(SchemaError, match=problem):
        Service(configuration).start()
    with closing(sqlite3.connect(str(path))) as database:
        assert list(database.iterdump()) == before


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite:///{directory}/hms.db", "has no metastore schema"),
        ("mysql://u:hush@127.0.0.1:1/hive", "does not answer"),
        ("sqlite:///{directory}/no/such/directory/hms.db", "there is no file"),
    ],
)
def test_a_database_that_cannot_be_used_does_not_hide_the_rest(tmp_path: Path, url: str, problem: str) -> None:
    settings = configured(tmp_path, database__url=url.format(directory=tmp_path)).settings
    findings = run_checks(settings)
    (error,) = texts(findings, "error")
    assert problem in error
    assert "hush" not in error
    assert findings.passed == ["the warehouse can be written", "clients reach the addresses they are told"]


@pytest.mark.mariadb
def test_a_writer_that_logs_after_its_commits_is_told(tmp_path: Path, database_servers: ServerLookup) -> None:
    server = database_servers("mariadb")
    url = server.initialized_database()
    configuration = configured(tmp_path, database__url=url)
    service = Service(configuration)
    with client(service.start()) as metastore:
        metastore.create_database(Database(name="shop"))
        metastore.create_table(table("logged"))
    service.stop()
    engine = create_engine(make_url(url).set(drivername="mysql+pymysql"), isolation_level="AUTOCOMMIT")
    commands = (
        "UPDATE NOTIFICATION_LOG SET EVENT_TIME = EVENT_TIME - 3600",
        # What such a writer has committed without having logged it yet, or before it ended.
        "INSERT INTO TBLS (TBL_ID, CREATE_TIME, LAST_ACCESS_TIME, RETENTION, DB_ID, TBL_NAME, TBL_TYPE, SD_ID,"
        " IS_REWRITE_ENABLED) SELECT TBL_ID + 1, CREATE_TIME, 0, 0, DB_ID, 'Late', TBL_TYPE, SD_ID, 0 FROM TBLS",
    )
    with engine.connect() as connection:
        assert run_checks(configuration.settings).found == []
        for command in commands:
            connection.execute(text(command))
        (error,) = texts(run_checks(configuration.settings), "error")
        assert error.startswith("no event names 1 of the 2 newest tables, the last of them shop.late")
        # Its event arrives, and nothing is visible any more: this is why peers are asked, too.
        connection.execute(
            text(
                "INSERT INTO NOTIFICATION_LOG (NL_ID, EVENT_ID, EVENT_TIME, EVENT_TYPE, CAT_NAME, DB_NAME, TBL_NAME,"
                " MESSAGE) SELECT (SELECT MAX(NL_ID) + 1 FROM NOTIFICATION_LOG), EVENT_ID + 1, EVENT_TIME + 3600,"
                " EVENT_TYPE, CAT_NAME, DB_NAME, 'late', MESSAGE FROM NOTIFICATION_LOG ORDER BY EVENT_ID DESC LIMIT 1"
            )
        )
        connection.execute(text("UPDATE NOTIFICATION_SEQUENCE SET NEXT_EVENT_ID = NEXT_EVENT_ID + 1"))
        assert run_checks(configuration.settings).found == []
    engine.dispose()
    server.give_back(url)


@pytest.mark.mariadb
def test_a_schema_that_is_not_served_is_told(tmp_path: Path, database_servers: ServerLookup) -> None:
    server = database_servers("mariadb")
    url = server.initialized_database()
    engine = create_engine(make_url(url).set(drivername="mysql+pymysql"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        before = connection.execute(text("SELECT SCHEMA_VERSION FROM VERSION")).scalar()
        connection.execute(text("UPDATE VERSION SET SCHEMA_VERSION = '2.3.0'"))
        (error,) = texts(run_checks(configured(tmp_path, database__url=url).settings), "error")
        assert "2.3.0" in error
        connection.execute(text("UPDATE VERSION SET SCHEMA_VERSION = :version"), {"version": before})
    engine.dispose()
    server.give_back(url)


@pytest.fixture
def database_for_java(database_servers: ServerLookup) -> Iterator[str]:
    """URL of a MariaDB database made by Hive's own script, with an account that has a password, as Java requires."""
    server = database_servers("mariadb")
    url = server.create_database()
    load_schema(fetch(), url)
    with statement_counter(url) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE USER IF NOT EXISTS 'doctor'@'%' IDENTIFIED BY 'doctor'")
        cursor.execute("GRANT ALL ON *.* TO 'doctor'@'%'")
    yield make_url(url).set(username="doctor", password="doctor").render_as_string(hide_password=False)
    server.drop_database(url)


@pytest.fixture
def late_listener(tmp_path: Path) -> Path:
    """A directory with the class of a listener that logs after the commits."""
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("needs a JDK: javac")
    home = fetch()
    sources = [TESTS / "app/java/LateNotificationListener.java", TESTS.parent / "benchmarks/java/LogListener.java"]
    directory = tmp_path / "classes"
    subprocess.run(
        [compiler, "-cp", f"{home / 'lib'}/*:{home.parent / 'jars'}/*", "-d", directory, *sources], check=True
    )
    return directory


@pytest.mark.soak
@pytest.mark.java
@pytest.mark.mariadb
def test_a_foreign_metastore_that_logs_nothing_is_told(tmp_path: Path, database_for_java: str) -> None:
    java = JavaMetastore(
        database_for_java,
        tmp_path / "java",
        cached=False,
        pool_size=10,
        properties={
            "metastore.txn.timeout": "77s",
            "metastore.repl.cm.enabled": "true",
            "metastore.repl.cmrootdir": f"file:{tmp_path}/cm",
        },
    )
    settings = configured(tmp_path, database__url=database_for_java, cache__peers="hive4").settings
    try:
        peer = f"thrift://{java.start()}"
        findings = run_checks(settings, (peer,))
    finally:
        java.stop()
    assert texts(findings, "error") == [f"the peer {peer} logs none of its writes"]
    assert texts(findings, "warning") == [
        f"metastore.txn.timeout is 77 s at the peer {peer} and 300 s here",
        f"events are kept for 864000 s at the peer {peer}, and this server would delete them after 86400 s",
        f"the peer {peer} makes external tables of managed ones that are not transactional, and this server does not",
    ]


@pytest.mark.soak
@pytest.mark.java
@pytest.mark.mariadb
def test_a_foreign_metastore_that_logs_after_its_commits_is_told_and_so_is_what_it_lost(
    tmp_path: Path, database_for_java: str, late_listener: Path
) -> None:
    java = JavaMetastore(
        database_for_java,
        tmp_path / "java",
        cached=False,
        pool_size=10,
        properties={"metastore.event.listeners": "LateNotificationListener"},
        classes=[late_listener],
    )
    settings = configured(tmp_path, database__url=database_for_java, cache__peers="hive4").settings
    engine = create_engine(make_url(database_for_java).set(drivername="mysql+pymysql"), isolation_level="AUTOCOMMIT")
    try:
        peer = f"thrift://{java.start()}"
        with client(peer) as metastore:
            metastore.create_database(Database(name="shop", locationUri=f"file:{tmp_path}/shop"))
            metastore.create_table(table("orders"))
            with engine.connect() as connection:
                logged = connection.execute(text("SELECT TBL_NAME FROM NOTIFICATION_LOG ORDER BY EVENT_ID")).scalars()
                assert list(logged) == [None, "orders"]
                connection.execute(text("UPDATE NOTIFICATION_LOG SET EVENT_TIME = EVENT_TIME - 3600"))
            late = f"the peer {peer} logs only after its commits, so that a crash loses events"
            assert texts(run_checks(settings, (peer,)), "error") == [late]
            with pytest.raises((TException, OSError)):
                metastore.create_table(table("crash"))
    finally:
        java.stop()
        engine.dispose()
    (error,) = texts(run_checks(settings), "error")
    assert error.startswith("no event names 1 of the 2 newest tables, the last of them shop.crash")


@pytest.mark.mariadb
def test_a_replica_is_told(tmp_path: Path, database_servers: ServerLookup) -> None:
    server = database_servers("mariadb")
    url = server.initialized_database()
    settings = configured(tmp_path, database__url=url).settings
    admin = create_engine(url)
    try:
        with admin.connect() as connection:
            connection.execute(text("SET GLOBAL read_only=ON"))
        (error,) = texts(run_checks(settings), "error")
        assert "the database is read-only: a replica" in error
    finally:
        with admin.connect() as connection:
            connection.execute(text("SET GLOBAL read_only=OFF"))
        admin.dispose()
        server.give_back(url)


@pytest.mark.parametrize("kind", SERVER_KINDS)
def test_the_servers_are_checked_as_well(tmp_path: Path, database_servers: ServerLookup, kind: str) -> None:
    server = database_servers(kind)
    url = server.initialized_database()
    assert run_checks(configured(tmp_path, database__url=url).settings).found == []
    server.give_back(url)
    url = url.rpartition("/")[0] + "/no_such_database"
    (error,) = texts(run_checks(configured(tmp_path, database__url=url).settings), "error")
    assert "no_such_database" in error


@pytest.mark.parametrize("kind", SERVER_KINDS)
def test_databases_that_lose_commits_in_a_crash_are_told_where_leases_rely_on_them(
    tmp_path: Path, database_servers: ServerLookup, kind: str
) -> None:
    """The databases of these tests do not flush writes to the disk in time."""
    server = database_servers(kind)
    url = server.initialized_database()
    settings = {"cache__exactness": "lease", "lease__secret": "a secret of this test"}
    (warning,) = texts(run_checks(configured(tmp_path, database__url=url, **settings).settings), "warning")
    lost = "innodb_flush_log_at_trx_commit = 2" if kind == "mariadb" else "fsync = off, synchronous_commit = off"
    assert f"may lose committed transactions ({lost})" in warning
    server.give_back(url)


@pytest.mark.mariadb
def test_a_database_that_writes_each_commit_to_the_disk_is_not(tmp_path: Path, database_servers: ServerLookup) -> None:
    server = database_servers("mariadb")
    url = server.initialized_database()
    admin = create_engine(make_url(url).set(drivername="mysql+pymysql"), isolation_level="AUTOCOMMIT")
    settings = {"cache__exactness": "lease", "lease__secret": "a secret of this test"}
    try:
        with admin.connect() as connection:
            connection.execute(text("SET GLOBAL innodb_flush_log_at_trx_commit = 1"))
        assert run_checks(configured(tmp_path, database__url=url, **settings).settings).found == []
    finally:
        with admin.connect() as connection:
            connection.execute(text("SET GLOBAL innodb_flush_log_at_trx_commit = 2"))
        admin.dispose()
        server.give_back(url)
