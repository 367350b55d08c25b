"""A real server process with small limits, and what can be observed from outside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from tests.servers import MAX_WAIT_S, ServerProcess, server_process

MiB = 1024 * 1024

LISTENING = "0A"
"""A state in /proc/net/tcp."""

LIMITS: dict[str, object] = {
    "server.max_connections": 256,
    "server.max_connections_per_address": 0,
    "server.max_in_flight": 64,
    "server.threads": 4,
    "server.max_message_bytes": 32 * MiB,
    "server.buffer_budget_bytes": 64 * MiB,
    "server.sessions_budget_bytes": 4 * MiB,
    "server.message_timeout_s": 20,
    "server.first_call_timeout_s": 20,
    "server.write_timeout_s": 2,
    "server.drain_timeout_s": 5,
}


class ObservedServer:
    """The process, its management port and its memory."""

    def __init__(self, process: ServerProcess) -> None:
        self.process = process
        self.port = process.port
        found = re.search(r"management port on (\S+)", process.log)
        assert found is not None
        self._management = f"http://{found[1]}"
        self.management_port = int(found[1].rpartition(":")[2])

    def is_alive(self) -> bool:
        """The status of the probe that an orchestrator sends."""
        with urlopen(f"{self._management}/livez", timeout=MAX_WAIT_S) as answer:
            return bool(answer.status == 200)

    def metrics(self) -> dict[str, float]:
        """All metrics without labels; those with labels are summed."""
        with urlopen(f"{self._management}/metrics", timeout=MAX_WAIT_S) as answer:
            text = answer.read().decode()
        values: dict[str, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                values[sample.name] = values.get(sample.name, 0.0) + sample.value
        return values

    def resident_bytes(self) -> int:
        """The current value of the process."""
        status = Path(f"/proc/{self.process.process_id}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    def client_sockets(self) -> int:
        """Descriptors of the process, except listening sockets and the pipes of its own event loops, which are created
        when first needed. A connection that is closed at both ends, but still open here, counts, too."""
        own = Path(f"/proc/{self.process.process_id}")
        held = set()
        for path in (own / "fd").iterdir():
            with suppress(FileNotFoundError):
                held.add(str(path.readlink()))
        # After the descriptors: what was opened meanwhile is in none of them.
        for table in ("tcp", "tcp6"):
            for line in (own / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING:
                    held.discard(f"socket:[{fields[9]}]")
        for line in (own / "net" / "unix").read_text().splitlines()[1:]:
            held.discard(f"socket:[{line.split()[6]}]")
        return sum(name.startswith("socket:") for name in held)


def memory_bound(limits: dict[str, object], quiet_bytes: int) -> int:
    """The formula in docs/operations.md, "Memory under attack", in addition to the memory of the idle server."""

    def value(name: str) -> int:
        found = limits[f"server.{name}"]
        assert isinstance(found, int)
        return found

    return (
        quiet_bytes
        + 2 * value("buffer_budget_bytes")
        + value("max_message_bytes")
        + value("sessions_budget_bytes")
        + value("max_connections") * 96 * 1024
        + value("max_in_flight") * MiB // 2
        + 64 * MiB
    )


@contextmanager
def observed_server(
    directory: Path, while_starting: AbstractContextManager[object] | None = None, **settings: object
) -> Iterator[ObservedServer]:
    """A server on SQLite with `LIMITS`, unless `settings` say otherwise. It must stop in order."""
    url = f"sqlite:///{directory / 'metastore.db'}"
    with ExitStack() as stack:
        with while_starting or nullcontext():
            process = stack.enter_context(server_process(directory, url, {**LIMITS, **settings}, is_forked=False))
        yield ObservedServer(process)
