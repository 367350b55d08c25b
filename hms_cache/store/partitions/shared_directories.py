"""Finds directories of partitions in which another partition of the same table lies.

To find all of them, the locations of all partitions have to be compared. This is done up to
`warehouse.shared_location_max_partitions` partitions. In larger tables, a directory that is named like a partition
shows which partition to look up: most partitions that share a directory do so because of their names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from sqlalchemy import Connection, Integer, bindparam, func, literal, select

from hms_cache.batches import batches
from hms_cache.metadata.partition_name_codec import unescape_path_name
from hms_cache.metadata.partition_names import escape_path_name
from hms_cache.store.contract.partitions import ByNames, ByPartialValues
from hms_cache.store.engine.bulk_writes import IDS_IN_A_STATEMENT, in_ids
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.partitions.additions import partitioned
from hms_cache.store.partitions.selection import select_for_write
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import PARTITIONS, SDS
from hms_cache.store.warehouse import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException


def locations_of_other_partitions(
    context: StoreContext,
    connection: Connection,
    row: TableRow,
    root: Location | None,
    places: Iterable[tuple[str, Location]],
) -> set[Location]:
    """The directories, each given with its partition's name, at or in which another partition of the table lies, as far
    as that is examined.

    `root`: the table's directory.
    """
    of_table = list(places)
    if not of_table:
        return set()
    named = _partitions_named_there(context, connection, row, root, of_table)
    return named | _partitions_put_there(context, connection, row, of_table)


_COUNTED = (
    select(literal(1).label("ONE"))
    .select_from(PARTITIONS)
    .where(PARTITIONS.c.TBL_ID == bindparam("table_id"))
    .limit(bindparam("too_many", type_=Integer))
    .subquery()
)
_ELSEWHERE = (
    select(PARTITIONS.c.PART_NAME, SDS.c.LOCATION)
    .join(SDS, SDS.c.SD_ID == PARTITIONS.c.SD_ID)
    .where(
        PARTITIONS.c.TBL_ID == bindparam("table_id"),
        SDS.c.LOCATION != bindparam("root", type_=SDS.c.LOCATION.type).concat(PARTITIONS.c.PART_NAME),
        select(func.count()).select_from(_COUNTED).scalar_subquery() < bindparam("too_many", type_=Integer),
    )
)
"""Partitions that do not lie where their names say, unless there are too many to examine."""


def _partitions_put_there(
    context: StoreContext, connection: Connection, row: TableRow, places: Sequence[tuple[str, Location]]
) -> set[Location]:
    """The directories at or in which another partition lies although its name does not say so."""
    own = {name for name, _ in places}
    by_location: dict[Location, set[Location]] = {}
    for _, place in places:
        by_location.setdefault(place.spellings[0], set()).add(place)
    values = {
        "table_id": row.table_id,
        "root": f"{row.table.sd.location.rstrip('/')}/" if row.table.sd and row.table.sd.location else "",
        "too_many": context.warehouse.settings.shared_location_max_partitions + 1,
    }
    found: set[Location] = set()
    for name, text in connection.execute(_ELSEWHERE, values):
        if name in own:
            continue
        try:
            other = context.warehouse.location(text or "").spellings[0]
        except MetaException:
            continue
        for around in (other, *other.ancestors):
            found |= by_location.get(around, set())
    return found


def _partitions_named_there(
    context: StoreContext,
    connection: Connection,
    row: TableRow,
    root: Location | None,
    places: Iterable[tuple[str, Location]],
) -> set[Location]:
    """The directories, each given with its partition's name, in which another partition lies according to its name: the
    files there belong to that one as well.

    No statement is needed for directories that are not named like partitions of the table, or that have their own
    partition's name. `root`: the table's directory.
    """
    if root is None:
        return set()
    of_table = list(places)
    own = {name for name, _ in of_table}
    keys = [f"{escape_path_name(key.name.lower())}=" for key in row.table.partitionKeys or ()]
    by_name: dict[str, set[Location]] = {}
    found: set[Location] = set()
    for name, place in of_table:
        parts = _names_in(keys, root, place)
        if not parts or "/".join(parts) == name:
            continue
        if len(parts) == len(keys):
            by_name.setdefault("/".join(parts), set()).add(place)
            continue
        values = [unescape_path_name(part.partition("=")[2]) for part in parts]
        around = ByPartialValues((*values, *("" for _ in range(len(keys) - len(parts)))))
        selected = select_for_write(connection, partitioned(row), around, context)
        others = _without(selected.part_ids or (), selected.names or (), own)
        if any(_lies_in(text, place) for _, text in _locations(connection, others)):
            found.add(place)
    requested = tuple(sorted(by_name.keys() - own))
    if requested:
        selected = select_for_write(connection, partitioned(row), ByNames(requested), context)
        others = _without(selected.part_ids or (), selected.names or (), own)
        for name, text in _locations(connection, others):
            found.update(place for place in by_name.get(name, ()) if _lies_in(text, place))
    return found


def _names_in(keys: Sequence[str], root: Location, place: Location) -> list[str]:
    """The last names of a directory below the table's, as many as there are keys; empty if it is not named like a
    partition."""
    same = place.spelled_as(root)
    if not same.is_inside(root):
        return []
    parts = same.path[len(root.path.rstrip("/")) + 1 :].split("/")
    is_named = all(part.startswith(key) and part != key for part, key in zip(parts, keys, strict=False))
    return parts[: len(keys)] if is_named else []


def _without(ids: Iterable[int], names: Iterable[str], own: Collection[str]) -> dict[int, str]:
    return {part_id: name for part_id, name in zip(ids, names, strict=True) if name not in own}


def _locations(connection: Connection, partitions: dict[int, str]) -> Iterator[tuple[str, str | None]]:
    statement = (
        select(PARTITIONS.c.PART_ID, SDS.c.LOCATION)
        .join(SDS, SDS.c.SD_ID == PARTITIONS.c.SD_ID)
        .where(in_ids(PARTITIONS.c.PART_ID))
    )
    for ids in batches(list(partitions), IDS_IN_A_STATEMENT):
        for part_id, text in connection.execute(statement, {"ids": list(ids)}).all():
            yield partitions[part_id], text


def _lies_in(text: str | None, place: Location) -> bool:
    try:
        return place.holds(Location.parse(text or ""))
    except MetaException:
        return False
