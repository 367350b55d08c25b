"""Requests and replies of a connection are matched, however their bytes are split and encoded."""

from __future__ import annotations

import pytest
from thrift.Thrift import TApplicationException

from hms_cache.app.shadow.comparing import Answer, Rules
from hms_cache.app.shadow.metastore import Endpoint
from hms_cache.app.shadow.mirror import BYTES_PER_SLOT, MAX_WAITING, Mirror, Read
from hms_cache.app.shadow.proxy import MAX_PENDING, Conversation
from hms_cache.app.shadow.report import Report
from hms_cache.authentication.servers import Address
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException, Table
from hms_cache.wire import CALL, METHODS, MessageReader, encode_exception
from hms_cache.wire.encodings import ENCODINGS, Encoding, write_header
from tests.wire.whole_replies import encode_reply, failed


def request(encoding: Encoding, name: str, **arguments: object) -> bytes:
    spec = METHODS[name]
    data = write_header(encoding, CALL, spec.wire_name, 7) + encoding.encode(
        spec.args_class(**arguments), spec.args_table
    )
    return len(data).to_bytes(4, "big") + data if encoding.framed else data


class Followed:
    """A conversation and what it reported."""

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.notes: list[str] = []
        self.conversation = Conversation(Rules(), self.reads.append, self.notes.append)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)
@pytest.mark.parametrize("piece", [1, 7, 100_000])
def test_reads_get_their_answers(encoding: Encoding, piece: int) -> None:
    table = Table(tableName="t", dbName="d", parameters={str(number): "x" * 50 for number in range(40)})
    requested = [request(encoding, "get_table", dbname="d", tbl_name="t"), request(encoding, "drop_table", dbname="d")]
    requested += [request(encoding, "get_table", dbname="d", tbl_name="none"), request(encoding, "get_all_databases")]
    requests = MessageReader()
    requests.feed(b"".join(requested))
    messages = [requests.next_message() for _ in requested]
    replies = b"".join(
        (
            encode_reply(messages[0], METHODS["get_table"].result(table)),
            encode_reply(messages[1], METHODS["drop_table"].result()),
            encode_reply(messages[2], failed("get_table", NoSuchObjectException("no"))),
            encode_exception(messages[3], TApplicationException(6, "broken")),
        )
    )
    followed = Followed()
    for data in requested:
        for start in range(0, len(data), piece):
            followed.conversation.requested(data[start : start + piece])
    for start in range(0, len(replies), piece):
        followed.conversation.replied(replies[start : start + piece])
    assert [read.method for read in followed.reads] == ["get_table", "get_table", "get_all_databases"]
    first, second, third = (read.answer for read in followed.reads)
    assert first is not None and first.content["tableName"] == "t" and len(first.content["parameters"]) == 40
    assert second == Answer("exception", "NoSuchObjectException", "no")
    assert third == Answer("fault", 6, "broken")
    assert not followed.notes


def test_a_connection_that_cannot_be_read_is_let_be() -> None:
    followed = Followed()
    followed.conversation.requested(b"GET / HTTP/1.1\r\n")
    followed.conversation.replied(b"HTTP/1.1 200\r\n")
    assert len(followed.notes) == 1 and "HTTP" in followed.notes[0]


def test_calls_without_replies_are_bounded() -> None:
    followed = Followed()
    encoding = ENCODINGS[0]
    followed.conversation.requested(request(encoding, "get_all_databases") * (MAX_PENDING + 1))
    assert "without reply" in followed.notes[0]


def test_the_queue_is_bounded_by_calls_and_by_bytes() -> None:
    report = Report("a", "b")
    nobody = Endpoint(Address("127.0.0.1", 1))
    mirror = Mirror(nobody, nobody, Rules(), report)  # its threads are not started: nothing leaves the queue
    arguments = METHODS["get_all_databases"].args_class()
    for _ in range(MAX_WAITING):
        mirror.offer(Read("get_all_databases", arguments))
    assert report.total("dropped") == 0
    mirror.offer(Read("get_all_databases", arguments))
    assert report.total("dropped") == 1
    other = Mirror(nobody, nobody, Rules(), report)
    other.offer(Read("get_all_databases", arguments))
    other.offer(Read("get_all_databases", arguments, None, MAX_WAITING * BYTES_PER_SLOT))
    assert report.total("dropped") == 2


def test_what_waits_is_let_go_of_when_something_went_wrong() -> None:
    report = Report("a", "b")
    nobody = Endpoint(Address("127.0.0.1", 1))
    mirror = Mirror(nobody, nobody, Rules(), report)
    for _ in range(3):
        mirror.offer(Read("get_all_databases", METHODS["get_all_databases"].args_class()))
    mirror.abandon()
    mirror.start()
    mirror.finish()
    assert report.as_json()["methods"] == {}
