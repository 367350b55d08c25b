"""Which encoded answers are cached: small ones at once, large ones when they are repeated, and none above its share."""

from __future__ import annotations

from hms_cache.cache.answers import LARGEST_SHARE, MAX_REMEMBERED_REQUESTS, Answer, Answers
from hms_cache.cache.entries import Entry
from hms_cache.metadata.object_names import TableName
from hms_cache.wire.replies import ReplyTemplate

BUDGET = 80_000


def answer(size_bytes: int, entry: Entry) -> Answer:
    return Answer("get_partitions", "partitions", ReplyTemplate(b"", b"").render, size_bytes, entry)


def test_a_large_answer_is_wanted_when_it_was_made_before() -> None:
    answers = Answers(BUDGET, 1_000)
    assert not answers.wants_large(b"one")
    assert not answers.wants_large(b"two")
    assert answers.wants_large(b"one")
    for number in range(MAX_REMEMBERED_REQUESTS):
        answers.wants_large(b"other %d" % number)
    assert not answers.wants_large(b"one"), "made too long ago"


def test_no_answer_takes_more_than_its_share() -> None:
    answers = Answers(BUDGET, 1_000)
    entry = Entry(TableName("hive", "d", "t"))
    answers.add(b"largest", answer(BUDGET // LARGEST_SHARE - 7, entry))
    answers.add(b"larger", answer(BUDGET // LARGEST_SHARE - 5, entry))
    assert answers.find(b"largest") is not None
    assert answers.find(b"larger") is None
    assert entry.answers == {b"largest"}
    answers.drop(entry)
    assert answers.size_bytes == 0


def test_a_reply_in_pieces_is_the_reply_and_copies_no_payload() -> None:
    payload = b"x" * 100_000
    template = ReplyTemplate(b"before", payload)
    pieces = template.render_pieces(b"\0\0\0\1")
    assert b"".join(pieces) == template.render(b"\0\0\0\1")
    assert pieces[1] is payload
