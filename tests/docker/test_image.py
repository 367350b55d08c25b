"""The images, really built, and the compose file's services really run from them: its users, mounts and read-only root.

Without a docker daemon: see containers.py. Everything but the network is as in the compose file; the services share
this machine's, so that each has ports of its own.
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hmsclient.genthrift.hive_metastore.ttypes import Database
from sqlalchemy import create_engine, make_url, text

from hms_cache.config import Settings
from tests.conftest import ServerLookup
from tests.consistency.observers import wait_until
from tests.docker.containers import ROOT, Builder, Container, Image, reason_against
from tests.docker.test_images import read_dockerfile
from tests.servers import metastore_client

pytestmark = [pytest.mark.soak, pytest.mark.long, pytest.mark.mariadb, pytest.mark.timeout(5_400)]

PASSWORD = (ROOT / "docker/database-password").read_text().strip()

#: What an unprivileged process may find out about itself.
LOOK = """
import json, os
def refused(path):
    try:
        open(path, "w").close()
    except OSError as error:
        return error.strerror
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
print(json.dumps({
    "user": os.getuid(),
    "capabilities": int(status["CapEff"], 16),
    "no_new_privileges": status["NoNewPrivs"],
    "refused": [refused(p) for p in ("/usr/x", "/var/lib/hms-cache/x", "/tmp/x", "/var/lib/hms-cache/warehouse/.x")],
}))
"""


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    reason = reason_against()
    if reason is not None:
        pytest.skip(f"no images here: {reason}")
    builder = Builder(tmp_path_factory.mktemp("images"))
    builder.provide(read_dockerfile()["wheels"].base)
    yield builder
    builder.close()


@pytest.fixture(scope="module")
def server_image(builder: Builder) -> Image:
    return builder.build("server")


@dataclass
class Topology:
    """Services of the compose file that run, and how to make others."""

    make: Callable[..., Container]
    ports: dict[str, tuple[int, int]]
    """Of a server: Thrift's and the management port."""

    def health(self, name: str, container: Container, check: list[str]) -> bool:
        """The health check of the compose file or of the image, on the port that the service has here."""
        assert check[0] == "CMD"
        default = str(Settings().admin.port)
        own = [word.replace(f":{default}/", f":{self.ports[name][1]}/") for word in check[1:]]
        assert own != check[1:]
        return container.execute(*own).returncode == 0


@pytest.fixture
def topology(tmp_path: Path, database_servers: ServerLookup) -> Iterator[Topology]:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    server = database_servers("mariadb")
    real = make_url(server.create_database())
    warehouse = tmp_path / "warehouse"
    # As docker makes a new volume: with the owner of the directory in the image.
    warehouse.mkdir()
    user, _, group = services["one"]["user"].partition(":")
    with ExitStack() as stack:
        stack.callback(server.drop_database, real.render_as_string(hide_password=False))
        admin = create_engine(real, isolation_level="AUTOCOMMIT")
        stack.callback(admin.dispose)
        with admin.connect() as connection:
            connection.execute(text("CREATE USER IF NOT EXISTS 'hive'@'127.0.0.1' IDENTIFIED BY :p"), {"p": PASSWORD})
            connection.execute(text(f"GRANT ALL ON {real.database}.* TO 'hive'@'127.0.0.1'"))
        os.chown(warehouse, int(user), int(group))
        ports = {name: (_free_port(), _free_port()) for name in ("one", "other")}

        def make(name: str, image: Image, command: list[str] | None = None) -> Container:
            service = dict(services[name])
            if command is not None:
                service["command"] = command
            environment: dict[str, str] = {}
            if "environment" in service:
                url = make_url(service["environment"]["HMS_CACHE__DATABASE__URL"])
                url = url.set(port=real.port, database=real.database)
                environment["HMS_CACHE__DATABASE__URL"] = url.render_as_string(hide_password=False)
            if name in ports:
                thrift, management = ports[name]
                environment["HMS_CACHE__SERVER__PORT"] = str(thrift)
                environment["HMS_CACHE__ADMIN__PORT"] = str(management)
                environment["HMS_CACHE__SERVER__ADVERTISED_URIS"] = f"thrift://{name}:{thrift}"
            container = Container(
                image,
                service,
                tmp_path / name,
                environment=environment,
                volumes={"warehouse": warehouse},
                secrets={"database-password": ROOT / "docker/database-password"},
            )
            stack.callback(container.close)
            return container

        yield Topology(make, ports)


def begin(topology: Topology, image: Image) -> dict[str, Container]:
    """The schema is created, then both servers are started and healthy."""
    schema = topology.make("schema", image)
    schema.start()
    assert schema.finish(300) == 0, schema.log
    servers = {name: topology.make(name, image) for name in ("one", "other")}
    for container in servers.values():
        container.start()
    for name, container in servers.items():
        wait_healthy(topology, name, container)
    return servers


def wait_healthy(topology: Topology, name: str, container: Container) -> None:
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"][name]

    def healthy() -> bool:
        assert container.is_running, container.log
        return topology.health(name, container, service["healthcheck"]["test"])

    wait_until(healthy, f"{name} is healthy")


def test_the_image_serves_without_rights(server_image: Image, topology: Topology) -> None:
    servers = begin(topology, server_image)
    one, other = servers["one"], servers["other"]
    assert topology.health("one", one, server_image.configuration["Healthcheck"]["Test"])
    seen = json.loads(one.execute("python", "-c", LOOK).stdout)
    assert seen == {
        "user": 10001,
        "capabilities": 0,
        "no_new_privileges": "1",
        "refused": ["Read-only file system", "Read-only file system", None, None],
    }
    # Otherwise, each start would compile everything that it imports.
    for package in ("hms_cache", "sqlalchemy"):
        modules = list(_package(server_image, package).rglob("*.py"))
        assert len(modules) > 50 and all(list(_bytecode(path)) for path in modules)
    with metastore_client(topology.ports["one"][0]) as client:
        client.create_database(Database(name="shop"))
        assert client.get_database("shop").locationUri == "file:/var/lib/hms-cache/warehouse/shop.db"
    with metastore_client(topology.ports["other"][0]) as client:
        assert client.get_all_databases() == ["default", "shop"]
    checked = other.execute("hms-cache", "check", "--peer", f"127.0.0.1:{topology.ports['one'][0]}")
    assert "cache.peers is none" in checked.stdout and checked.stdout.count("error") == 1, checked.stdout
    management = f"http://127.0.0.1:{topology.ports['one'][1]}"
    shown = one.execute("hms-cache", "status", "--management", management)
    assert shown.returncode == 0 and "ACTIVE" in shown.stdout, shown.stdout + shown.stderr

    one.signal(signal.SIGKILL)
    one.finish(60)
    with metastore_client(topology.ports["other"][0]) as client:
        assert client.get_database("shop").name == "shop"
    one.start()
    wait_healthy(topology, "one", one)
    for container in servers.values():
        container.signal(signal.SIGTERM)
        assert container.finish(60) == 0, container.log
    lines = [line for line in other.log.splitlines() if line.startswith("{")]
    assert lines and all({"time", "level", "message"} <= json.loads(line).keys() for line in lines)


@pytest.mark.spark
def test_spark_in_the_clients_image_goes_on_while_a_server_is_killed(
    builder: Builder, server_image: Image, topology: Topology
) -> None:
    servers = begin(topology, server_image)
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    command = [_own_ports(word, topology.ports) for word in services["client"]["command"]]
    client = topology.make("client", builder.build("client"), command)
    client.start(with_pipes=True)
    rounds = Rounds(client)
    rounds.until(2)
    for name, container in servers.items():
        container.signal(signal.SIGKILL)
        container.finish(60)
        rounds.until(rounds.last + 3)
        container.start()
        wait_healthy(topology, name, container)
    assert client.finish(300) == 0, client.log[-3000:]
    totals = rounds.totals()
    assert totals["rounds"] == totals["rows"] == totals["partitions"] > rounds.last - 1


class Rounds:
    """What the client prints, read by a thread so that waits have a limit."""

    def __init__(self, client: Container) -> None:
        self._client = client
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.last = -1
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._client.output:
            if line.startswith(b"{"):
                self._lines.put(json.loads(line))

    def until(self, number: int) -> None:
        """Waits until this round is done."""
        while self.last < number:
            self.last = self._next()["round"]

    def totals(self) -> dict[str, Any]:
        """The last line."""
        line = self._next()
        while "rounds" not in line:
            self.last = line["round"]
            line = self._next()
        return line

    def _next(self) -> dict[str, Any]:
        try:
            return self._lines.get(timeout=300)
        except queue.Empty:
            raise AssertionError(self._client.log[-3000:]) from None


def _own_ports(word: str, ports: dict[str, tuple[int, int]]) -> str:
    return re.sub(r"//(one|other):\d+", lambda found: f"//{found[1]}:{ports[found[1]][0]}", word)


def _package(image: Image, name: str) -> Path:
    (found,) = image.root.glob(f"usr/local/lib/python3*/*-packages/{name}")
    return found


def _bytecode(path: Path) -> Iterator[Path]:
    return (path.parent / "__pycache__").glob(f"{path.stem}.cpython-*.pyc")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
