"""The three ways to run a shadow, each from start to report."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hms_cache.app.shadow.comparing import Rules
from hms_cache.app.shadow.metastore import Endpoint, Metastore, require_access
from hms_cache.app.shadow.mirror import Mirror, Read
from hms_cache.app.shadow.proxy import Proxy
from hms_cache.app.shadow.recording import Recorder, recorded_reads
from hms_cache.app.shadow.report import Report
from hms_cache.app.shadow.walk import CatalogWalk
from hms_cache.authentication.servers import Address
from hms_cache.errors import ConfigurationError, PortError


def replay(path: Path, primary: Endpoint, other: Endpoint, rules: Rules) -> Report:
    """Sends the file's reads to both metastores. Raises BadRecording, NoAnswer, and like `require_access`."""
    require_access(primary, other)
    return _compare_all(recorded_reads(path), primary, other, rules)


def walk(primary: Endpoint, other: Endpoint, rules: Rules, tables: Sequence[str] = ("*",)) -> Report:
    """Reads the whole catalog, or the tables that match these patterns, from both metastores. Raises WalkFailed,
    NoAnswer, and like `require_access`."""
    require_access(primary, other)
    metastore = Metastore(primary, rules)
    try:
        return _compare_all(CatalogWalk(metastore, tables).reads(), primary, other, rules)
    finally:
        metastore.close()


def listen(
    bind: Address,
    primary: Endpoint,
    other: Endpoint | None,
    rules: Rules,
    *,
    record: Path | None,
    announce: Callable[[Address], None],
    duration_s: float | None = None,
) -> Report:
    """Serves clients until SIGINT or SIGTERM, or for ``duration_s`` seconds.

    Clients authenticate to the primary themselves, and a proxy cannot decode SASL connections. Reads are sent to
    ``other`` and appended to ``record``, whichever is set. Raises StartupError if the port is in use or the file cannot
    be written, ConfigurationError if the primary is reached over HTTP, and like `require_access`.
    """
    if primary.address.by_http:
        raise ConfigurationError("a shadow can only listen for Thrift over TCP; for HTTP use --walk or --replay")
    if other is not None:
        require_access(primary, other)
    report = Report(str(primary), str(other) if other else "")
    with ExitStack() as stack:
        takers: list[Callable[[Read], None]] = []
        if record is not None:
            recorder = stack.enter_context(Recorder(record, report.note))
            takers.append(lambda read: recorder.write(read.method, read.arguments))
        if other is not None:
            takers.append(stack.enter_context(_running(Mirror(primary, other, rules, report))).offer)

        def on_read(read: Read) -> None:
            for taker in takers:
                taker(read)

        asyncio.run(_serve(bind, Proxy(primary.address, rules, on_read, report.note), announce, duration_s))
    return report


async def _serve(bind: Address, proxy: Proxy, announce: Callable[[Address], None], duration_s: float | None) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    try:
        address = await proxy.start(bind.host, bind.port)
    except (OSError, UnicodeError) as error:
        raise PortError(str(bind), error, if_in_use="Choose another address with --listen.") from error
    try:
        announce(address)
        async with asyncio.timeout(duration_s):
            await stopping.wait()
    except TimeoutError:
        pass  # the time is up
    finally:
        await proxy.close()


def _compare_all(reads: Iterable[Read], primary: Endpoint, other: Endpoint, rules: Rules) -> Report:
    report = Report(str(primary), str(other))
    with _running(Mirror(primary, other, rules, report)) as mirror:
        for read in reads:
            mirror.put(read)
    return report


@contextmanager
def _running(mirror: Mirror) -> Iterator[Mirror]:
    """Runs the mirror's threads. At the end, it compares the calls that still wait, unless there was an error."""
    mirror.start()
    try:
        yield mirror
    except BaseException:
        mirror.abandon()
        raise
    mirror.finish()
