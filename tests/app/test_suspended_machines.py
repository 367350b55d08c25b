"""A machine was suspended: what was valid for some seconds before is not valid hours later."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hms_cache.app.service import Service
from hms_cache.authorization.cached_groups import CachedGroups
from hms_cache.authorization.external import ExternalAuthorizer
from tests.app.test_service import Database, client, configured, table

Suspend = Callable[[], None]

pytestmark = pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="no clock counts suspensions")


@pytest.fixture
def suspend(monkeypatch: pytest.MonkeyPatch) -> Suspend:
    """For an hour: Linux shows this only in this clock and in that of the date."""
    suspended_s, read = [0.0], time.clock_gettime

    def clock_gettime(clock: int) -> float:
        return read(clock) + (suspended_s[0] if clock == time.CLOCK_BOOTTIME else 0.0)

    def suspend() -> None:
        suspended_s[0] += 3600.0

    monkeypatch.setattr(time, "clock_gettime", clock_gettime)
    return suspend


def test_an_answer_is_no_older_than_allowed(suspend: Suspend, tmp_path: Path) -> None:
    service = Service(configured(tmp_path, cache__max_staleness_ms=600_000, events__poll_interval_s=7200))
    other = Service(configured(tmp_path))
    with client(service.start()) as here, client(other.start()) as there:
        here.create_database(Database(name="shop"))
        here.create_table(table("orders"))
        for _ in range(3):
            before = here.get_table("shop", "orders")
        changed = there.get_table("shop", "orders")
        changed.parameters = {**changed.parameters, "new": "1"}
        there.alter_table("shop", "orders", changed)
        assert here.get_table("shop", "orders") == before, "ten minutes are allowed"
        suspend()
        assert here.get_table("shop", "orders").parameters["new"] == "1"
    other.stop()
    service.stop()


def test_rights_and_groups_are_no_older_than_allowed(suspend: Suspend) -> None:
    def unknown(*_: object) -> object:
        raise AssertionError("nobody asks")

    authorizer = ExternalAuthorizer(unknown, 600.0)  # type: ignore[arg-type]
    decided = authorizer.policy
    requested: list[str] = []
    groups = CachedGroups(lambda user: frozenset(requested.append(user) or {"g"}), 600.0)
    assert groups.recent("ann") == groups.recent("ann") == {"g"}
    assert authorizer.policy is decided and requested == ["ann"]
    suspend()
    assert authorizer.policy is not decided
    assert groups.recent("ann") == {"g"} and requested == ["ann", "ann"]
