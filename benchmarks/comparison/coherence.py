"""Checks answers: written through one server and read through another, with the cache and without."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.client import connect, has_get_table
from benchmarks.comparison.context import Comparison
from benchmarks.comparison.reads import operations
from benchmarks.operations import Operation
from hms_cache.thrift_gen.hive_metastore import ttypes

READS_A_WRITE = 3
LEAST_WRITES = 10


def wrong_reads(comparison: Comparison, writer: str, reader: str, seconds: float) -> tuple[int, int]:
    """Returns the number of (wrong, all) reads through `reader` of a table that was just altered through `writer`."""
    write, read = connect(writer), connect(reader)
    database, name = f"bench_{comparison.plan.databases - 1:02d}", "table_001"
    plain = has_get_table(write)

    def get(client: Any) -> Any:
        if plain:
            return client.get_table(database, name)
        return client.get_table_req(ttypes.GetTableRequest(dbName=database, tblName=name)).table

    wrong = reads = 0
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end or (number < LEAST_WRITES and time.monotonic() < end + 2 * seconds):
        number += 1
        changed = get(write)
        changed.parameters["bench.written"] = str(number)
        write.alter_table(database, name, changed)
        for _ in range(READS_A_WRITE):
            reads += 1
            wrong += get(read).parameters.get("bench.written") != str(number)
    return wrong, reads


def answers(comparison: Comparison, address: str) -> dict[str, int]:
    """Returns a digest of the decoded answer to each read, by operation."""
    client = connect(address)
    found: dict[str, int] = {}
    for operation in operations(comparison, address):
        if operation.name != f"get_partitions {comparison.plan.large:,}":
            found[operation.name] = hash(_plain(_ask(client, operation)))
    return found


def _ask(client: Any, operation: Operation) -> Any:
    arguments = operation.variants[0]
    fields = [field[2] for field in arguments.thrift_spec if field is not None]
    return getattr(client, operation.method)(*[getattr(arguments, name) for name in fields])


def _plain(value: Any) -> Any:
    """Returns a comparable and hashable form: structs as their fields, maps without an order."""
    if isinstance(value, list | tuple):
        return tuple(_plain(one) for one in value)
    if isinstance(value, dict):
        return frozenset((name, _plain(one)) for name, one in value.items())
    if hasattr(value, "thrift_spec"):
        return tuple((field[2], _plain(getattr(value, field[2]))) for field in value.thrift_spec if field is not None)
    return value


def different(cached: dict[str, int], uncached: dict[str, int]) -> list[str]:
    """Operations whose answers differ."""
    return sorted(name for name in cached.keys() & uncached.keys() if cached[name] != uncached[name])
