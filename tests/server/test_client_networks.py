"""Limits by client address: all IPv6 addresses of a network count as one client, if the site says so."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import cast

import pytest
from thrift.Thrift import TApplicationException

from hms_cache.app.management_protocol import ConnectionLimits
from hms_cache.cache.warming.load_limits import LoadLimitReached, LoadLimits
from hms_cache.call_context import call_context
from hms_cache.server import connection
from hms_cache.server.fairness import RoundRobin
from hms_cache.server.transports.client_networks import client_networks
from hms_cache.server.transports.fair_threads import FairThreads
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from tests.server.conftest import Link, Serve
from tests.server.test_thread_pools import stuck_reads
from tests.server.test_tls import wait_for

ONE, SAME, OTHER = "2001:db8:1:2::1", "2001:db8:1:2:ffff::2", "2001:db8:1:3::1"
NETWORK = "2001:db8:1:2::/64"


@pytest.mark.parametrize(
    ("bits", "address", "counted_as"),
    [
        (64, ONE, NETWORK),
        (64, SAME, NETWORK),
        (64, OTHER, "2001:db8:1:3::/64"),
        (48, OTHER, "2001:db8:1::/48"),
        (128, ONE, ONE),
        (64, "192.0.2.1", "192.0.2.1"),
        # All of IPv4, and all neighbors, are one network of 64 bits.
        (64, "::ffff:192.0.2.1", "::ffff:192.0.2.1"),
        (64, "fe80::1%eth0", "fe80::1%eth0"),
        (64, "local", "local"),
        (64, "", ""),
    ],
)
def test_what_an_address_counts_as(bits: int, address: str, counted_as: str) -> None:
    assert client_networks(bits)(address) == counted_as


@pytest.fixture
def come_from(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes connections appear to come from these addresses in turn: the loopback interface has one of IPv6."""

    def use(*addresses: str) -> None:
        round_robin = cycle(addresses)
        monkeypatch.setattr(connection, "address_of", lambda _: next(round_robin))

    return use


@pytest.mark.parametrize(("bits", "is_refused"), [(64, True), (128, False)])
def test_connections(serve: Serve, come_from: Callable[..., None], bits: int, is_refused: bool) -> None:
    come_from(ONE, SAME, OTHER)
    server = serve(**{"server.client_ipv6_prefix_length": bits, "server.max_connections_per_address": 1})
    one, same, other = (server.link() for _ in range(3))
    assert one.call("getStatus") == other.call("getStatus") == 2
    if is_refused:
        with pytest.raises(TApplicationException, match=f"1 are open from {NETWORK}"):
            same.call("getStatus")
    else:
        assert same.call("getStatus") == 2
    one.sock.close()
    same.sock.close()
    come_from(SAME)
    wait_for(lambda: _is_let_in(server.link()))


def _is_let_in(link: Link) -> bool:
    try:
        return bool(link.call("getStatus") == 2)
    except TApplicationException:
        return False
    finally:
        link.sock.close()


def test_calls(serve: Serve, come_from: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    come_from(ONE, SAME, OTHER)
    settings = {"server.client_ipv6_prefix_length": 64, "server.max_calls_per_address": 1, "cache.enabled": False}
    server = serve(**settings)
    one, same, other = (server.link() for _ in range(3))
    for link in (one, same, other):
        assert link.call("getStatus") == 2
    with ThreadPoolExecutor(2) as pool, stuck_reads(monkeypatch) as running:
        waiting = [pool.submit(one.call, "get_all_databases")]
        assert running.acquire(timeout=20)
        with pytest.raises(MetaException, match=f"calls from {NETWORK} are in flight"):
            same.call("get_all_databases")
        waiting.append(pool.submit(other.call, "get_all_databases"))
        assert running.acquire(timeout=20)
    assert [call.result(20) for call in waiting] == [["answered"]] * 2


@pytest.fixture
def as_caller() -> Iterator[Callable[[str], None]]:
    before = call_context.call, call_context.address

    def be(address: str) -> None:
        call_context.call, call_context.address = 1, address

    yield be
    call_context.call, call_context.address = before


def test_loads(as_caller: Callable[[str], None]) -> None:
    limits = LoadLimits(max_per_address=1, network_of=client_networks(64))
    as_caller(ONE)
    with limits.one_load():
        as_caller(SAME)
        with pytest.raises(LoadLimitReached, match=f"for address {NETWORK}"), limits.one_load():
            pass
        as_caller(OTHER)
        with limits.one_load():
            pass
    as_caller(SAME)
    with limits.one_load():
        pass


def test_threads_of_authentication_are_shared_by_networks() -> None:
    threads = FairThreads(1, "test", client_networks(64))
    gate, done = threading.Event(), []
    threads.submit(ONE, lambda: cast(None, gate.wait(20)), lambda: True)
    for number in range(3):
        threads.submit(f"2001:db8:1:2::{number}", lambda: done.append("crowd"), lambda: True)
    threads.submit(OTHER, lambda: done.append("other"), lambda: True)
    gate.set()
    wait_for(lambda: len(done) == 4)
    threads.close()
    assert done.index("other") <= 1


def test_turns_of_the_loop_are_shared_by_networks() -> None:
    done: list[str] = []

    class Waiting:
        def __init__(self, name: str) -> None:
            self.name = name

        def run_slice(self) -> None:
            done.append(self.name)

    async def run() -> None:
        round_robin = RoundRobin(asyncio.get_running_loop(), network_of=client_networks(64))
        for number in range(3):
            round_robin.later(f"2001:db8:1:2::{number}", Waiting("crowd"))
        round_robin.later(OTHER, Waiting("other"))
        while len(done) < 4:
            await asyncio.sleep(0)

    asyncio.run(run())
    assert done[1] == "other"


def test_the_management_port() -> None:
    limits = ConnectionLimits(8, 10, 4, 1, client_networks(64))
    assert limits.listeners.acquire(limits.network_of(ONE)) and not limits.listeners.acquire(limits.network_of(SAME))
    assert limits.listeners.acquire(limits.network_of(OTHER))
