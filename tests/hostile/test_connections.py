"""Each attack alone, on a real server process: others are answered, memory is bounded, and all of it is released."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from thrift.Thrift import TApplicationException

from tests.hostile.attacks import ATTACKS, MAX_WAIT_S, Attack, Attacker, MiB
from tests.hostile.observed_server import LIMITS, ObservedServer, memory_bound, observed_server
from tests.server.conftest import Link, request_bytes
from tests.servers import metastore_client

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedServer]:
    """One for all attacks, so that the next one would show what one of them leaves behind."""
    with observed_server(tmp_path_factory.mktemp("hostile")) as server:
        yield server


def wait_for(holds: Callable[[], bool], what: Callable[[], object]) -> None:
    """Repeats the check until it succeeds."""
    end_s = time.monotonic() + MAX_WAIT_S
    while not holds():
        assert time.monotonic() < end_s, what()
        time.sleep(0.02)


def link_to(server: ObservedServer) -> Link:
    return Link(socket.create_connection(("127.0.0.1", server.port), timeout=MAX_WAIT_S))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: one.__name__)
def test_others_are_answered_and_everything_is_given_back(server: ObservedServer, attack: Attack) -> None:
    quiet_bytes = server.resident_bytes()
    before = server.metrics()
    attacker = Attacker(server.port)
    with metastore_client(server.port) as honest:
        honest.getName()
        for _ in range(12):
            attack(attacker)
            assert honest.getName() == "new db based metaserver"
        assert server.is_alive()
        with metastore_client(server.port) as newcomer:
            assert newcomer.get_all_databases() == ["default"]
        assert server.metrics()["hms_cache_buffered_bytes"] <= LIMITS["server.buffer_budget_bytes"]  # type: ignore[operator]
        assert server.resident_bytes() <= memory_bound(LIMITS, quiet_bytes)
        attacker.close()
    for name in ("hms_cache_connections", "hms_cache_calls_in_flight", "hms_cache_buffered_bytes"):
        wait_for(lambda name=name: server.metrics()[name] == 0, server.metrics)  # type: ignore[misc]
    assert server.metrics()["hms_cache_session_bytes"] == before["hms_cache_session_bytes"] == 0
    wait_for(lambda: server.client_sockets() == 0, server.client_sockets)


def test_large_messages_that_stand_still_make_way_for_one_that_comes(server: ObservedServer) -> None:
    before = server.metrics()["hms_cache_connections_over_buffer_budget_total"]
    attacker = Attacker(server.port)
    link = link_to(server)
    for _ in range(10):
        started = attacker.connect()
        assert started is not None
        head = b"\x80\x01\x00\x01\x00\x00\x00\x09getOption\0\0\0\1\x0b\x00\x01" + (20 * MiB).to_bytes(4, "big")
        attacker.send(started, head + b"k" * (8 * MiB))
    # 80 MiB would be held, of 64; this one needs 16 more.
    assert link.call("getOption", key="k" * (16 * MiB)) == ""
    assert server.metrics()["hms_cache_connections_over_buffer_budget_total"] > before
    attacker.close()
    link.sock.close()


def test_options_and_names_that_are_too_large_are_refused_with_the_limit(server: ObservedServer) -> None:
    link = link_to(server)
    with pytest.raises(Exception, match=r"user or group has 4096 characters; 256 are allowed"):
        link.call("set_ugi", user_name="u" * 4096, group_names=[])
    with pytest.raises(TApplicationException, match=r"setting server.max_session_bytes"):
        link.call("setOption", key="k", value="v" * 100_000)
    with pytest.raises(TApplicationException, match=r"the connection has 64 options, which is the limit"):
        for number in range(100):
            link.call("setOption", key=str(number), value="v")
    assert link.call("getOption", key="0") == "v"
    link.sock.close()


def test_silent_connections_do_not_keep_a_client_out(tmp_path: Path) -> None:
    with observed_server(tmp_path, **{"server.max_connections": 2}) as server:
        attacker = Attacker(server.port)
        for _ in range(20):
            connected = attacker.connect()
            with metastore_client(server.port) as honest:
                assert honest.getName()
            assert connected is not None
        assert server.client_sockets() < 20
        assert server.metrics()["hms_cache_connections_displaced_total"] > 0
        attacker.close()


def test_one_address_has_its_own_limit_and_others_still_get_in(tmp_path: Path) -> None:
    with observed_server(tmp_path, **{"server.max_connections_per_address": 3}) as server:
        links = [link_to(server) for _ in range(3)]
        assert [link.call("getStatus") for link in links] == [2, 2, 2]
        refused = link_to(server)
        with pytest.raises(
            TApplicationException, match=r"3 are open from 127.0.0.1 \(setting server.max_connections_per"
        ):
            refused.call("getStatus")
        elsewhere = socket.create_connection(("127.0.0.1", server.port), MAX_WAIT_S, source_address=("127.0.0.2", 0))
        assert Link(elsewhere).call("getStatus") == 2
        for sock in (elsewhere, refused.sock, *(link.sock for link in links)):
            sock.close()


def test_nothing_above_the_ceiling_stays_open(tmp_path: Path) -> None:
    with observed_server(tmp_path, **{"server.max_connections": 4}) as server:
        links = [link_to(server) for _ in range(4)]
        assert all(link.call("getStatus") == 2 for link in links)
        attacker = Attacker(server.port)
        for _ in range(100):
            attacker.connect()
        # Refused connections may remain open for two seconds to read the reason, 32 at once.
        assert links[0].call("getStatus") == 2
        assert server.client_sockets() <= 4 + 32 + 2
        wait_for(lambda: server.client_sockets() <= 4 + 1, server.client_sockets)
        assert links[0].call("getStatus") == 2
        attacker.close()
        for link in links:
            link.sock.close()


def test_time_limits_close_silent_and_idle_connections(tmp_path: Path) -> None:
    limits = {"server.first_call_timeout_s": 1.0, "server.idle_timeout_s": 1.5}
    with observed_server(tmp_path, **limits) as server:
        silent, used = link_to(server), link_to(server)
        assert used.call("getStatus") == 2
        assert silent.sock.recv(1) == b""
        assert used.sock.recv(1) == b""
        silent.sock.close()
        used.sock.close()
        assert server.metrics()["hms_cache_connections_timed_out_total"] == 2


def test_a_client_that_never_reads_does_not_delay_a_stop(tmp_path: Path) -> None:
    limits = {"server.write_timeout_s": 600, "server.drain_timeout_s": 60, "server.message_timeout_s": 600}
    with observed_server(tmp_path, **limits) as server:
        attacker = Attacker(server.port)
        link = attacker.connect(receive_buffer_bytes=4096)
        request = request_bytes("set_ugi", 1, user_name="u", group_names=["g" * 200] * 50)
        attacker.send(link, request * 2000, timeout_s=0.5)
        wait_for(lambda: server.metrics()["hms_cache_buffered_bytes"] > 0, server.metrics)
        assert server.process.stop() == 0
        assert "still busy after the drain time" not in server.process.log
        attacker.close()
