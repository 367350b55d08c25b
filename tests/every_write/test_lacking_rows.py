"""Objects of which another program omitted parts: each method of the protocol answers as in Hive.

Tables without a storage descriptor, descriptors without columns or a serde, parameters that are null: the columns of
Hive's schema permit them, and tools that copy catalogs leave them so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TException

from hms_cache.errors import HmsCacheError
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.messages import MessageFormat
from hms_cache.server.calls import Kind
from hms_cache.server.encoded_answers import encode_in_pieces
from hms_cache.server.handlers.table import all_handlers
from hms_cache.store.contract.partitions import AllPartitions, PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, MetaException
from hms_cache.wire import METHODS, encode_payload
from hms_cache.wire.encodings import BINARY
from tests.cache.world import CATALOG
from tests.every_write.catalog import ACID, DATABASE, FLAT, KEYS, PARTITIONED, VIEW, Facts
from tests.every_write.requests import BASES, base_requests
from tests.every_write.test_every_write import check
from tests.every_write.world import CACHED_TABLES, World
from tests.hostile.test_long_lists import filled

LACKS: dict[str, tuple[str, ...]] = {
    "tables without descriptor": ("UPDATE {}.TBLS SET SD_ID = NULL",),
    "partitions without descriptor": ("UPDATE {}.PARTITIONS SET SD_ID = NULL",),
    "no descriptors": ("UPDATE {}.TBLS SET SD_ID = NULL", "UPDATE {}.PARTITIONS SET SD_ID = NULL"),
    "no lists of columns": ("UPDATE {}.SDS SET CD_ID = NULL",),
    "no columns": ("DELETE FROM {}.COLUMNS_V2",),
    "no serdes": ("UPDATE {}.SDS SET SERDE_ID = NULL",),
    "no classes": (
        "UPDATE {}.SDS SET INPUT_FORMAT = NULL, OUTPUT_FORMAT = NULL",
        "UPDATE {}.SERDES SET SLIB = NULL, NAME = NULL",
    ),
    "no locations": ("UPDATE {}.SDS SET LOCATION = NULL",),
    "no parameters": tuple(
        f"DELETE FROM {{}}.{name}" for name in ("TABLE_PARAMS", "PARTITION_PARAMS", "SD_PARAMS", "SERDE_PARAMS")
    ),
    "null parameters": tuple(
        f"UPDATE {{}}.{name} SET PARAM_VALUE = NULL"
        for name in ("TABLE_PARAMS", "PARTITION_PARAMS", "SD_PARAMS", "SERDE_PARAMS", "DATABASE_PARAMS")
    ),
    "no types": ("UPDATE {}.TBLS SET TBL_TYPE = NULL, OWNER = NULL, OWNER_TYPE = NULL",),
    "no types of columns": ("UPDATE {}.COLUMNS_V2 SET TYPE_NAME = NULL",),
    "no owners": (
        "UPDATE {}.DBS SET OWNER_NAME = NULL, OWNER_TYPE = NULL, `DESC` = NULL",
        "UPDATE {}.FUNCS SET OWNER_NAME = NULL, OWNER_TYPE = NULL, CLASS_NAME = NULL",
    ),
    "no values of keys": ("DELETE FROM {}.PARTITION_KEY_VALS",),
}
"""What rows lack, and the statements that take it away in a schema."""

_LISTS: dict[str, Any] = {
    **dict.fromkeys(("names", "partNames", "part_names", "partitionnames", "partitionNames"), "p=1"),
    **dict.fromkeys(("part_vals", "partVals", "partitionVals", "values"), "1"),
    **dict.fromkeys(("colNames", "col_names"), "a"),
    "filters": "p = '1'",
    **dict.fromkeys(("partitionKeys", "partitionOrder"), FieldSchema(KEYS[0][0], "string", "")),
    "fieldList": "values",
}
_TEXTS = {"part_name": "p=1", "partName": "p=1", "filter": "p = '1'", "partitionExpression": "p = '1'"}


ALWAYS = ("partitions without descriptor", "no locations")
"""Those that are tried in each run."""

OFTEN = ("no descriptors", "no columns", "no parameters", "null parameters", "no types")
"""Those of the short soak."""


def _marks(lack: str) -> Sequence[pytest.MarkDecorator]:
    if lack in ALWAYS:
        return ()
    return (pytest.mark.soak,) if lack in OFTEN else (pytest.mark.soak, pytest.mark.long)


@pytest.fixture(params=[pytest.param(one, marks=_marks(one)) for one in LACKS])
def world(request: pytest.FixtureRequest, sqlite_database: Database, tmp_path: Path) -> Iterator[World]:
    url = sqlite_database.url.render_as_string(hide_password=False)
    with closing(World(url, tmp_path, MessageFormat.JSON, files="manage")) as made:
        made.change_rows(LACKS[request.param])
        yield made


def is_of_hive(error: Exception | None) -> bool:
    """Whether it was raised on purpose: one of Hive's exceptions, or an error with its text."""
    return error is None or isinstance(error, TException | HmsCacheError)


def as_they_are(world: World, facts: Facts) -> Facts:
    """The writes of clients that read the objects first."""
    reads = world.writer.objects.reads
    tables = {name: reads.tables.get_table(TableName(CATALOG, DATABASE, name)) for name in facts.tables}
    partitions = dict(facts.partitions)
    for name in facts.partitions:
        found = reads.partitions.get_partitions(PartitionQuery(TableName(CATALOG, DATABASE, name), AllPartitions(), 1))
        partitions[name] = found.partitions[0]
    return replace(facts, tables=tables, partitions=partitions)


def requests_of(method: str, facts: Facts) -> list[Any]:
    """None if they would be made from a missing descriptor."""
    try:
        return base_requests(method, facts)
    except AttributeError:
        return []


def about(table_name: str, value: Any, field: str = "") -> Any:
    """The arguments with this table and its parts, wherever they name one."""
    if isinstance(value, str):
        return table_name if value.strip() == "t" else _TEXTS.get(field, value)
    if isinstance(value, list):
        return [_LISTS[field]] if field in _LISTS else [about(table_name, one) for one in value]
    for one in filter(None, getattr(value, "thrift_spec", None) or ()):
        setattr(value, one[2], about(table_name, getattr(value, one[2]), one[2]))
    return value


def problems_of(world: World, method: str, number: int, arguments: Any) -> list[str]:
    """What is wrong after a write. The catalog is restored afterwards; caches are not checked."""
    outcome = world.call(method, arguments)
    problems = [] if is_of_hive(outcome.error) else [f"{method} {number}: {outcome.error!r}"]
    if outcome.error is not None and outcome.changed & CACHED_TABLES:
        problems.append(f"{method} {number}: failed ({outcome.error!r}) and changed {sorted(outcome.changed)}")
    if outcome.changed or outcome.events:
        world.set_back(outcome.changed)
    return problems


def test_each_write(world: World) -> None:
    problems = []
    for facts in (world.facts, as_they_are(world, world.facts)):
        for name in BASES:
            for number, arguments in enumerate(requests_of(name, facts)):
                problems += problems_of(world, name, number, arguments)
    assert problems == []


@pytest.mark.parametrize(
    ("world", "methods"),
    [
        ("tables without descriptor", ("alter_table", "exchange_partition")),
        ("partitions without descriptor", ("alter_partition", "alter_partitions", "rename_partition")),
        ("no locations", ("truncate_table", "exchange_partition")),
    ],
    indirect=["world"],
)
def test_what_cannot_be_done_is_not_acknowledged(world: World, methods: tuple[str, ...]) -> None:
    for name in methods:
        for arguments in base_requests(name, world.facts):
            outcome = world.call(name, arguments)
            assert isinstance(outcome.error, MetaException), (name, outcome)
            assert not outcome.changed & CACHED_TABLES and not outcome.events


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("world", [one for one in LACKS if one != "no values of keys"], indirect=True)
def test_caches_follow_each_write(world: World) -> None:
    """Without values of keys, SQL does not find a partition that memory finds by its name: no program leaves such
    rows."""
    problems = []
    for name in BASES:
        for number, arguments in enumerate(requests_of(name, world.facts)):
            problems += check(world, name, f"base {number}", arguments)[0]
    assert problems == []


def test_each_read(world: World) -> None:
    problems = []
    for name, handler in sorted(all_handlers().items()):
        method = METHODS[name]
        if handler.kind is not Kind.READ:
            continue
        # From the database, and from memory.
        for table_name in (FLAT, PARTITIONED, ACID, VIEW) * 2:
            result = method.result()
            try:
                result.success = world.ask(name, about(table_name, filled(method.args_class, (), 1)))
                if encode_in_pieces(BINARY, method, result.success) is None:
                    encode_payload(BINARY, method, result)
            except Exception as error:
                if not is_of_hive(error):
                    problems.append(f"{name} of {table_name}: {error!r}")
    assert sorted(set(problems)) == []
