"""Settings that are intervals: their tasks run exactly that often."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from hms_cache.app import background, housekeeping
from hms_cache.app.database import ensure_first_rows, open_database, require_schema
from hms_cache.app.housekeeping import Housekeeping
from hms_cache.app.security.delegation import token_manager
from hms_cache.app.service import Service
from hms_cache.app.stores import build_database_stores
from hms_cache.config.settings import SettingReference, all_settings
from tests.app.test_service import configured
from tests.databases import closing

MAX_WAIT_S = 30.0
DAY_S = 86_400.0

#: Intervals after which something is done at the next call that needs it.
OF_CALLS = {
    "authentication.token_renew_interval_s",
    "authentication.token_key_update_interval_s",
    "authentication.jwt_refresh_interval_s",
    "authentication.jwt_retry_interval_s",
    "transactions.open_count_interval_s",
}
OF_TASKS = [one for one in all_settings() if one.key.endswith("_interval_s") and one.name not in OF_CALLS]


def longest_s(setting: SettingReference) -> float:
    """The upper bound of its declaration."""
    return min((one.le for one in setting.field.metadata if hasattr(one, "le")), default=math.inf)


INTERVALS_S = {one.name: min(longest_s(one), (index + 2) * DAY_S) for index, one in enumerate(OF_TASKS)}
"""Another value for each, so that one tells which is meant; longer than an hour where it may be."""


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> queue.Queue[float | None]:
    """What background tasks wait for from now on."""
    told: queue.Queue[float | None] = queue.Queue()

    class Waited(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            told.put(timeout)
            return super().wait(timeout)

    monkeypatch.setattr(background, "threading", SimpleNamespace(Event=Waited, Thread=threading.Thread))
    monkeypatch.setattr(housekeeping, "_FIRST_PAUSE_S", 0.0)
    return told


def waited_for(waits: queue.Queue[float | None]) -> Iterator[float | None]:
    """Ends when the patience is over, at the latest: some tasks wait again every few seconds."""
    end_s = time.monotonic() + MAX_WAIT_S
    with contextlib.suppress(queue.Empty):
        while (remaining_s := end_s - time.monotonic()) > 0:
            yield waits.get(timeout=remaining_s)


def test_each_interval_is_waited_for_in_full(tmp_path: Path, waits: queue.Queue[float | None]) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("")
    given: dict[str, object] = {
        "authorization.provider": "policy",
        "authorization.policy_file": str(policy),
        "security.accept_insecure": True,
        "cache.dump_file": str(tmp_path / "dump"),
        **INTERVALS_S,
    }
    left = dict(INTERVALS_S)
    with ExitStack() as stack:
        service = Service(configured(tmp_path, **given))
        service.start()
        stack.callback(service.stop)
        stack.enter_context(tasks_of_tokens(tmp_path, given))
        for waited_s in waited_for(waits):
            for name, interval_s in list(left.items()):
                margin_s = 0.1 * interval_s if name == "events.poll_interval_s" else 0.0
                if waited_s is not None and abs(waited_s - interval_s) <= margin_s:
                    del left[name]
            if not left:
                break
    assert left == {}


@contextmanager
def tasks_of_tokens(directory: Path, given: dict[str, object]) -> Iterator[None]:
    """The housekeeping of a server to which clients authenticate with Kerberos."""
    kerberos = {"kerberos_enabled": True, "kerberos_principal": "hive/_HOST@EXAMPLE.TEST", "kerberos_keytab_file": "k"}
    settings = configured(
        directory, **given, **{f"authentication.{name}": value for name, value in kerberos.items()}
    ).settings
    with closing(open_database(settings)) as database, ExitStack() as stack:
        require_schema(database, settings)
        ensure_first_rows(database, settings)
        stores = build_database_stores(settings, database)
        tokens = token_manager(settings, stores.auxiliary.tokens, lambda user: frozenset(), is_hive_3=False)
        assert tokens is not None
        Housekeeping(settings, stores, tokens).start(stack)
        yield


def test_each_interval_without_a_limit_may_be_infinite(
    tmp_path: Path, waits: queue.Queue[float | None], caplog: pytest.LogCaptureFixture
) -> None:
    """Waiting functions refuse infinity, and so did the writer of dumps, every five seconds."""
    endless = {one.name: math.inf for one in OF_TASKS if math.isinf(longest_s(one))}
    assert "cache.dump_interval_s" in endless
    service = Service(configured(tmp_path, **endless, cache__dump_file=str(tmp_path / "dump")))
    service.start()
    # Events, their deletion, scheduled queries, and the dump; without Kerberos, there are no tokens.
    tasks = 4
    for waited_s in waited_for(waits):
        tasks -= waited_s is None
        if not tasks:
            break
    service.stop()
    assert tasks == 0
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []
