"""Two servers on one database: the smallest set that survives a failure. They do not communicate with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hms_cache.cli.demo.server_process import ServerProcess

NAMES = ("one", "other")


@contextmanager
def running_pair(
    directory: Path, database_url: str, warehouse: Path, settings: Mapping[str, object] | None = None
) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Starts both servers, which share the warehouse and the database. Stops those that still run at the end."""
    shared = {"warehouse.directory": warehouse, **(settings or {})}
    pair = (
        ServerProcess(directory / NAMES[0], database_url, shared),
        ServerProcess(directory / NAMES[1], database_url, shared),
    )
    try:
        for server in pair:
            server.start()
        yield pair
    finally:
        with ExitStack() as stopping:  # stops both, even if one has crashed
            for server in pair:
                if server.is_running:
                    stopping.callback(server.stop)


def kill_each_in_turn(
    pair: tuple[ServerProcess, ServerProcess],
    wait_for_work: Callable[[], None],
    report: Callable[[str], None] = lambda _: None,
) -> None:
    """For each server: kills it, checks that work continues, starts it again, and checks again.

    :param wait_for_work: returns when the client has done more work since the call, and raises if it gave up.
    """
    wait_for_work()
    for name, server in zip(NAMES, pair, strict=True):
        server.kill()
        report(f"server {name} killed")
        wait_for_work()
        server.start()
        report(f"server {name} is back")
        wait_for_work()
