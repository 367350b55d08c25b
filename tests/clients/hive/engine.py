"""Hive 4.0.1's own engine: compiler, transaction manager and Tez in local mode, from Maven Central, in one process."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from xml.sax.saxutils import escape

from sqlalchemy.engine import make_url

from benchmarks import java_metastore
from tests.downloads import dependencies

VERSION = "4.0.1"
LIMIT_S = 1400

_NOT_NEEDED = ("org.pac4j", "net.shibboleth.tool")
"""Of HiveServer2's single sign-on, and not all of it is on Maven Central."""

_ARTIFACTS = (
    f"org.apache.hive:hive-cli:{VERSION}",
    f"org.apache.hive:hive-service:{VERSION}",
    "org.apache.hadoop:hadoop-hdfs:3.3.6",
    "org.apache.hadoop:hadoop-yarn-registry:3.3.6",
    "org.apache.tez:tez-dag:0.10.4",
    "org.apache.tez:tez-mapreduce:0.10.4",
    "com.cronutils:cron-utils:9.1.6",
    "org.springframework:spring-jdbc:5.3.39",
    "org.slf4j:slf4j-api:1.7.36",
)
_OPENS = (
    "java.base/java.lang",
    "java.base/java.net",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.util.regex",
    "java.base/java.io",
    "java.base/java.nio",
    "java.base/java.time",
    "java.base/java.text",
    "java.sql/java.sql",
    "java.base/sun.nio.ch",
)
CAPABILITIES = (
    "HIVEFULLACIDWRITE,HIVEFULLACIDREAD,HIVECACHEINVALIDATE,HIVEMANAGESTATS,HIVEMANAGEDINSERTWRITE,"
    "HIVEMANAGEDINSERTREAD,HIVESQL,HIVEMQT,HIVEBUCKET2,EXTWRITE,EXTREAD,MANAGERAWMETADATA,ACCEPTS_UNMODIFIED_METADATA"
)

OPTIONS = tuple(option for package in _OPENS for option in ("--add-opens", f"{package}=ALL-UNNAMED"))
"""Of a JVM that runs Hive."""

_CHATTER = re.compile(
    r"SLF4J|Hive Session ID|Logging initialized|Query ID|Total jobs|Launching Job|Status: |\s*Time taken|\s+at |RemoteE"
    r"|\d{4}-\d\d-\d\d.*(task attempt|Dag|WARN)|WARN|.*StatusLogger|\s*$"
)
_PROMPT = re.compile(r"\A(?:(?:hive|    )(?: \([^)]*\))?> ?)+")
_CHANGING = (
    (re.compile(r"\b1\d{9}(\d{3})?\b"), "TIME"),
    (re.compile(r"\b(pk|fk|uk|nn|dc|cc)_-?\d+_\d{13}_\d+\b"), r"\1_NAME"),
    (re.compile(r"\bvertex_\d{13}_"), "vertex_TIME_"),
    (re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} \d\d [\d:]{8} \w+ \d{4}"), "DATE"),
)
_VIOLATED = re.compile(r"DataConstraintViolationError: .*?!")
"""What a task fails with in a row that a constraint forbids, among names of its attempts."""


def fetch() -> Path:
    """Returns the directory of the jars; Maven downloads them at the first use. Raises `FetchFailed`."""
    lib = dependencies(f"hive-engine-{VERSION}", _project(), ["-DincludeScope=runtime"])
    for unwanted in lib.glob("*-tests.jar"):
        unwanted.unlink(missing_ok=True)
    return lib


def _project() -> str:
    exclusions = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>*</artifactId></exclusion>" for group in _NOT_NEEDED
    )
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>".format(*one.split(":"))
        + f"<exclusions>{exclusions}</exclusions></dependency>"
        for one in _ARTIFACTS
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>engine</groupId>'
        f"<artifactId>engine</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>"
    )


def class_path(configuration: Path, library: Path) -> str:
    """Returns all jars in a defined order, since `*` uses the order of the directory.

    hive-exec contains the classes of ANTLR and Protocol Buffers that Hive and Tez need; with older ones before it, no
    statement with a task runs. hadoop-client-api contains classes of Hadoop whose runtime is missing.
    """
    first, last = ("hive-exec-",), ("hadoop-client-api-", "protobuf-java-", "antlr-runtime-")
    jars = sorted(
        library.glob("*.jar"), key=lambda jar: (not jar.name.startswith(first), jar.name.startswith(last), jar.name)
    )
    return ":".join(map(str, [configuration, *jars]))


_OF_STORE = ("datanucleus-", "javax.jdo-", "HikariCP-", "mysql-connector-")


def of_database(database_url: str) -> tuple[dict[str, str], list[Path]]:
    """Returns properties and jars for the metastore's database: Hive 4.0.1 reads compactions directly from it."""
    home = java_metastore.fetch()
    url = make_url(database_url)
    properties = {
        "javax.jdo.option.ConnectionURL": f"jdbc:mysql://{url.host}:{url.port or 3306}/{url.database}",
        "javax.jdo.option.ConnectionDriverName": "com.mysql.cj.jdbc.Driver",
        "javax.jdo.option.ConnectionUserName": url.username or "",
        "javax.jdo.option.ConnectionPassword": str(url.password or ""),
        "datanucleus.connectionPool.maxPoolSize": "4",
    }
    found = [*(home / "lib").glob("*.jar"), *(home.parent / "jars").glob("*.jar")]
    return properties, sorted(jar for jar in found if jar.name.startswith(_OF_STORE))


def command_line(
    uri: str,
    directory: Path,
    shared: Path,
    database_url: str | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Returns Hive's command line. Its own files are in `directory`, those of tables below `shared`; `more` are
    properties."""
    configuration = directory / "conf"
    configuration.mkdir(parents=True)
    properties = {
        "hive.metastore.uris": uri,
        # Where it creates external tables itself.
        "hive.metastore.warehouse.dir": f"file:{shared}/wh",
        "hive.metastore.warehouse.external.dir": f"file:{shared}/ext",
        "hive.metastore.client.capabilities": CAPABILITIES,
        "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
        "hive.support.concurrency": "true",
        "hive.exec.dynamic.partition.mode": "nonstrict",
        "hive.execution.engine": "tez",
        "tez.local.mode": "true",
        "tez.ignore.lib.uris": "true",
        "tez.runtime.optimize.local.fetch": "true",
        "tez.runtime.io.sort.mb": "32",
        "hive.tez.container.size": "512",
        "hive.auto.convert.join": "false",
        "fs.defaultFS": "file:///",
        "tez.staging-dir": str(directory / "staging"),
        "hive.exec.scratchdir": str(directory / "scratch"),
        "hive.exec.local.scratchdir": str(directory / "local"),
        "hive.user.install.directory": f"file:{directory}/install",
    }
    if database_url is not None:
        properties |= of_database(database_url)[0]
    properties |= more
    body = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    )
    for site in ("hive-site.xml", "core-site.xml"):  # Hadoop's own classes read the second one
        (configuration / site).write_text(f"<configuration>{body}</configuration>")
    started = java(configuration, "org.apache.hadoop.hive.cli.CliDriver", database_url)
    return [*started, "--hiveconf", "hive.cli.errors.ignore=true"]


def java(configuration: Path, main: str, database_url: str | None = None) -> list[str]:
    """Returns a command that runs a main class, or a file with one, with Hive's classes and those for the database, if
    any."""
    jars = [] if database_url is None else of_database(database_url)[1]
    return [
        "java",
        "-Xmx1500m",
        *OPTIONS,
        "-cp",
        ":".join([class_path(configuration, fetch()), *map(str, jars)]),
        main,
    ]


class Session:
    """One process of Hive, to which statements are sent one by one."""

    def __init__(
        self,
        uri: str,
        directory: Path,
        shared: Path,
        database_url: str | None = None,
        *,
        properties: Mapping[str, str] = MappingProxyType({}),
        environment: Mapping[str, str] | None = None,
        limit_s: float = LIMIT_S,
    ) -> None:
        """`directory`: its own files; `shared` is what `{directory}` stands for in statements.

        `database_url`: of the metastore's MariaDB, for a user with a password; compactions need it. `properties` are
        beside those that it has; `environment` of the process is the caller's unless given. It is killed after
        `limit_s`.
        """
        directory.mkdir(parents=True)
        self._shared = shared
        self._replaced = [str(directory), str(shared)]
        self._number = 0
        self._process = subprocess.Popen(
            command_line(uri, directory, shared, database_url, properties),
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )
        self._watchdog = threading.Timer(limit_s, self._process.kill)
        self._watchdog.start()

    def execute(self, statement: str) -> list[str]:
        """Returns its output for one statement. Raises RuntimeError if the process ends or hangs."""
        self._number += 1
        mark = f"END-OF-{self._number}"
        assert self._process.stdin is not None and self._process.stdout is not None
        # Its console repeats its input, in lines of its own width.
        echo = f"{statement.replace('{directory}', str(self._shared))};"
        self._process.stdin.write(f"{echo}\n!echo {mark};\n")
        self._process.stdin.flush()
        found: list[str] = []
        for line in self._process.stdout:
            text = _PROMPT.sub("", line.rstrip("\n"))
            if echo and text.strip() and echo.startswith(text.strip()):
                echo = echo.removeprefix(text.strip()).lstrip()
                continue
            if text.strip() == mark:
                return found
            for path in self._replaced:
                text = text.replace(path, "DIRECTORY")
            if text and not _CHATTER.match(text) and mark not in text and text.strip().rstrip(";") != statement:
                found.append(_steady(text))
        raise RuntimeError(f"Hive ended at {statement!r}:\n" + "\n".join(found[-40:]))

    def close(self) -> None:
        """Ends the process."""
        self._watchdog.cancel()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.kill()
        self._process.wait(60)


def run(statements: str, uri: str, directory: Path) -> list[str]:
    """What Hive prints for the statements, one after the other, without times and progress.

    `{directory}` in a statement stands for the directory, under which all files are. A statement that fails says so
    and does not end the run. Raises RuntimeError when the process does not get to the last one.
    """
    directory.mkdir(parents=True, exist_ok=True)
    script = directory / "statements.sql"
    script.write_text(statements.replace("{directory}", str(directory)))
    command = [*command_line(uri, directory, directory), "-v", "-f", str(script)]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, check=False
    )
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    last = [line for line in statements.splitlines() if line.strip()][-1].rstrip(";")
    if last not in done.stdout + done.stderr:
        raise RuntimeError("Hive did not get to the end:\n" + "\n".join(lines[-60:]))
    return [_steady(line.replace(str(directory), "DIRECTORY")) for line in lines if not _CHATTER.match(line)]


def _steady(line: str) -> str:
    violated = _VIOLATED.search(line)
    if violated:
        return f"FAILED: {violated.group()}"
    for pattern, word in _CHANGING:
        line = pattern.sub(word, line)
    return line.rstrip()
