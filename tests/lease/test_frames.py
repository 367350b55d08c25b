"""Frames between members: without the secret, nobody can send them, and none is changed, repeated or omitted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.lease.frames import (
    CHALLENGE_BYTES,
    HEADER,
    MAX_FRAME_BYTES,
    BadFrameError,
    Channel,
    body_length,
    challenge,
    is_proof,
    proof,
)

SECRET = b"a secret of this test"
MESSAGES = st.tuples(st.sampled_from(["writing", "written", "ack"]), st.one_of(st.none(), st.integers(0, 2**62)))


def pair(one: bytes = SECRET, other: bytes = SECRET) -> tuple[Channel, Channel]:
    a, b = challenge(), challenge()
    return Channel(one, a, b, calls=True), Channel(other, a, b, calls=False)


def body(frame: bytes) -> bytes:
    assert body_length(frame[: HEADER.size]) == len(frame) - HEADER.size
    return frame[HEADER.size :]


@given(st.lists(MESSAGES, min_size=1, max_size=5))
def test_what_is_sent_arrives_in_both_directions(messages: list[tuple[str, int | None]]) -> None:
    caller, called = pair()
    for message in messages:
        assert called.decode(body(caller.encode(message))) == list(message)
        assert caller.decode(body(called.encode(message))) == list(message)


@given(MESSAGES, st.data())
def test_a_changed_frame_is_refused(message: tuple[str, int | None], data: st.DataObject) -> None:
    caller, called = pair()
    frame = bytearray(body(caller.encode(message)))
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BadFrameError):
        called.decode(bytes(frame))


def test_a_repeated_skipped_reflected_or_foreign_frame_is_refused() -> None:
    caller, called = pair()
    first, second = body(caller.encode(("writing", 1))), body(caller.encode(("writing", 2)))
    with pytest.raises(BadFrameError):
        called.decode(second)
    assert called.decode(first) == ["writing", 1]
    with pytest.raises(BadFrameError):
        called.decode(first)
    with pytest.raises(BadFrameError):
        caller.decode(second)
    _, stranger = pair(other=b"another secret, as long")
    with pytest.raises(BadFrameError):
        stranger.decode(body(pair()[0].encode(("writing", 1))))


@pytest.mark.parametrize("length", [0, 32, MAX_FRAME_BYTES + 1, 2**32 - 1])
def test_a_length_that_no_frame_has_is_refused_before_anything_is_read(length: int) -> None:
    with pytest.raises(BadFrameError):
        body_length(HEADER.pack(length))


def test_a_proof_is_of_one_role_and_of_both_challenges() -> None:
    a, b = challenge(), challenge()
    assert len(a) == CHALLENGE_BYTES
    given = proof(SECRET, b"caller", a, b)
    assert is_proof(given, SECRET, b"caller", a, b)
    for other in ((b"called", a, b), (b"caller", b, a), (b"caller", a, a)):
        assert not is_proof(given, SECRET, *other)
    assert not is_proof(given, b"another secret", b"caller", a, b)
