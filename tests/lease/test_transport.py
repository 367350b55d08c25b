"""Connections between members over real sockets: a client that does not know the secret, disconnects or reads nothing
affects no other."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from hms_cache.lease import transport as transport_module
from hms_cache.lease.frames import CHALLENGE_BYTES, HEADER, MAX_FRAME_BYTES, PROOF_BYTES, Channel, challenge, proof
from hms_cache.lease.links import MAX_UNREAD_BYTES, Link
from hms_cache.lease.transport import Message, Transport
from tests.consistency.proxy import proxy_to
from tests.lease.member import MAX_WAIT_S, wait_until

SECRET = b"a secret of this test"
FIRST: Message = ("over", 1, 0)


class End:
    """A transport, and what it received."""

    def __init__(self, name: str, secret: bytes = SECRET) -> None:
        self.name = name
        self.messages: list[tuple[str, list[str | int | None]]] = []
        self.replies: list[tuple[str, list[str | int | None]]] = []
        self.transport = Transport(name, secret, self._receive, lambda *one: self.replies.append(one), lambda: FIRST)
        self.port = self.transport.start("127.0.0.1", 0)

    def _receive(self, sender: str, message: list[str | int | None]) -> Message | None:
        self.messages.append((sender, message))
        return ("ack", message[1], 7) if message[0] == "writing" else None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def meets(self, other: End) -> None:
        self.transport.connect_to({other.name: other.address})
        wait_until(lambda: other.name in self.transport.connected())

    def is_heard_by(self, other: End, key: int) -> None:
        """The other acknowledges a message of this one."""
        self.transport.send(other.name, ("writing", key))
        wait_until(lambda: (other.name, ["ack", key, 7]) in self.replies)


Make = Callable[..., End]


@pytest.fixture
def make() -> Iterator[Make]:
    with ExitStack() as stack:

        def make_one(name: str, secret: bytes = SECRET) -> End:
            end = End(name, secret)
            stack.callback(end.transport.stop)
            return end

        yield make_one


def connect(to: End) -> socket.socket:
    return socket.create_connection(("127.0.0.1", to.port), timeout=MAX_WAIT_S)


def read(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count and (more := connection.recv(count - len(found))):
        found += more
    return found


def introduce(to: End, name: str = "c", secret: bytes = SECRET) -> tuple[socket.socket, Channel]:
    """A client written for this test, which can do the handshake."""
    connection, own = connect(to), challenge()
    connection.sendall(own + name.encode().ljust(64))
    answer = read(connection, CHALLENGE_BYTES + 64 + PROOF_BYTES)
    other, called = answer[:CHALLENGE_BYTES], answer[CHALLENGE_BYTES:-PROOF_BYTES]
    connection.sendall(proof(secret, b"caller" + name.encode().ljust(64) + called, own, other))
    return connection, Channel(secret, own, other, calls=True)


def is_closed(connection: socket.socket) -> bool:
    """Whether the other end closed it silently."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_messages_and_acknowledgements_go_both_ways(make: Make) -> None:
    a, b = make("a"), make("b")
    a.meets(b)
    b.meets(a)
    a.is_heard_by(b, 1)
    b.is_heard_by(a, 2)
    assert b.messages == [("a", list(FIRST)), ("a", ["writing", 1])]


def test_who_does_not_answer_is_called_less_often(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that was killed is in the table until the next write. One that answers again is contacted at once."""
    pauses_s: list[float] = []
    sleep = asyncio.sleep

    async def note(pause_s: float) -> None:
        if pause_s:
            pauses_s.append(pause_s)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    a, b = make("a"), make("b")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nobody = silent.getsockname()[1]
    a.transport.connect_to({"b": f"127.0.0.1:{nobody}"})
    wait_until(lambda: len(pauses_s) >= 8)
    a.transport.connect_to({})
    first, most = pauses_s[0], max(pauses_s)
    assert pauses_s[:4] == [first, 2 * first, 4 * first, 8 * first]
    assert most == 10 * first and pauses_s.index(most) == 4 and {*pauses_s[4:]} == {most}
    a.meets(b)
    pauses_s.clear()
    a.transport.renew("b")
    wait_until(lambda: bool(pauses_s))
    assert pauses_s == [first]


def test_another_secret_is_refused_by_both_sides(make: Make) -> None:
    a, b, stranger = make("a"), make("b"), make("c", b"another secret, as long")
    stranger.transport.connect_to({"b": b.address})
    connection, _ = introduce(b, secret=b"another secret, as long")
    assert is_closed(connection)
    wait_until(lambda: b.transport.counts["refused"] >= 1)
    assert stranger.transport.connected() == []
    a.meets(b)
    a.is_heard_by(b, 1)
    assert {sender for sender, _ in b.messages} == {"a"}


def test_who_answers_must_be_the_member_of_the_table(make: Make) -> None:
    a, b = make("a"), make("b")
    a.transport.connect_to({"c": b.address})
    a.transport.send("c", ("writing", 1))
    a.meets(b)
    a.is_heard_by(b, 2)
    assert a.transport.connected() == ["b"] and ("a", ["writing", 1]) not in b.messages


WRONG = {
    "nothing": b"",
    "half a header": b"\x00\x00",
    "a header alone": HEADER.pack(PROOF_BYTES + 5),
    "half a body": HEADER.pack(PROOF_BYTES + 5) + b"x" * 20,
    "no body": HEADER.pack(PROOF_BYTES),
    "too long by one": HEADER.pack(MAX_FRAME_BYTES + 1) + b"x" * (MAX_FRAME_BYTES + 1),
    "two gigabytes": HEADER.pack(2**31),
    "no proof": HEADER.pack(PROOF_BYTES + 5) + b"x" * (PROOF_BYTES + 5),
}


@pytest.mark.parametrize("sent", WRONG.values(), ids=WRONG.keys())
def test_frames_that_are_cut_oversized_or_unproven_end_their_connection_alone(sent: bytes, make: Make) -> None:
    a, b = make("a"), make("b")
    a.meets(b)
    connection, channel = introduce(b)
    connection.sendall(channel.encode(("writing", 5)) + sent)
    connection.shutdown(socket.SHUT_WR)
    answer = read(connection, HEADER.size)
    assert channel.decode(read(connection, HEADER.unpack(answer)[0])) == ["ack", 5, 7]
    assert is_closed(connection)
    a.is_heard_by(b, 1)
    assert ("c", ["writing", 5]) in b.messages and len(b.messages) == 3


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n\r\n", b"x" * 96, b"\xff" * 4096], ids=str)
def test_who_cannot_introduce_itself_is_closed_in_time(
    sent: bytes, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "HANDSHAKE_S", 1)
    a, b = make("a"), make("b")
    connection = connect(b)
    connection.sendall(sent)
    while not is_closed(connection):
        pass
    a.meets(b)
    a.is_heard_by(b, 1)
    assert {sender for sender, _ in b.messages} == {"a"}


def test_strangers_take_no_place_of_a_members(make: Make) -> None:
    """More connections than members may have, that send nothing, or everything except the end: a member connects at
    once."""
    a, b = make("a"), make("b")
    with ExitStack() as stack:
        held = []
        for number in range(transport_module.MAX_CONNECTIONS + 10):
            connection = stack.enter_context(connect(b))
            if number % 2:
                connection.sendall(challenge() + b"x".ljust(64))
                connection.recv(CHALLENGE_BYTES + 64 + PROOF_BYTES)
            held.append(connection)
        a.meets(b)
        a.is_heard_by(b, 1)
        assert is_closed(held[0]), "the oldest has made way"
        assert len(b.transport._called) <= transport_module.MAX_UNAUTHENTICATED + 1


def test_who_is_refused_again_and_again_writes_one_line(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    b = make("b")
    for _ in range(20):
        connection, _ = introduce(b, secret=b"another secret, as long")
        with connection:
            assert is_closed(connection)
    wait_until(lambda: b.transport.counts["refused"] == 20)
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(lines) == 1 and "127.0.0.1" in lines[0]


def test_a_stranger_that_says_too_much_writes_no_trace() -> None:
    """More than a handshake arrived at its beginning: the next read fails before anybody waits for it."""
    traces: list[dict[str, Any]] = []

    async def refuse() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: traces.append(context))
        with socket.create_server(("127.0.0.1", 0)) as listening:
            stranger = socket.create_connection(listening.getsockname(), timeout=MAX_WAIT_S)
            _, link = await loop.create_connection(lambda: Link(loop), sock=listening.accept()[0])
        with stranger:
            stranger.sendall(bytes(CHALLENGE_BYTES + MAX_UNREAD_BYTES + 1))
            await link.read(CHALLENGE_BYTES)
            await link.lost
            with pytest.raises(asyncio.IncompleteReadError):
                await link.read(PROOF_BYTES)
            assert await loop.run_in_executor(None, stranger.recv, 1) == b""

    asyncio.run(refuse())
    gc.collect()
    assert traces == []


def test_a_word_of_another_version_is_answered_with_nothing(make: Make) -> None:
    """No acknowledgement: the member that sent it waits for the lease. The connection remains."""
    a, b = make("a"), make("b")
    a.meets(b)
    a.transport.send("b", ("writing soon", 1))
    a.is_heard_by(b, 2)
    assert [reply for _, reply in a.replies] == [["ack", 2, 7]]


def test_a_member_that_moves_is_called_at_its_new_address(make: Make) -> None:
    a, b = make("a"), make("b")
    with proxy_to("127.0.0.1", b.port) as way:
        a.transport.connect_to({"b": f"127.0.0.1:{way.port}"})
        wait_until(lambda: a.transport.connected() == ["b"])
        way.cut()
        wait_until(lambda: a.transport.connected() == [])
        a.meets(b)
        a.is_heard_by(b, 1)


def test_a_connection_that_breaks_is_opened_again_and_begins_with_what_may_be_lost(make: Make) -> None:
    a, b = make("a"), make("b")
    with proxy_to("127.0.0.1", b.port) as way:
        a.transport.connect_to({"b": f"127.0.0.1:{way.port}"})
        a.is_heard_by(b, 1)
        for key in (2, 3):
            way.cut()
            way.mend()
            wait_until(lambda key=key: [m for _, m in b.messages].count(list(FIRST)) == key)  # type: ignore[misc]
            a.is_heard_by(b, key)


def test_a_peer_that_reads_nothing_holds_up_nobody_and_no_memory(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "MAX_QUEUED", 100)
    a, b, stalled = make("a"), make("b"), make("c")
    with proxy_to("127.0.0.1", stalled.port) as way:
        a.transport.connect_to({"b": b.address, "c": f"127.0.0.1:{way.port}"})
        wait_until(lambda: sorted(a.transport.connected()) == ["b", "c"])
        wait_until(lambda: [message for _, message in stalled.messages].count(list(FIRST)) == 1)
        way.stall()

        requested = 0

        def is_given_up() -> bool:
            nonlocal requested
            counts = a.transport.counts
            if counts["sent"] + counts["dropped"] > requested:  # not faster than the loop runs
                requested += 2_000
                for key in range(2_000):
                    a.transport.send("c", ("written", key, 1, 1))
            return counts["dropped"] > 0

        wait_until(is_given_up)
        a.is_heard_by(b, 1)
        # The next connection is another one, and is not stalled.
        wait_until(lambda: [message for _, message in stalled.messages].count(list(FIRST)) >= 2)
        assert all(len(peer.queue) <= 100 for peer in a.transport._peers.values())


def test_a_connection_on_which_nothing_comes_back_is_replaced(make: Make) -> None:
    """As when a firewall has dropped it: nothing arrives, and neither side is notified."""
    a, b = make("a"), make("b")
    with proxy_to("127.0.0.1", b.port) as way:
        a.transport.connect_to({"b": f"127.0.0.1:{way.port}"})
        a.is_heard_by(b, 1)
        way.stall()
        a.transport.send("b", ("writing", 2))
        a.transport.renew("b")
        a.transport.renew("nobody")
        a.is_heard_by(b, 3)
        assert [message for _, message in b.messages].count(list(FIRST)) == 2


def test_who_calls_again_and_again_takes_one_place(make: Make) -> None:
    """Nobody closed the earlier connections explicitly. What was sent on them ends, too."""
    a, b = make("a"), make("b")
    with ExitStack() as stack:
        held = [stack.enter_context(introduce(b)[0]) for _ in range(transport_module.MAX_CONNECTIONS + 10)]
        assert all(is_closed(one) for one in held[:-1])
        a.meets(b)
        a.is_heard_by(b, 1)
        wait_until(lambda: len(b.transport._called) == 2)
        assert b.transport.counts["refused"] == 0


def test_more_members_than_there_may_be_are_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "MAX_CONNECTIONS", 2)
    b = make("b")
    with ExitStack() as stack:
        first, second, third = (stack.enter_context(introduce(b, name)[0]) for name in ("c", "d", "e"))
        assert is_closed(third) and b.transport.counts["refused"] == 1
        first.close()
        wait_until(lambda: len(b.transport._called) == 1)
        fourth, channel = introduce(b, "f")
        stack.enter_context(fourth)
        fourth.sendall(channel.encode(("writing", 1)))
        assert read(fourth, HEADER.size) and second.fileno() > 0


def test_both_sides_notice_machines_that_are_gone(make: Make) -> None:
    a, b = make("a"), make("b")
    a.meets(b)
    links = [a.transport._peers["b"].link, *b.transport._callers.values()]
    for link in links:
        assert link is not None and link._transport is not None
        raw = link._transport.get_extra_info("socket")
        assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert 0 < raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 60
        assert 0 < raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 60_000


def test_a_member_that_is_gone_is_called_no_more(make: Make) -> None:
    a, b = make("a"), make("b")
    a.meets(b)
    a.transport.connect_to({})
    wait_until(lambda: a.transport.connected() == [])
    a.transport.send("b", ("writing", 1))
    b.meets(a)
    b.is_heard_by(a, 2)
    assert ("a", ["writing", 1]) not in b.messages
