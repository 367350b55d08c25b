"""The tap records each call with its answer, however a client sends it: whole, in pieces, several at once, in
frames."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from hms_cache.wire import METHODS
from hms_cache.wire.encodings import BINARY, FRAMED_BINARY
from tests.databases import SqliteFiles
from tests.recordings.answers import answer
from tests.recordings.messages import ONEWAY, Splitter, read_message
from tests.recordings.metastores import Metastore, our_metastore
from tests.recordings.recording import DIRECTORY, PLACE, RecordedCall, read_recording, write_recording
from tests.recordings.spellings import encoded
from tests.recordings.tap import Tap

CLIENTS = sorted(path.stem for path in DIRECTORY.glob("*.xz"))


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    url = SqliteFiles(tmp_path_factory.mktemp("databases")).initialized_database()
    with our_metastore(url) as made:
        yield made


def request(method: str, number: int, **arguments: object) -> bytes:
    kind = ONEWAY if METHODS[method].oneway else 1
    return encoded(method, kind, number, METHODS[method].args_class(**arguments))


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def tapped(metastore: Metastore, *streams: list[bytes], answers: int) -> list[RecordedCall]:
    """What the tap records when each stream is sent on a connection of its own, portion by portion."""
    host, _, port = metastore.uri.removeprefix("thrift://").rpartition(":")
    with Tap(host, int(port)) as tap:
        address = ("127.0.0.1", int(tap.uri.rpartition(":")[2]))
        connections = [socket.create_connection(address, timeout=30) for _ in streams]
        for connection, portions in zip(connections, streams, strict=True):
            for portion in portions:
                connection.sendall(portion)
        for connection in connections:
            replies, found = Splitter(), 0
            while found < answers:
                data = connection.recv(65536)
                assert data, "the connection was closed"
                found += sum(1 for _ in replies.feed(data))
        for connection in connections:
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b"", "the tap passes the end of the connection on"
            connection.close()
        assert tap.unanswered == []
        return tap.calls


@pytest.mark.parametrize("frame", [bytes, framed], ids=[BINARY.name, FRAMED_BINARY.name])
@pytest.mark.parametrize("portion_bytes", [1, 7, 10_000])
def test_calls_sent_at_once_are_kept_one_by_one(metastore: Metastore, frame: object, portion_bytes: int) -> None:
    assert callable(frame)
    sent = [
        frame(request("get_database", 1, name="default")),
        frame(request("get_database", 2, name="nope")),
        frame(request("get_all_databases", 3)),
    ]
    data = b"".join(sent)
    portions = [data[start : start + portion_bytes] for start in range(0, len(data), portion_bytes)]
    calls = tapped(metastore, portions, answers=3)
    assert [call.request for call in calls] == [*sent, b""], "the last entry is the end of the connection"
    found = [answer(call.reply) for call in calls[:3]]
    assert found[0].success.name == "default" and "nope" in found[1].o1.message and found[2].success == ["default"]


def test_connections_are_told_apart_and_calls_without_answer_are_kept(metastore: Metastore) -> None:
    streams = [[request("getStatus", 1), request("shutdown", 2)], [request("get_all_databases", 7)]]
    calls = tapped(metastore, *streams, answers=1)
    by_connection = {number: [call for call in calls if call.connection == number] for number in (1, 2)}
    assert [call.method for call in by_connection[1]] == ["getStatus", "shutdown", ""]
    assert by_connection[1][1].reply == b""
    assert [call.method for call in by_connection[2]] == ["get_all_databases", ""]


def test_a_fault_of_the_tap_is_told(metastore: Metastore) -> None:
    host, _, port = metastore.uri.removeprefix("thrift://").rpartition(":")
    with Tap(host, int(port)) as tap, socket.create_connection(("127.0.0.1", int(tap.uri.rpartition(":")[2]))) as link:
        link.sendall(b"\x82\x21\x01")  # compact
        assert link.recv(1) == b""
        with pytest.raises(RuntimeError, match="no binary Thrift message"):
            _ = tap.calls


@pytest.mark.parametrize("client", CLIENTS)
def test_recordings_are_whole_and_name_no_machine(client: str) -> None:
    calls = read_recording(DIRECTORY / f"{client}.xz")
    place_was_seen = False
    for call in calls:
        for data in (call.request, call.reply):
            assert not data or read_message(data).data == data
            place_was_seen |= PLACE in data
            for folder in ("tmp", "root", "home", "work", "usr"):
                assert f"/{folder}/".encode() not in data.replace(PLACE, b""), f"{call.method}: {data!r}"
    assert place_was_seen


def test_a_recording_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    calls = [RecordedCall(1, b"request", b"reply"), RecordedCall(70_000, b"one way", b""), RecordedCall(1, b"", b"")]
    path = tmp_path_factory.mktemp("recording") / "data" / "made.xz"
    write_recording(path, calls)
    assert read_recording(path) == calls
