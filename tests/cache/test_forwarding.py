"""Each read that memory does not answer is forwarded to the store with all its arguments."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest

from hms_cache.cache.reads.assembly import CacheOptions, build_cache
from hms_cache.cache.reads.reading import ReadModes
from hms_cache.clock import SystemClock
from hms_cache.metadata.object_names import DatabaseName, FunctionName, TableName
from hms_cache.notifications.poller_status import PollerStatus
from hms_cache.store.contract.metadata import MetadataReads
from hms_cache.store.contract.partitions import ByNames, PartitionQuery
from hms_cache.store.contract.read_version import ReadVersion
from hms_cache.store.contract.statistics import StatisticsQuery

FACETS: dict[str, type] = get_type_hints(MetadataReads)
METHODS = [
    (facet, name)
    for facet, contract in FACETS.items()
    for name, member in inspect.getmembers(contract, inspect.isfunction)
    if getattr(member, "__isabstractmethod__", False)
]


def recording_store() -> tuple[Any, list[tuple[str, dict[str, Any]]]]:
    """A store that records its calls."""
    calls: list[tuple[str, dict[str, Any]]] = []

    def method(contract: type, name: str) -> Any:
        signature = inspect.signature(getattr(contract, name))

        def record(self: Any, *arguments: Any, **options: Any) -> str:
            bound = signature.bind(self, *arguments, **options)
            bound.apply_defaults()
            given = dict(bound.arguments)
            given.pop("self")
            calls.append((name, given))
            return f"answer of {name}"

        return record

    facets = {}
    for facet, contract in FACETS.items():
        abstract: frozenset[str] = contract.__abstractmethods__  # type: ignore[attr-defined]
        facets[facet] = type("Recorder", (contract,), {name: method(contract, name) for name in abstract})()
    return SimpleNamespace(**facets, log_head=None), calls


class Stopped:
    """A poller that does not run."""

    status = PollerStatus.STOPPED

    def ensure_applied(self, position: int, timeout_s: float) -> bool:
        return False


VALUES: dict[str, Any] = {
    "TableName": TableName("hive", "d", "t"),
    "DatabaseName": DatabaseName("hive", "d"),
    "FunctionName": FunctionName("hive", "d", "f"),
    "ReadVersion": ReadVersion(None, 7),
    "PartitionQuery": PartitionQuery(TableName("hive", "d", "t"), ByNames(("p=1",)), 3, ReadVersion(None, 7)),
    "StatisticsQuery": StatisticsQuery(TableName("hive", "d", "t"), ["one"], "impala", ReadVersion(None, 7)),
}


def argument_for(parameter: inspect.Parameter) -> Any:
    """A value that differs from each default."""
    if parameter.annotation in VALUES:
        return VALUES[parameter.annotation]
    if parameter.name in ("parent", "child"):
        return ("database a", "table b")
    if parameter.name in ("columns", "names", "values", "partition_names", "keys"):
        return ["one", "two"]
    return f"value of {parameter.name}"


@pytest.mark.parametrize("modes", [ReadModes(enabled=False), ReadModes()], ids=["switched off", "poller stopped"])
@pytest.mark.parametrize(("facet", "name"), METHODS)
def test_read_reaches_the_store_with_all_its_arguments(facet: str, name: str, modes: ReadModes) -> None:
    store, calls = recording_store()
    cache = build_cache(store, SystemClock(), CacheOptions(modes=modes), lambda sink: Stopped())
    parameters = [p for p in inspect.signature(getattr(FACETS[facet], name)).parameters.values() if p.name != "self"]
    positional = [argument_for(p) for p in parameters if p.kind is not p.KEYWORD_ONLY]
    options = {p.name: argument_for(p) for p in parameters if p.kind is p.KEYWORD_ONLY}
    answer = getattr(getattr(cache.reads, facet), name)(*positional, **options)
    assert calls == [(name, {p.name: argument_for(p) for p in parameters})]
    assert answer == f"answer of {name}"


def test_a_cache_has_nothing_that_writes() -> None:
    store, _ = recording_store()
    reads = build_cache(store, SystemClock(), CacheOptions(), lambda sink: Stopped()).reads
    for facet in FACETS:
        public = [name for name in dir(getattr(reads, facet)) if not name.startswith("_")]
        assert [name for name in public if not name.startswith(("get_", "is_"))] == []
