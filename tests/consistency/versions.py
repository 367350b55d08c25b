"""Reads of every kind on two servers beside one writer; after each write, an oracle reads the database.

With one writer, the order of all changes is known, and so are all answers that were ever correct: between two writes,
an oracle, a server without a cache, gets all reads. Each answer to a client must be one that was allowed at its time:
P1, and at a staleness above 0 P3 and P4.
"""

from __future__ import annotations

import heapq
import os
import random
import signal
import threading
import time
import urllib.error
import urllib.request
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.consistency.all_reads import DATABASES, PLACES, Ask, Known, Place, Writes, outcome, reads, write_id_list
from tests.consistency.workload import Client
from tests.lease.runs import SECRET, end, free_port
from tests.servers import ServerProcess

MODES: Mapping[str, tuple[float, dict[str, object]]] = {
    "check": (0.0, {}),
    "lease": (0.0, {"cache.exactness": "lease", "lease.secret": SECRET, "lease.length_s": 0.6}),
    "stale workers": (0.4, {"cache.max_staleness_ms": 400, "server.workers": 2}),
    "workers that never ask": (float("inf"), {"cache.max_staleness_ms": "inf", "server.workers": 2}),
}
"""How old answers may be, in seconds, and what is set for it."""

SEVERAL_CALLS = frozenset({"w_swap_tables", "w_recreate_table", "w_drop_catalog", "w_drop_and_add_partition"})
"""Writes after whose parts nobody asks the oracle."""

TOKEN = "of this test run"

READERS = 2
"""At each server."""

KINDS_OF_WRITES = 10
"""In one run."""


@dataclass(frozen=True, slots=True)
class AnswerPositions:
    """A client's answer, and its time by the client's clock."""

    began_s: float
    ended_s: float
    server: int
    label: str
    answer: Any


@dataclass
class Versions:
    """The answers after each write. Version 0 is the catalog before the first."""

    began_s: list[float] = field(default_factory=lambda: [float("-inf")])
    ended_s: list[float] = field(default_factory=lambda: [float("-inf")])
    servers: list[int | None] = field(default_factory=lambda: [None])
    """That took the write, unless it was refused."""
    answers: list[dict[str, Any]] = field(default_factory=list)
    texts: list[str] = field(default_factory=lambda: ["the beginning"])

    def wrong(self, seen: list[AnswerPositions], max_staleness_s: float) -> list[str]:
        """Returns the answers that no version allowed at their time explains."""
        groups = [{0, 1}] if max_staleness_s == 0 else [{0}, {1}]
        return [text for servers in groups for text in self._wrong(seen, servers, max_staleness_s)]

    def _wrong(self, seen: list[AnswerPositions], servers: set[int], max_staleness_s: float) -> Iterator[str]:
        shown: list[tuple[float, int]] = []
        floor = 0
        own = [version for version, server in enumerate(self.servers) if server in servers]
        own_ends = [self.ended_s[version] for version in own]
        for read in sorted((one for one in seen if one.server in servers), key=lambda one: one.began_s):
            while shown and shown[0][0] < read.began_s:
                floor = max(floor, heapq.heappop(shown)[1])
            written = bisect_left(own_ends, read.began_s)
            low = max(floor, own[written - 1] if written else 0)
            if max_staleness_s != float("inf"):
                low = max(low, bisect_left(self.ended_s, read.began_s - max_staleness_s) - 1)
            high = bisect_right(self.began_s, read.ended_s) - 1
            fits = (one for one in range(low, high + 1) if self.answers[one][read.label] == read.answer)
            version = next(fits, None)
            if version is not None:
                heapq.heappush(shown, (read.ended_s, version))
                continue
            writes = "\n    ".join(self.texts[max(0, low - 2) : high + 1])
            yield (
                f"server {read.server}: {read.label}: {read.answer!s:.1000}\n"
                f"  is of none of the versions {low} to {high}:\n"
                f"  {self.answers[low][read.label]!s:.1000}\n  {self.answers[high][read.label]!s:.1000}\n    {writes}"
            )


def command(server: ServerProcess, path: str) -> str:
    """The management port's answer to a command."""
    port = next(
        line.rpartition(":")[2] for line in reversed(server.log.splitlines()) if "management port on 127.0.0.1:" in line
    )
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", method="POST")
    request.add_header("Authorization", f"Bearer {TOKEN}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        assert error.code == 409, f"{path}: {error.code}"  # it cannot be carried out now
        return str(error.read().decode())


class Run:
    """Two servers, the oracle, and the requests to them."""

    def __init__(self, servers: list[ServerProcess], oracle: ServerProcess, seed: int, kinds: int) -> None:
        self._servers = servers
        self._chance = random.Random(seed)
        self._known = Known()
        self._writes = Writes(self._chance, self._known, SEVERAL_CALLS | {"w_alter_database"}, KINDS_OF_WRITES)
        self._writer, self._oracle = Client([server.port for server in servers]), Client([oracle.port])
        self.versions = Versions()
        self.seen: list[AnswerPositions] = []
        self._fill()
        self._requested = self._choose(kinds)
        self._look()

    def close(self) -> None:
        """Closes its connections."""
        self._writer.close()
        self._oracle.close()

    def draw_only(self, *kinds: str) -> None:
        """From now on, no other writes."""
        self._writes.draw_only(kinds)

    def _fill(self) -> None:
        """A table with most of the names, and some partitions."""
        first = self._writer.connections[0]
        for name in DATABASES:
            first.create_database(ttypes.Database(name, "d", None, {}))
        for place in PLACES:
            if self._chance.random() < 0.85:
                self._writes.make_table(first, place)
        others = [Place("hive", "d2", name) for name in self._chance.sample(["t1", "acid", "mv"], 2)]
        self._writes.focus = [Place("hive", "d1", self._chance.choice(["t1", "t2", "acid"])), *others]
        for place in self._writes.focus:
            for value in "12":
                outcome(lambda c, p=place, v=value: c.append_partition(p.sent, p.table, [v]), first)
            found = outcome(lambda c, p=place: c.get_table(p.sent, p.table), first)
            if isinstance(found, ttypes.Table):
                self._known.ids[place] = [found.id]
                self._known.lists[place] = [write_id_list(first, place)]

    def _choose(self, kinds: int) -> dict[str, Ask]:
        """Reads of this many kinds, one of each, about what is written most."""
        by_kind: dict[str, list[tuple[str, Ask]]] = {}
        place = str(self._writes.focus[0])
        for label, ask in reads(self._chance, self._known):
            if "c2" not in label and ("Place(" not in label or place in label):
                by_kind.setdefault(label.partition(" ")[0], []).append((label, ask))
        chosen = self._chance.sample(sorted(by_kind), min(kinds, len(by_kind)))
        return dict(self._chance.choice(by_kind[kind]) for kind in chosen)

    def _look(self) -> None:
        oracle = self._oracle.connections[0]
        self.versions.answers.append({label: outcome(ask, oracle) for label, ask in self._requested.items()})
        self._known.there = [Place("hive", one.dbName, one.tableName) for one in oracle.get_table_meta("*", "*", None)]

    def write(self, count: int) -> None:
        """Sends this many writes, successful or refused; the oracle reads after each."""
        for _ in range(count):
            server = self._chance.randrange(len(self._servers))
            text, ask = self._writes.draw()
            began_s = time.monotonic()
            answer = outcome(ask, self._writer.connections[server])
            ended_s = time.monotonic()
            self._look()
            versions = self.versions
            versions.began_s.append(began_s)
            versions.ended_s.append(ended_s)
            versions.servers.append(None if isinstance(answer, tuple) else server)
            versions.texts.append(f"{len(versions.texts)} by {server}: {text}: {answer!s:.80}")

    def _disturb(self, chance: random.Random, ended: threading.Event) -> None:
        server, place = chance.choice(self._servers), self._writes.focus[0]
        match chance.choice(["stop", "stop", "pause", "events/resync", "commands/flush", "commands/refresh"]):
            case "stop":
                os.kill(server.process_id, signal.SIGSTOP)
                try:
                    ended.wait(chance.choice([0.05, 0.3, 1.0]))
                finally:
                    with suppress(ProcessLookupError):
                        os.kill(server.process_id, signal.SIGCONT)
            case "pause":
                command(server, "events/pause")
                ended.wait(0.2)
                command(server, "events/resume")
            case "events/resync":
                command(server, "events/resync")
            case drop:
                table = f"?database={place.database}&table={place.table}"
                command(
                    server, drop + chance.choice(["", f"?database={place.database}", table, f"{table}&partition=p=1"])
                )

    @contextmanager
    def reading(self, *, disturbs: bool = False) -> Iterator[None]:
        """Readers at both servers until the end of the block. `disturbs`: servers stand still now and then, and are
        told to drop what they hold, or to follow the log no longer for a while."""
        ended = threading.Event()
        errors: list[BaseException] = []

        def read(server: int, number: int) -> None:
            chance = random.Random(number)
            labels = sorted(self._requested)
            client = Client([self._servers[server].port])
            try:
                while not ended.wait(chance.choice([0, 0.002, 0.02])):  # the writer and the oracle need time, too
                    if chance.random() < 0.2:  # perhaps another worker
                        client.close()
                        client = Client([self._servers[server].port])
                    label = chance.choice(labels)
                    began_s = time.monotonic()
                    answer = outcome(self._requested[label], client.connections[0])
                    self.seen.append(AnswerPositions(began_s, time.monotonic(), server, label, answer))
            except BaseException as error:
                errors.append(error)
            finally:
                client.close()

        def disturb() -> None:
            chance = random.Random(0)
            try:
                while not ended.wait(chance.uniform(0.2, 1.0)):
                    self._disturb(chance, ended)
            except BaseException as error:
                errors.append(error)

        threads = [
            threading.Thread(target=read, args=(server, number), daemon=True)
            for number, server in enumerate([0, 1] * READERS)
        ]
        threads += [threading.Thread(target=disturb, daemon=True)] if disturbs else []
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join(60)
        if errors:
            raise errors[0]


@contextmanager
def beside_one_writer(
    directory: Path, url: str, mode: str, seed: int, *, kinds: int, kind: type[ServerProcess] = ServerProcess
) -> Iterator[Run]:
    """Two servers and an oracle on the database."""
    chance = random.Random(seed)
    (directory / "token").write_text(f"{TOKEN}\n")
    common: dict[str, object] = {
        "warehouse.files": "leave",
        "warehouse.directory": str(directory / "warehouse"),
        "admin.token_file": str(directory / "token"),
    }
    with ExitStack() as stack:

        def started(name: str, settings: dict[str, object], of: type[ServerProcess]) -> ServerProcess:
            server = of(directory / name, url, {**common, **settings})
            server.start()
            stack.callback(end, server)
            return server

        oracle = started("oracle", {"cache.enabled": "false"}, ServerProcess)
        servers = []
        for number in range(2):
            settings = {
                "events.poll_interval_s": chance.choice([0.05, 0.3, 5]),
                "cache.load_at_once_partitions": chance.choice([300, 2]),
                "cache.refill": chance.choice(["recent", "none"]),
                **MODES[mode][1],
            }
            if mode == "lease":
                settings["lease.port"] = free_port()
            servers.append(started(f"server{number}", settings, kind))
        run = Run(servers, oracle, seed, kinds)
        stack.callback(run.close)
        yield run
