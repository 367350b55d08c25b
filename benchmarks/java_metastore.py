"""Hive's own standalone metastore, fetched from Maven Central by its artifact name and started on MariaDB.

Used by the benchmarks as the opponent and by tests as the reference. Needs a JDK, `mvn` and a MariaDB server.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from xml.sax.saxutils import escape

import pymysql
from sqlalchemy.engine import URL, make_url

from tests.downloads import artifact, unpacked

VERSION = "4.0.1"
SCHEMA_FILE = "hive-schema-4.0.0.mysql.sql"
START_TIMEOUT_S = 180
FOLDER = "java-metastore"
"""Name of the folder in the cache for downloads."""

_DISTRIBUTION = f"org.apache.hive:hive-standalone-metastore-server:{VERSION}:tar.gz:bin"
_LIBRARIES = (
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "org.apache.hadoop:hadoop-client-runtime:3.3.6",
    "javax.servlet:javax.servlet-api:3.1.0",
    "org.slf4j:slf4j-api:1.7.36",
    "commons-collections:commons-collections:3.2.2",
    "com.google.code.gson:gson:2.10.1",
    "commons-io:commons-io:2.15.1",
    "org.apache.httpcomponents:httpclient:4.5.13",
    "org.apache.commons:commons-compress:1.24.0",
    "com.mysql:mysql-connector-j:8.0.31",
    # Only one of its classes is needed: the answer to `get_database` needs SnapshotException.
    "org.apache.hadoop:hadoop-hdfs:3.3.6",
)
_OPENS = [
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.regex",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.time",
    "java.base/sun.nio.ch",
    "java.sql/java.sql",
    "java.base/sun.security.action",
]


def fetch() -> Path:
    """Returns the unpacked distribution; downloads it at the first use. Raises `FetchFailed` if Maven cannot."""
    for one in _LIBRARIES:
        artifact(one, f"{FOLDER}/jars")
    return unpacked(_DISTRIBUTION, f"{FOLDER}/apache-hive-metastore-{VERSION}-bin")


def load_schema(home: Path, url: str) -> None:
    """Runs Hive's own schema script on an empty MariaDB database."""
    parsed = make_url(url)
    script = (home / "scripts" / "metastore" / "upgrade" / "mysql" / SCHEMA_FILE).read_text()
    subprocess.run(
        ["mariadb", "--no-defaults", *_client_options(parsed), str(parsed.database)],
        input=script.encode(),
        cwd=home / "scripts" / "metastore" / "upgrade" / "mysql",
        check=True,
    )


def _client_options(url: URL) -> list[str]:
    options = ["-h", url.host or "127.0.0.1", "-P", str(url.port or 3306), "-u", url.username or "root"]
    return [*options, f"-p{url.password}"] if url.password else options


def statement_counter(url: str) -> pymysql.connections.Connection:
    """A connection that can read the server's statement counter; see `statements`."""
    parsed = make_url(url)
    return pymysql.connect(
        host=parsed.host or "127.0.0.1",
        port=parsed.port or 3306,
        user=parsed.username or "root",
        password=str(parsed.password or ""),
        autocommit=True,
    )


def server_process_id(url: str) -> int:
    """Returns the process of a MariaDB server on this machine."""
    connection = statement_counter(url)
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@pid_file")
        path = Path(cursor.fetchone()[0])
    connection.close()
    return int(path.read_text())


def statements(connection: pymysql.connections.Connection) -> int:
    """Returns the number of statements that the database server has executed so far, including this one."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
        return int(cursor.fetchone()[1])


LOG_LISTENER = {"metastore.transactional.event.listeners": "LogListener"}
"""Settings with which the metastore logs its changes, in the transaction of the change; needs the classes of
`log_listener`."""


def log_listener(directory: Path) -> Path:
    """Returns the class for `LOG_LISTENER`, compiled into this directory, which must exist. Raises
    CalledProcessError."""
    home = fetch()
    path = f"{home / 'lib'}/*:{home.parent / 'jars'}/*"
    source = Path(__file__).parent / "java" / "LogListener.java"
    command = ["javac", "-nowarn", "-proc:none", "-cp", path, "-d", str(directory), str(source)]
    subprocess.run(command, check=True, timeout=120)
    return directory


class JavaMetastore:
    """One Java process. `cached`: with Hive's CachedStore. `properties` override those of the site file.

    `classes`: directories of further classes, searched first. `libraries`: further jars, searched last.
    """

    def __init__(
        self,
        url: str,
        directory: Path,
        *,
        cached: bool,
        pool_size: int = 72,
        heap: str = "2g",
        properties: Mapping[str, str] | None = None,
        classes: Sequence[Path] = (),
        libraries: Sequence[Path] = (),
    ) -> None:
        self._url = make_url(url)
        self._directory = directory
        self._cached = cached
        self._pool_size = pool_size
        self._heap = heap
        self._properties = dict(properties or {})
        self._classes = tuple(classes)
        self._libraries = tuple(libraries)
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    @property
    def log(self) -> str:
        """Its log so far: warnings, and messages of its cache."""
        return (self._directory / "java.log").read_text(errors="replace")

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> str:
        """Starts it and waits until it listens. Returns HOST:PORT. Raises RuntimeError if it ends or takes too long."""
        home = fetch()
        port = _free_port()
        self._directory.mkdir(parents=True, exist_ok=True)
        configuration = self._directory / "conf"
        configuration.mkdir(exist_ok=True)
        (configuration / "metastore-site.xml").write_text(self._site(port))
        (configuration / "log4j2.properties").write_text(
            "status = error\nappender.c.type = Console\nappender.c.name = C\nappender.c.layout.type = PatternLayout\n"
            "rootLogger.level = WARN\nrootLogger.appenderRef.c.ref = C\n"
            "logger.cache.name = org.apache.hadoop.hive.metastore.cache\nlogger.cache.level = INFO\n"
        )
        jars = home.parent / "jars"
        command = [
            "java",
            f"-Xmx{self._heap}",
            *[f"--add-opens={package}=ALL-UNNAMED" for package in _OPENS],
            f"-Dlog4j2.configurationFile={configuration / 'log4j2.properties'}",
            "-cp",
            ":".join(map(str, [*self._classes, configuration, home / "lib" / "*", jars / "*", *self._libraries])),
            "org.apache.hadoop.hive.metastore.HiveMetaStore",
            "-p",
            str(port),
        ]
        log = (self._directory / "java.log").open("wb")
        self._process = subprocess.Popen(command, cwd=self._directory, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                causes = [line for line in self.log.splitlines() if "Caused by" in line or "Exception:" in line]
                raise RuntimeError(f"the Java metastore ended: {'; '.join(causes[-4:])}")
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                self.address = f"127.0.0.1:{port}"
                return self.address
            time.sleep(0.2)
        raise RuntimeError("the Java metastore did not open its port")

    def stop(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _site(self, port: int) -> str:
        store = "org.apache.hadoop.hive.metastore.ObjectStore"
        url = self._url
        properties = {
            "javax.jdo.option.ConnectionURL": f"jdbc:mysql://{url.host}:{url.port}/{url.database}?useSSL=false&allowPublicKeyRetrieval=true",
            "javax.jdo.option.ConnectionDriverName": "com.mysql.cj.jdbc.Driver",
            "javax.jdo.option.ConnectionUserName": url.username or "",
            "javax.jdo.option.ConnectionPassword": str(url.password or ""),
            # Hive's default of 10 makes 4.0.1 stall by 30 s as soon as there are more clients than connections.
            "datanucleus.connectionPool.maxPoolSize": str(self._pool_size),
            "datanucleus.schema.autoCreateAll": "false",
            "metastore.thrift.uris": f"thrift://127.0.0.1:{port}",
            "metastore.thrift.bind.host": "127.0.0.1",
            "metastore.thrift.port": str(port),
            "metastore.warehouse.dir": (self._directory / "managed").as_uri(),
            "metastore.warehouse.external.dir": (self._directory / "external").as_uri(),
            "metastore.rawstore.impl": "org.apache.hadoop.hive.metastore.cache.CachedStore" if self._cached else store,
            "metastore.cached.rawstore.impl": store,
            "metastore.cached.rawstore.max.cache.memory": "-1",
            "metastore.server.min.threads": "20",
            # Else only superusers may ask for events; `metastore.event.db…` is not a name of it.
            "hive.metastore.event.db.notification.api.auth": "false",
            "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
            "metastore.housekeeping.threads.on": "false",
            "metastore.compactor.initiator.on": "false",
            "metastore.stats.fetch.bitvector": "false",
            "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.RuntimeStatsCleanerTask",
            **self._properties,
        }
        body = "".join(
            f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
            for name, value in properties.items()
        )
        return f'<?xml version="1.0"?>\n<configuration>\n{body}</configuration>\n'


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
