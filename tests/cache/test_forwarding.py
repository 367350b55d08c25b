"""Every `RawStore` method is forwarded by `CachedStore`, itself and with all its arguments."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from hms_cache.cache.reads.assembly import CacheOptions, build_cache
from hms_cache.cache.reads.cached_store import CachedStore
from hms_cache.cache.reads.reading import ReadModes
from hms_cache.clock import SystemClock
from hms_cache.notifications.poller_status import PollerStatus
from hms_cache.store.contract.raw_store import RawStore
from hms_cache.store.snapshots import SnapshotStore

METHODS = sorted(
    name
    for name, member in inspect.getmembers(RawStore, inspect.isfunction)
    if getattr(member, "__isabstractmethod__", False)
)


def recording_store() -> tuple[SnapshotStore, list[tuple[str, dict[str, Any]]]]:
    """A store that notes what it is asked."""
    calls: list[tuple[str, dict[str, Any]]] = []

    def method(name: str) -> Any:
        signature = inspect.signature(getattr(SnapshotStore, name))

        def record(self: Any, *arguments: Any, **options: Any) -> str:
            bound = signature.bind(self, *arguments, **options)
            bound.apply_defaults()
            given = dict(bound.arguments)
            given.pop("self")
            calls.append((name, given))
            return f"answer of {name}"

        return record

    abstract: frozenset[str] = SnapshotStore.__abstractmethods__  # type: ignore[attr-defined]
    recorder = type("Recorder", (SnapshotStore,), {name: method(name) for name in abstract})
    return recorder(), calls


class Stopped:
    """A poller that does not run."""

    status = PollerStatus.STOPPED

    def ensure_applied(self, position: int, timeout_s: float) -> bool:
        return False


def argument_for(parameter: inspect.Parameter) -> Any:
    """A value that no default equals, fit for names, which are normalized before they are compared."""
    if parameter.name in ("parent", "child"):
        return ("database a", "table b")
    if parameter.name in ("columns", "names", "values", "partition_names", "partitions", "keys"):
        return ["one", "two"]
    return f"value of {parameter.name}"


@pytest.mark.parametrize("modes", [ReadModes(enabled=False), ReadModes()], ids=["switched off", "poller stopped"])
@pytest.mark.parametrize("name", METHODS)
def test_method_reaches_the_store_with_all_its_arguments(name: str, modes: ReadModes) -> None:
    store, calls = recording_store()
    cache = build_cache(store, SystemClock(), CacheOptions(modes=modes), lambda sink: Stopped())
    parameters = [p for p in inspect.signature(getattr(RawStore, name)).parameters.values() if p.name != "self"]
    positional = [argument_for(p) for p in parameters if p.kind is not p.KEYWORD_ONLY]
    options = {p.name: argument_for(p) for p in parameters if p.kind is p.KEYWORD_ONLY}
    answer = getattr(cache.store, name)(*positional, **options)
    expected = {p.name: argument_for(p) for p in parameters}
    assert calls == [(name, expected)]
    if inspect.signature(getattr(RawStore, name)).return_annotation not in ("None", None):
        assert answer == f"answer of {name}"


@pytest.mark.parametrize("name", METHODS)
def test_no_method_is_inherited_from_the_contract(name: str) -> None:
    owner = next(one for one in CachedStore.__mro__ if name in vars(one))
    assert owner.__module__.startswith("hms_cache.cache."), f"{name} comes from {owner}"
