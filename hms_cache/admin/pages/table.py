"""``/table/DATABASE.TABLE``: the cached state of a table, its size, and a comparison with the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from hms_cache.admin.commands.subject import Subject, number_in
from hms_cache.admin.commands.verification import verify
from hms_cache.admin.pages.cache import CachedTable, cached_table, shown_name
from hms_cache.admin.pages.context import PageContext, PageError
from hms_cache.cache.entries import Facet
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.metadata.object_names import TableName, table_name
from hms_cache.thrift_gen.hive_metastore.ttypes import Table
from hms_cache.values import frozen

#: Bytes per partition in Impala's catalog, compressed: Impala's own rule of thumb for a table of files.
IMPALA_PARTITION_BYTES = 2048
IMPALA_PARTITION_COLUMN_BYTES = 400
"""Incremental statistics per column and partition."""
IMPALA_FILE_BYTES = 500
IMPALA_BLOCK_BYTES = 150

#: The default block size of HDFS, with which the number of blocks is estimated.
_BLOCK_BYTES = 128 * 1024 * 1024

#: Maximum number of parts, separated by dots, into which a name is split.
_MAX_PARTS = 8

#: Partitions whose parameters are read to find the number of files. If there are more, this many evenly spread ones
#: represent all.
_MAX_DECODED = 1_000


@frozen
class ImpalaSize:
    """The table's size by Impala's rule of thumb: 2048 bytes per partition, 400 per column of one, 500 per file, 150
    per block.

    Files and blocks are derived from the parameters `numFiles` and `totalSize`; 0 without these.
    """

    partitions: int
    columns: int
    files: int
    blocks: int
    bytes: int
    estimated_from: int
    """Number of partitions that were read."""


@frozen
class FacetBytes:
    """A part of the entry and its weight."""

    facet: str
    bytes: int


@frozen
class Comparison:
    """The result of a comparison with the database."""

    equal: bool
    summary: str
    differences: tuple[str, ...]


@frozen
class TablePage:
    """The page. ``entry`` is None if the table is not cached; ``state`` describes what is cached and why."""

    name: str
    state: str
    cached: bool
    entry: CachedTable | None
    table_id: int | None
    table_type: str | None
    owner: str | None
    location: str | None
    is_transactional: bool
    position: int
    """The event position at which the cached state was the database's."""
    bytes_by_facet: tuple[FacetBytes, ...]
    impala: ImpalaSize | None
    comparison: Comparison | None = None


def table_page(context: PageContext, *, compare: bool = False) -> TablePage:
    """The page with the current state. Raises `PageError` for an invalid table name."""
    possible = _possible_keys(context.path.get("name", ""))
    cache = context.sources.cache
    if cache is None:
        return _empty(possible[0], f"there is no cache: {context.sources.cache_off_reason}")
    shared = cache.shared
    key = next((one for one in possible if one in shared.tables), possible[0])
    comparison = _compare(context, key) if compare else None
    with shared.view():
        entry = shared.tables.get(key)
        table: Table | None = entry.facets.get(Facet.TABLE) if entry is not None else None
        excluded = entry is not None and Facet.EXCLUDED in entry.facets
        weights = dict(entry.weights) if entry is not None else {}
        table_id = entry.table_id if entry is not None else None
        transactional = entry is not None and entry.is_transactional
        position = shared.position
    shown = cached_table(shared, key, entry) if entry is not None else None
    if not cache.reading.policy.names_table(key):
        state = "excluded by cache.include and cache.exclude"
    elif excluded:
        state = "excluded by a property of the table or its database, or by its kind"
    elif shown is None:
        state = "not cached: it was not requested, was evicted, or has changed"
    else:
        state = "cached"
    parts = tuple(FacetBytes(facet.value, size) for facet, size in sorted(weights.items(), key=lambda one: -one[1]))
    return TablePage(
        name=shown_name(key),
        state=state,
        cached=shown is not None and not excluded,
        entry=shown,
        table_id=table_id,
        table_type=table.tableType if table is not None else None,
        owner=table.owner if table is not None else None,
        location=table.sd.location if table is not None and table.sd is not None else None,
        is_transactional=transactional,
        position=position,
        bytes_by_facet=parts,
        impala=_impala_size(shared, key, table) if table is not None else None,
        comparison=comparison,
    )


def _empty(key: TableName, state: str) -> TablePage:
    return TablePage(shown_name(key), state, False, None, None, None, None, None, False, 0, (), None)


def _possible_keys(name: str) -> list[TableName]:
    """The possible meanings of the name, the most probable first. Names of tables may contain dots."""
    parts = name.split(".", _MAX_PARTS)
    named: list[tuple[str | None, str, str]] = [
        (None, ".".join(parts[:at]), ".".join(parts[at:])) for at in range(1, len(parts))
    ]
    if len(parts) > 2:
        named.insert(0, (parts[0], parts[1], ".".join(parts[2:])))
    possible = [table_name(*one) for one in named if all(part != "" for part in one)]
    if not possible or (len(parts) == 3 and not all(parts)):
        raise PageError(f"{name!r} is not DATABASE.TABLE or CATALOG.DATABASE.TABLE")
    return possible


def _compare(context: PageContext, key: TableName) -> Comparison:
    parts = context.sources.command_parts()
    assert parts is not None
    operations = context.sources.operations
    operation = operations.begin("command", "verify", shown_name(key), "the table's page")
    outcome = "failed"
    try:
        found = verify(parts, Subject(key.in_database, key), operation)
        outcome = "ok" if found.ok else found.summary
        return Comparison(found.ok, found.summary, found.details)
    except DatabaseUnavailableError as error:
        outcome = str(error)
        return Comparison(False, f"the database does not answer: {error}", ())
    finally:
        operations.end(operation, outcome)


def _impala_size(shared: SharedCache, key: TableName, table: Table) -> ImpalaSize | None:
    """None for a partitioned table whose partitions are not all cached."""
    columns = len((table.sd.cols if table.sd is not None else None) or ())
    if not table.partitionKeys:
        files, blocks = _files_and_blocks([table.parameters or {}])
        return _sized(1, columns, files, blocks, 1)
    with shared.view():
        entry = shared.tables.get(key)
        held = entry.facets.get(Facet.PARTITIONS) if entry is not None else None
        selected = held.all() if held is not None and held.complete else None
    if selected is None:
        return None
    count = len(selected)
    step = count // _MAX_DECODED + 1
    sample = selected.subset(np.arange(0, count, step)).structs() if count else []
    files, blocks = _files_and_blocks(partition.parameters or {} for partition in sample)
    scale = count / len(sample) if sample else 0.0
    return _sized(count, columns, round(files * scale), round(blocks * scale), len(sample))


def _files_and_blocks(parameters: Iterable[Mapping[str, str]]) -> tuple[int, int]:
    files = blocks = 0
    for one in parameters:
        here = _whole(one.get("numFiles"))
        files += here
        blocks += max(here, -(-_whole(one.get("totalSize")) // _BLOCK_BYTES)) if here else 0
    return files, blocks


def _whole(text: str | None) -> int:
    """The number, or 0 for any other text: clients may set these parameters to anything."""
    return number_in(text or "") or 0


def _sized(partitions: int, columns: int, files: int, blocks: int, counted: int) -> ImpalaSize:
    total = (
        partitions * IMPALA_PARTITION_BYTES
        + partitions * columns * IMPALA_PARTITION_COLUMN_BYTES
        + files * IMPALA_FILE_BYTES
        + blocks * IMPALA_BLOCK_BYTES
    )
    return ImpalaSize(partitions, columns, files, blocks, total, counted)
