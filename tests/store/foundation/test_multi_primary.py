"""A group of MySQL servers of which several take writes: nothing is answered from memory."""

from __future__ import annotations

import pytest

from hms_cache.store.engine.log_sessions import parse_history


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("1", None), ("0", "the database is a group of MySQL servers with several primaries")],
)
def test_only_a_group_with_one_primary_is_cached(mode: str, reason: str | None) -> None:
    text = f"u:1:host:3306|read_only:0:innodb_read_only:0:group_replication_single_primary_mode:{mode}|7|hive"
    assert parse_history("mysql", text).stale_reason == reason
