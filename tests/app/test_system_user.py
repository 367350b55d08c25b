"""A container may run as a user that does not exist in its image."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hms_cache.app.stores import build_database_stores
from hms_cache.client import MetastoreClient
from hms_cache.client.transaction import Transaction
from hms_cache.config import Settings
from hms_cache.store.engine.database import Database
from hms_cache.system_user import system_user

ROOT = Path(__file__).parents[2]


@pytest.fixture
def nameless(monkeypatch: pytest.MonkeyPatch) -> str:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2_000_000_007)
    return "2000000007"


def test_a_user_without_a_name_is_its_number(nameless: str, sqlite_database: Database) -> None:
    assert system_user() == nameless
    build_database_stores(Settings(), sqlite_database)
    with MetastoreClient("thrift://127.0.0.1:1") as client:
        Transaction(client, ["d.t"])


def test_nobody_asks_for_a_name_that_may_not_be_there() -> None:
    asking = [path.name for path in (ROOT / "hms_cache").rglob("*.py") if "getpass.getuser" in path.read_text("utf-8")]
    assert asking == ["system_user.py"]
