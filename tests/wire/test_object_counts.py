"""Objects of a message are counted seldom: to count them, the interpreter goes through all memory of the process."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from hms_cache.wire import METHODS, MessageReader, streaming
from hms_cache.wire.encodings import ENCODINGS, Encoding
from tests.wire.strategies import request


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.name)
@pytest.mark.parametrize(("names", "most_a_kilobyte"), [(200, 0.0), (60_000, 0.1)])
def test_counts_by_length(
    encoding: Encoding, names: int, most_a_kilobyte: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = 0

    def counted() -> int:
        nonlocal counts
        counts += 1
        return sys.getallocatedblocks()

    monkeypatch.setattr(streaming, "sys", SimpleNamespace(getallocatedblocks=counted))
    arguments = METHODS["get_partitions_by_names"].args_class(
        db_name="d", tbl_name="t", names=[f"ds=2024-01-01/hr={number}" for number in range(names)]
    )
    data = request(encoding, "get_partitions_by_names", arguments, 1)
    reader = MessageReader()
    reader.feed(data)
    message = reader.next_message()
    assert message is not None and message.args == arguments
    assert counts <= most_a_kilobyte * len(data) / 1024
