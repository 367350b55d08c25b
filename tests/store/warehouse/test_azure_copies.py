"""Copies that Azure makes in the background: until one is finished, its source must not be deleted."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from fsspec.asyn import get_loop

from hms_cache.store.warehouse import azure_keys
from hms_cache.store.warehouse.azure_keys import AzureKeys
from hms_cache.store.warehouse.keys import StoredObject

OBJECTS = [StoredObject("/a", "1", 5, False), StoredObject("/b", "2", 5, False)]


class Account:
    """Answers a copy as the service does for large blobs, and no emulator does: an injected fault."""

    def __init__(self, *states: str) -> None:
        self.loop = get_loop()
        self.service_client = self
        self.looks = 0
        self._states = states

    def get_container_client(self, name: str) -> Any:
        return SimpleNamespace(get_blob_client=lambda key: self._blob(key))

    def _blob(self, key: str) -> Any:
        states = list(self._states)

        async def start_copy_from_url(url: str) -> dict[str, str]:
            return {"copy_status": states.pop(0)}

        async def get_blob_properties() -> Any:
            self.looks += 1
            await asyncio.sleep(0)
            return SimpleNamespace(copy=SimpleNamespace(status=states.pop(0)))

        return SimpleNamespace(
            url=f"https://account/container/{key}",
            start_copy_from_url=start_copy_from_url,
            get_blob_properties=get_blob_properties,
        )


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(azure_keys, "_PENDING_S", 0.0)


def test_a_copy_is_waited_for() -> None:
    account = Account("pending", "pending", "success")
    AzureKeys(account).copy("container/t", "container/u", OBJECTS)
    assert account.looks == 2 * len(OBJECTS)


@pytest.mark.parametrize("end", ["failed", "aborted"])
def test_a_copy_that_fails_later_fails_the_move(end: str) -> None:
    with pytest.raises(OSError, match=f"cannot be copied: {end}"):
        AzureKeys(Account("pending", end)).copy("container/t", "container/u", OBJECTS)
