"""Partitions read from the database: rows first, structs on top of them.

`read_partition_rows` answers columns as parallel lists in a fixed number of statements whatever the number of
partitions; `partitions_of_rows` makes the structs. Caches build from the rows and never pay for structs.

Structs of one answer share what equal descriptors have in common (columns, serde, parameters of the descriptor, skew);
their own are `values`, `parameters`, the `StorageDescriptor` and the `Partition`. Treat the shared parts as frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, bindparam, func, literal, literal_column, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Integer, Text

from hms_cache.metadata.partition_names import values_of_name
from hms_cache.store.engine.bulk_writes import in_ids
from hms_cache.store.engine.database import features_of
from hms_cache.store.partitions.selection import (
    MOST_LISTED,
    PartitionedTable,
    SelectedPartitions,
    empty_values,
    has_default_value,
    values_of_stored_name,
    values_with_empty,
)
from hms_cache.store.rows.descriptor_texts import DESCRIPTOR_TEXT, values_of_text
from hms_cache.store.rows.storage_descriptor_statements import DESCRIPTOR_COLUMNS, DescriptorScope
from hms_cache.store.rows.storage_descriptors import DescriptorTemplates, build_templates, read_templates
from hms_cache.store.schema import PARTITION_PARAMS, PARTITIONS, SDS, SERDES
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition, StorageDescriptor

_FEW = 200
"""Up to this many partitions are read with their whole descriptors in one statement; more are worth grouping."""

# Between the parts of parameters that the server joins. Where a parameter holds one of them, it shows in the counts.
_KEY_END, _PAIR_END = "\x01", "\x02"


@dataclass(slots=True)
class PartitionRows:
    """Partitions of one table as parallel lists, by name ascending (code points).

    `template_numbers` index `templates`, which have no location (None: a partition of a view, without a descriptor).
    `empty_values` holds, by row, the positions of values that are stored empty though their names say otherwise.
    `parameters` are in key order; parameters stored as NULL are left out, as Hive does.
    """

    table: PartitionedTable
    part_ids: list[int]
    names: list[str]
    create_times: list[int]
    last_access_times: list[int]
    write_ids: list[int]
    sd_ids: list[int | None]
    locations: list[str | None]
    template_numbers: list[int | None]
    templates: list[StorageDescriptor]
    column_descriptor_ids: list[int | None]
    parameters: list[dict[str, str]]
    empty_values: dict[int, dict[int, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.part_ids)

    def values(self, row: int) -> list[str]:
        """The values of one partition, in key order."""
        values = values_of_stored_name(self.names[row], len(self.table.keys))
        return values_with_empty(values, self.empty_values.get(row)) if self.empty_values else values


class CharacterCount(FunctionElement[int]):
    """Number of characters of a text, under the name that each database has for it."""

    name = "character_count"
    type = Integer()
    inherit_cache = True


@compiles(CharacterCount)
def _character_count(element: CharacterCount, compiler: Any, **keywords: Any) -> str:
    return f"char_length({compiler.process(element.clauses, **keywords)})"


@compiles(CharacterCount, "sqlite")
def _character_count_of_sqlite(element: CharacterCount, compiler: Any, **keywords: Any) -> str:
    return f"length({compiler.process(element.clauses, **keywords)})"


class _NumberedText(FunctionElement[str]):
    """Two numbers and a text as one text, with `_PAIR_END` after each number; of no text, the first number alone.

    MySQL joins numbers and texts of any character set; a cast would give the numbers one that may not fit the text's.
    """

    name = "numbered_text"
    type = Text()
    inherit_cache = True


@compiles(_NumberedText)
def _numbered_text(element: _NumberedText, compiler: Any, **keywords: Any) -> str:
    first, second, text = (compiler.process(one, **keywords) for one in element.clauses)
    first, second = f"CAST({first} AS VARCHAR(20))", f"CAST({second} AS VARCHAR(20))"
    end = f"'{_PAIR_END}'"
    return f"coalesce({first} || {end} || {second} || {end} || {text}, {first} || {end})"


@compiles(_NumberedText, "mysql", "mariadb")
def _numbered_text_of_mysql(element: _NumberedText, compiler: Any, **keywords: Any) -> str:
    first, second, text = (compiler.process(one, **keywords) for one in element.clauses)
    end = f"'{_PAIR_END}'"
    return f"coalesce(concat({first}, {end}, {second}, {end}, {text}), concat({first}, {end}))"


_Reach = Literal["table", "range", "ids"]

_CONDITIONS: dict[_Reach, ColumnElement[bool]] = {
    "table": PARTITIONS.c.TBL_ID == bindparam("table_id"),
    "range": and_(
        PARTITIONS.c.TBL_ID == bindparam("table_id"),
        PARTITIONS.c.PART_ID.between(bindparam("lowest_id"), bindparam("highest_id")),
    ),
    "ids": in_ids(PARTITIONS.c.PART_ID, "part_ids"),
}

_NARROW_COLUMNS = (
    PARTITIONS.c.PART_ID,
    PARTITIONS.c.PART_NAME,
    PARTITIONS.c.CREATE_TIME,
    PARTITIONS.c.LAST_ACCESS_TIME,
    PARTITIONS.c.WRITE_ID,
    PARTITIONS.c.SD_ID,
    SDS.c.LOCATION,
)
_WIDTH = len(_NARROW_COLUMNS) + 1
"""With the text of all parameters. What describes the storage follows: columns for few partitions, else one text."""


@dataclass(frozen=True, slots=True)
class _Statements:
    narrow: Select[Any]
    wide: Select[Any]
    plain_parameters: Select[Any]
    scope: DescriptorScope


@lru_cache(maxsize=2 * len(_CONDITIONS))
def _statements(reach: _Reach, has_write_ids: bool) -> _Statements:
    """Databases of before Hive 4 keep no write ids with partitions."""
    condition = _CONDITIONS[reach]
    columns: list[ColumnElement[Any]] = [
        column if has_write_ids or column is not PARTITIONS.c.WRITE_ID else literal_column("0").label("WRITE_ID")
        for column in _NARROW_COLUMNS
    ]
    with_descriptors = PARTITIONS.outerjoin(SDS, SDS.c.SD_ID == PARTITIONS.c.SD_ID).outerjoin(
        SERDES, SERDES.c.SERDE_ID == SDS.c.SERDE_ID
    )
    parameters = PARTITION_PARAMS.c
    pair = parameters.PARAM_KEY + literal(_KEY_END) + parameters.PARAM_VALUE
    characters = func.sum(CharacterCount(parameters.PARAM_KEY) + CharacterCount(parameters.PARAM_VALUE))
    columns.append(
        select(_NumberedText(func.count(), characters, func.aggregate_strings(pair, _PAIR_END)))
        .where(parameters.PART_ID == PARTITIONS.c.PART_ID, parameters.PARAM_VALUE.is_not(None))
        .correlate(PARTITIONS)
        .scalar_subquery()
    )
    with_parameters = PARTITIONS.join(PARTITION_PARAMS, parameters.PART_ID == PARTITIONS.c.PART_ID)
    present = and_(condition, parameters.PARAM_VALUE.is_not(None))
    return _Statements(
        narrow=select(*columns, DESCRIPTOR_TEXT).select_from(with_descriptors).where(condition),
        wide=select(*columns, *DESCRIPTOR_COLUMNS).select_from(with_descriptors).where(condition),
        plain_parameters=select(parameters.PART_ID, parameters.PARAM_KEY, parameters.PARAM_VALUE)
        .select_from(with_parameters)
        .where(present),
        scope=DescriptorScope(PARTITIONS, PARTITIONS.c.SD_ID, condition),
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """How to reach the selected partitions: statements and their parameters; `wanted` if they reach more than those."""

    statements: _Statements
    parameters: dict[str, Any]
    wanted: frozenset[int] | None


def _plan(connection: Connection, table: PartitionedTable, part_ids: Sequence[int] | None) -> _Reading:
    has_write_ids = features_of(connection).has(PARTITIONS.c.WRITE_ID)
    if part_ids is None:
        return _Reading(_statements("table", has_write_ids), {"table_id": table.table_id}, None)
    if len(part_ids) > MOST_LISTED:
        span = {"table_id": table.table_id, "lowest_id": min(part_ids), "highest_id": max(part_ids)}
        return _Reading(_statements("range", has_write_ids), span, frozenset(part_ids))
    return _Reading(_statements("ids", has_write_ids), {"part_ids": list(part_ids)}, None)


def read_partition_rows(connection: Connection, table: PartitionedTable, selected: SelectedPartitions) -> PartitionRows:
    """The selected partitions as rows, by name.

    At most seven statements whatever their number, mostly two: partitions with their parameters and descriptors, and
    details of the distinct descriptors; then skew if there is any, descriptors and parameters whose texts do not add
    up, empty values if there may be any.
    """
    part_ids = selected.part_ids
    if part_ids is not None and not part_ids:
        return PartitionRows(table, [], [], [], [], [], [], [], [], [], [], [])
    reading = _plan(connection, table, part_ids)
    few = part_ids is not None and len(part_ids) <= _FEW
    return _read_rows(connection, table, reading, few, lambda: empty_values(connection, table))


def read_partition_page(
    connection: Connection,
    table: PartitionedTable,
    lowest_id: int,
    highest_id: int,
    empty: Callable[[], dict[int, dict[int, str]]],
) -> PartitionRows:
    """The table's partitions with ids in this range, both ends included, as `read_partition_rows` reads them.

    `empty`: the table's values that are stored empty, asked where a name may hide one.
    """
    span = {"table_id": table.table_id, "lowest_id": lowest_id, "highest_id": highest_id}
    statements = _statements("range", features_of(connection).has(PARTITIONS.c.WRITE_ID))
    return _read_rows(connection, table, _Reading(statements, span, None), False, empty)


def _read_rows(
    connection: Connection,
    table: PartitionedTable,
    reading: _Reading,
    few: bool,
    empty: Callable[[], dict[int, dict[int, str]]],
) -> PartitionRows:
    statement = reading.statements.wide if few else reading.statements.narrow
    rows: Sequence[Row[Any]] = connection.execute(statement, reading.parameters).all()
    templates = _templates(connection, reading, rows) if few else _templates_of_texts(connection, reading, rows)
    if reading.wanted is not None:
        rows = [row for row in rows if row[0] in reading.wanted]
    rows = sorted(rows, key=itemgetter(1))
    columns = list(zip(*rows, strict=True)) if rows else [()] * _WIDTH
    ids, names, create_times, access_times, write_ids, sd_ids, locations, texts = (list(c) for c in columns[:_WIDTH])
    number_of = templates.number_of
    parameters = _parameters_of_texts(texts)
    if parameters is None:
        parameters = _read_plain_parameters(connection, reading, ids)
    found = PartitionRows(
        table,
        part_ids=ids,
        names=names,
        create_times=create_times,
        last_access_times=access_times,
        # 0 and less are stored for "none", which is answered as Hive's -1.
        write_ids=[write_id if write_id and write_id > 0 else -1 for write_id in write_ids],
        sd_ids=sd_ids,
        locations=locations,
        template_numbers=[None if sd_id is None else number_of.get(sd_id) for sd_id in sd_ids],
        templates=templates.structs,
        column_descriptor_ids=templates.column_descriptor_ids,
        parameters=parameters,
    )
    if has_default_value(names):
        values = empty()
        found.empty_values = {row: values[part_id] for row, part_id in enumerate(ids) if part_id in values}
    return found


def _templates(connection: Connection, reading: _Reading, rows: Sequence[Row[Any]]) -> DescriptorTemplates:
    """Of rows with the columns of their descriptors."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        if row[5] is not None:
            groups.setdefault(tuple(row[_WIDTH:]), []).append(row[5])
    return build_templates(connection, groups.items(), reading.statements.scope, reading.parameters)


def _templates_of_texts(connection: Connection, reading: _Reading, rows: Sequence[Row[Any]]) -> DescriptorTemplates:
    """Of rows with the texts of their descriptors: all that the scope reaches."""
    groups: dict[str, list[int]] = {}
    for row in rows:
        text = row[_WIDTH]
        if text is not None:
            ids = groups.get(text)
            if ids is None:
                groups[text] = [row[5]]
            else:
                ids.append(row[5])
    found: list[tuple[tuple[Any, ...], list[int]]] = []
    for text, ids in groups.items():
        values = values_of_text(text)
        if values is None:
            return read_templates(connection, reading.statements.scope, reading.parameters)
        found.append((values, ids))
    return build_templates(connection, found, reading.statements.scope, reading.parameters)


def _parameters_of_texts(texts: Sequence[str]) -> list[dict[str, str]] | None:
    """Parameters of partitions that the server joined into one text each. None: a text does not add up (it was cut
    short, is too long for the server's packets, or holds the separators itself)."""
    found: list[dict[str, str]] = []
    for text in texts:
        number, *rest = text.split(_PAIR_END)
        count = int(number)
        if not count:
            found.append({})
            continue
        characters, *pairs = rest
        if len(pairs) != count or text.count(_KEY_END) != count:
            return None
        if len(text) != len(number) + len(characters) + int(characters) + 2 * count + 1:
            return None
        pairs.sort()
        found.append(dict([pair.split(_KEY_END) for pair in pairs]))
    return found


def _read_plain_parameters(connection: Connection, reading: _Reading, part_ids: Sequence[int]) -> list[dict[str, str]]:
    """The same, one parameter by one."""
    found: dict[int, dict[str, str]] = {}
    for part_id, key, value in connection.execute(reading.statements.plain_parameters, reading.parameters):
        found.setdefault(part_id, {})[key] = value
    return [dict(sorted(found.get(part_id, {}).items())) for part_id in part_ids]


def partitions_of_rows(rows: PartitionRows) -> list[Partition]:
    """The structs of the rows, in their order."""
    table = rows.table
    catalog, database, name, key_count = table.catalog, table.database, table.name, len(table.keys)
    partitions = []
    for row, part_name in enumerate(rows.names):
        values = values_of_name(part_name)
        if len(values) != key_count:
            values = values_of_stored_name(part_name, key_count)
        number = rows.template_numbers[row]
        partitions.append(
            Partition(
                values,
                database,
                name,
                rows.create_times[row],
                rows.last_access_times[row],
                None if number is None else _at_location(rows.templates[number], rows.locations[row]),
                rows.parameters[row],
                None,
                catalog,
                rows.write_ids[row],
            )
        )
    for row, empty in rows.empty_values.items():
        values_with_empty(partitions[row].values, empty)
    return partitions


def _at_location(template: StorageDescriptor, location: str | None) -> StorageDescriptor:
    """A descriptor that shares everything with the template but its location."""
    return StorageDescriptor(
        template.cols,
        location,
        template.inputFormat,
        template.outputFormat,
        template.compressed,
        template.numBuckets,
        template.serdeInfo,
        template.bucketCols,
        template.sortCols,
        template.parameters,
        template.skewedInfo,
        template.storedAsSubDirectories,
    )
