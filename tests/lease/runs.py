"""Three servers that read by lease, their clients, a fourth that joins and leaves, and faults of all kinds."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.consistency.checker import Violation, check
from tests.consistency.history import Change, read_log, replay
from tests.consistency.proxy import Proxy
from tests.consistency.workload import Client, Workload
from tests.databases import closing
from tests.servers import ServerProcess

LENGTH_S = 0.6
"""Short, so that many leases end in one run."""

SECRET = "a secret of this test run"

BELOW_EPHEMERAL_PORTS = (10_000, 32_000)
"""Linux gives ports from 32,768 on to those who name none."""


def settings(directory: Path, **more: object) -> dict[str, object]:
    """The settings of each member."""
    return {
        "cache.exactness": "lease",
        "lease.secret": SECRET,
        "lease.length_s": LENGTH_S,
        "events.poll_interval_s": 0.3,
        "warehouse.files": "leave",
        "warehouse.directory": str(directory / "warehouse"),
        **{name.replace("__", "."): value for name, value in more.items()},
    }


@dataclass
class Run:
    """Running servers, and their clients."""

    servers: list[ServerProcess]
    proxies: list[Proxy]
    workload: Workload
    database_url: str
    directory: Path
    kind: type[ServerProcess]
    faults: Counter[str] = field(default_factory=Counter)

    @property
    def clock_file(self) -> Path:
        """The file with the offset of the first server's wall clock, if it was started with `FAKETIME`."""
        return self.directory / "clock"

    def log(self) -> list[Change]:
        """The catalog after each event, read from the database."""
        with closing(Database(self.database_url)) as database:
            return replay(read_log(database))

    def violations(self) -> list[Violation]:
        """What cannot be explained in the history so far."""
        return check(self.workload.history, self.log(), 0.0)

    @contextmanager
    def beside(self, seed: int, kinds: tuple[str, ...]) -> Iterator[None]:
        """Causes faults of these kinds, one after the other, during the block."""
        ended = threading.Event()
        errors: list[BaseException] = []

        def go() -> None:
            chance = random.Random(seed)
            try:
                while not ended.wait(chance.uniform(0.1, 0.8)):
                    kind = chance.choice(kinds)
                    getattr(self, f"_{kind}")(chance, ended)
                    self.faults[kind] += 1
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(60)
        if errors:
            raise errors[0]

    def _stop(self, chance: random.Random, ended: threading.Event) -> None:
        """Stops a server, for less than a lease or for several, and continues it."""
        process_id = chance.choice(self.servers).process_id
        os.kill(process_id, signal.SIGSTOP)
        try:
            ended.wait(chance.choice([0.05, 0.3, 0.8, 2.5]))
        finally:
            os.kill(process_id, signal.SIGCONT)

    def _stop_long(self, chance: random.Random, ended: threading.Event) -> None:
        """A server stops for half a minute, fifty leases."""
        process_id = chance.choice(self.servers).process_id
        os.kill(process_id, signal.SIGSTOP)
        try:
            ended.wait(30)
        finally:
            os.kill(process_id, signal.SIGCONT)

    def _step_clock(self, chance: random.Random, ended: threading.Event) -> None:
        """Sets the wall clock of the first server to another time, like an operator or a first NTP answer."""
        self.clock_file.write_text(f"{chance.choice([-86_400, -3_600, -2, -0.5, 0.5, 2, 3_600, 86_400]):+}\n")
        ended.wait(chance.uniform(0.05, 1.0))

    def _break(self, chance: random.Random, ended: threading.Event) -> None:
        """Makes a member unreachable for a while; it still reaches the others."""
        proxy = chance.choice(self.proxies)
        proxy.cut()
        try:
            ended.wait(chance.uniform(0.05, 1.5))
        finally:
            proxy.mend()

    def _swallow(self, chance: random.Random, ended: threading.Event) -> None:
        """Drops messages to a member silently; the connection breaks later."""
        proxy = chance.choice(self.proxies)
        proxy.stall()
        ended.wait(chance.uniform(0.1, 1.5))
        proxy.cut()
        proxy.mend()

    def _come_and_go(self, chance: random.Random, ended: threading.Event) -> None:
        """Another server joins, writes, and then leaves in order or is killed."""
        server = self.kind(self.directory / "visitor", self.database_url, settings(self.directory))
        server.start()
        number = self.faults["come_and_go"]
        client = Client([server.port])
        try:
            for one in range(chance.randint(1, 20)):
                if ended.is_set():
                    break
                with suppress(ttypes.MetaException):
                    client.connections[0].create_database(ttypes.Database(name=f"visited_{number}_{one}"))
        finally:
            client.close()
            if chance.random() < 0.5:
                server.kill()
            else:
                server.stop()


@contextmanager
def members(
    directory: Path,
    database_url: str,
    seed: int,
    *,
    count: int = 3,
    kind: type[ServerProcess] = ServerProcess,
    has_stepping_clock: bool = False,
    is_prepared: bool = True,
    more: Mapping[str, object] | None = None,
    urls: Sequence[str] = (),
) -> Iterator[Run]:
    """This many members, each reached by the others through a proxy of its own, and the tables of the workload.

    `has_stepping_clock`: the first one's wall clock can be set, by libfaketime. `is_prepared`: False if another
    workload runs. `more`: settings. `urls`: at which the members reach the same database, in turn.
    """
    with ExitStack() as stack:
        servers, proxies = [], []
        for number in range(count):
            # The port must be known before the server starts: the proxy leads there.
            port = free_port()
            proxy = Proxy("127.0.0.1", port)
            stack.callback(proxy.cut)
            server = kind(
                directory / f"server{number}",
                urls[number % len(urls)] if urls else database_url,
                {**settings(directory, lease__port=port, lease__address=f"127.0.0.1:{proxy.port}"), **(more or {})},
            )
            if number == 0 and has_stepping_clock:
                start_with_clock(server, directory / "clock")
            else:
                server.start()
            stack.callback(end, server)
            servers.append(server)
            proxies.append(proxy)
        workload = Workload([server.port for server in servers], database_url, seed)
        if is_prepared:
            workload.prepare()
        yield Run(servers, proxies, workload, database_url, directory, kind)


FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


def start_with_clock(server: ServerProcess, clock: Path) -> None:
    """With the wall clock in the file; monotonic clocks are unchanged.

    libfaketime 0.9.10 adds the step to the absolute times of `clock_nanosleep`, whatever their clock: sleeps are waits.
    """
    server.program = f"import threading, time; time.sleep = threading.Event().wait; {server.program}"
    clock.write_text("+0\n")
    preload = {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    os.environ.update(preload)
    try:
        server.start()
    finally:
        for name in preload:
            del os.environ[name]


def end(server: ServerProcess) -> None:
    """In order, if it is running."""
    if server.is_running:
        with suppress(ProcessLookupError):
            os.kill(server.process_id, signal.SIGCONT)
        server.stop()


def free_port() -> int:
    """Returns a port on which nothing listens, and that the system does not assign automatically."""
    while True:
        port = random.randrange(*BELOW_EPHEMERAL_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
