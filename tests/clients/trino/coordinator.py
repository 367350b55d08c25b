"""One Trino server with a metastore, and sessions that use its HTTP protocol. Presto has the same with other names."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import unquote_plus

from tests.clients.trino import distribution

START_LIMIT_S = 240.0
QUERY_LIMIT_S = 180.0

Row = list[Any]

_JVM = (
    "-Xmx1500m",
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:TieredStopAtLevel=1",
    "-Djdk.attach.allowAttachSelf=true",
    "--add-modules=jdk.incubator.vector",
    "--enable-native-access=ALL-UNNAMED",
)
_CACHES_OFF = {"hive.metastore-cache-ttl": "0s", "hive.metastore-stats-cache-ttl": "0s"}
#: Catalog to its properties; all of them are given the metastore's address and Hadoop's file systems.
CATALOGS: dict[str, dict[str, str]] = {
    "hive": {
        "connector.name": "hive",
        "hive.allow-register-partition-procedure": "true",
        "hive.non-managed-table-writes-enabled": "true",
        "hive.max-partitions-per-writers": "200",
        "hive.hive-views.enabled": "true",
        **_CACHES_OFF,
    },
    "secured": {"connector.name": "hive", "hive.security": "sql-standard", **_CACHES_OFF},
    "iceberg": {
        "connector.name": "iceberg",
        "iceberg.register-table-procedure.enabled": "true",
        "iceberg.expire-snapshots.min-retention": "0s",
        "iceberg.remove-orphan-files.min-retention": "0s",
        "iceberg.max-commit-retry": "50",
    },
    "delta": {
        "connector.name": "delta_lake",
        "delta.enable-non-concurrent-writes": "true",
        "delta.register-table-procedure.enabled": "true",
        # For each table that it meets, it writes the schema to the metastore.
        "delta.metastore.store-table-metadata": "true",
        "delta.metastore.store-table-metadata-interval": "100ms",
        **_CACHES_OFF,
    },
    "hudi": {"connector.name": "hudi", **_CACHES_OFF},
    # Hive's, which leaves tables of other formats to their own catalogs, and views of them unchanged.
    "lake": {
        "connector.name": "hive",
        "hive.hive-views.enabled": "true",
        "hive.hive-views.legacy-translation": "true",
        "hive.delta-lake-catalog-name": "delta",
        "hive.hudi-catalog-name": "hudi",
        "hive.iceberg-catalog-name": "iceberg",
        **_CACHES_OFF,
    },
}


class QueryFailed(Exception):
    """Trino could not run a statement; `name` is its error code."""

    def __init__(self, statement: str, name: str, message: str) -> None:
        super().__init__(f"{statement}\n{name}: {message}")
        self.name = name
        self.message = message


@dataclass(frozen=True)
class Result:
    """Rows of a statement; for one that changes rows, their number."""

    rows: list[Row]
    changed: int | None


@dataclass
class Session:
    """Runs a user's statements one after the other. A role that it sets stays set."""

    base: str
    user: str
    roles: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    product: str = "Trino"
    """The name in the headers."""
    catalog: str = ""
    """In which names without a catalog are, and roles."""

    def rows(self, statement: str) -> list[Row]:
        """The answer's rows in the order they came."""
        return self.execute(statement).rows

    def value(self, statement: str) -> Any:
        """The only value of the answer."""
        rows = self.rows(statement)
        assert len(rows) == 1, rows
        assert len(rows[0]) == 1, rows
        return rows[0][0]

    def column(self, statement: str) -> list[Any]:
        """The first column of the answer."""
        return [row[0] for row in self.rows(statement)]

    def changed(self, statement: str) -> int | None:
        """How many rows the statement changed."""
        return self.execute(statement).changed

    def execute(self, statement: str) -> Result:
        """Runs one statement to its end. Raises `QueryFailed`."""
        deadline = time.monotonic() + QUERY_LIMIT_S
        answer = self._exchange(f"{self.base}/v1/statement", statement)
        rows: list[Row] = []
        changed: int | None = None
        while True:
            if error := answer.get("error"):
                raise QueryFailed(statement, error["errorName"], error["message"])
            rows += answer.get("data") or []
            changed = answer.get("updateCount", changed)
            following = answer.get("nextUri")
            if following is None:
                return Result(rows, changed)
            if time.monotonic() > deadline:
                raise TimeoutError(f"no end after {QUERY_LIMIT_S} s: {statement}")
            answer = self._exchange(following)

    def _exchange(self, address: str, statement: str | None = None) -> dict[str, Any]:
        request = urllib.request.Request(address, None if statement is None else statement.encode())
        headers = {"User": self.user, "Time-Zone": "UTC", "Catalog": self.catalog}
        headers["Role"] = ",".join(f"{name}={role}" for name, role in self.roles.items())
        headers["Session"] = ",".join(f"{name}={value}" for name, value in self.properties.items())
        for name, value in headers.items():
            if value:
                request.add_header(f"X-{self.product}-{name}", value)
        with urllib.request.urlopen(request, timeout=QUERY_LIMIT_S) as response:
            for role in response.headers.get_all(f"X-{self.product}-Set-Role") or []:
                catalog, _, chosen = role.partition("=")
                self.roles[catalog] = unquote_plus(chosen)
            return cast("dict[str, Any]", json.load(response))


class Coordinator:
    """Trino in a separate process, coordinator and worker in one. Must be stopped at the end."""

    product = "Trino"
    main_class = "io.trino.server.TrinoServer"
    jvm_options: Sequence[str] = _JVM
    catalogs: Mapping[str, Mapping[str, str]] = CATALOGS
    common: Mapping[str, str] = MappingProxyType({"fs.hadoop.enabled": "true"})
    """Properties of each catalog."""
    settings: Mapping[str, str] = MappingProxyType({"catalog.management": "static"})
    log_levels: Mapping[str, str] = MappingProxyType({"io.trino": "WARN", "io.airlift": "WARN"})

    def __init__(
        self,
        directory: Path,
        metastore_uri: str,
        more: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        java_options: Sequence[str] = (),
    ) -> None:
        """`directory` is for its configuration, data and log; `more` catalogs name their metastores themselves.

        Raises `distribution.TrinoMissing`.
        """
        self._directory = directory
        self._program, self._home = self._distribution()
        self._process: subprocess.Popen[bytes] | None = None
        self._base = f"http://127.0.0.1:{_free_port()}"
        self._java_options = java_options
        common = {"hive.metastore.uri": metastore_uri, **self.common}
        self._write_configuration({name: {**each, **common} for name, each in self.catalogs.items()} | dict(more))

    def start(self) -> None:
        """Returns when it answers. Raises RuntimeError with the end of its log."""
        configuration = self._directory / "etc"
        command = [
            str(self._program),
            *self.jvm_options,
            *self._java_options,
            f"-Dconfig={configuration / 'config.properties'}",
            f"-Dlog.levels-file={configuration / 'log.properties'}",
            "-Dnode.environment=test",
            "-Dnode.id=one",
            f"-Dnode.data-dir={self._directory / 'data'}",
            f"-Dplugin.dir={self._home / 'plugin'}",
            f"-Dcatalog.config-dir={configuration / 'catalog'}",
            "-cp",
            f"{self._home / 'lib'}/*",
            self.main_class,
        ]
        with (self._directory / "server.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=self._directory, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + START_LIMIT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                log_text = (self._directory / "server.log").read_text(errors="replace")
                self.stop()
                raise RuntimeError(f"{self.product} did not start: {log_text[-3000:]}")
            time.sleep(0.5)

    def session(self, user: str = "admin") -> Session:
        """A new session of a user, who need not be known anywhere."""
        return Session(self._base, user, product=self.product)

    def stop(self) -> None:
        """Kills it: its files are not used afterwards."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def _distribution(self) -> tuple[Path, Path]:
        """Its Java and its folder."""
        return distribution.java(), distribution.fetch()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._base}/v1/info", timeout=30) as response:
                if json.load(response)["starting"]:
                    return False
            # It begins before it has registered as a worker of the catalogs; a write into buckets needs one.
            session = self.session()
            session.execute("CREATE SCHEMA IF NOT EXISTS hive.ready")
            session.execute(
                "CREATE TABLE hive.ready.t WITH (bucketed_by = ARRAY['a'], bucket_count = 1) AS SELECT 1 AS a"
            )
            session.execute("DROP TABLE hive.ready.t")
            session.execute("DROP SCHEMA hive.ready")
            return True
        except (OSError, urllib.error.URLError, QueryFailed):
            return False

    def _write_configuration(self, catalogs: Mapping[str, Mapping[str, str]]) -> None:
        configuration = self._directory / "etc"
        (configuration / "catalog").mkdir(parents=True)
        for name, properties in catalogs.items():
            _write(configuration / "catalog" / f"{name}.properties", properties)
        port = self._base.rpartition(":")[2]
        _write(
            configuration / "config.properties",
            {
                "coordinator": "true",
                "node-scheduler.include-coordinator": "true",
                "http-server.http.port": port,
                "discovery.uri": self._base,
                "query.max-memory": "400MB",
                "query.max-memory-per-node": "400MB",
                **self.settings,
            },
        )
        _write(configuration / "log.properties", self.log_levels)


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
