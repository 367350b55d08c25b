"""Two servers on one database: the smallest set that survives a failure. They know nothing of each other."""

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
    """Both servers, ready; stopped at the end if they run. They share the warehouse as they share the database."""
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
        with ExitStack() as stopping:  # both, though one has crashed
            for server in pair:
                if server.is_running:
                    stopping.callback(server.stop)


def kill_each_in_turn(
    pair: tuple[ServerProcess, ServerProcess],
    wait_for_work: Callable[[], None],
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Kill a server, see that work goes on, start it again, see that work goes on; so with each.

    `wait_for_work` returns when the client has done some more since the call, and raises if it gave up.
    """
    wait_for_work()
    for name, server in zip(NAMES, pair, strict=True):
        server.kill()
        tell(f"server {name} killed")
        wait_for_work()
        server.start()
        tell(f"server {name} is back")
        wait_for_work()
