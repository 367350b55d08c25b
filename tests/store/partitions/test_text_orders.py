"""Whatever order the database sorts texts in, reads find partitions by code point.

Hive's script for MySQL gives names and values of partitions the collation `latin1_bin`, the order of the bytes of code
page 1252, in which the euro sorts before all letters with accents. Sites with values in Chinese change the columns to
`utf8`, and get a collation that ignores case and sorts `_` after the letters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import update

from hms_cache.cache.reads.reasons import Reason
from hms_cache.metadata.name_ranges import EVERY_NAME, NameRange, may_begin_range
from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import ByFilter, PartitionQuery
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.features import TextOrder, order_of_collation
from hms_cache.store.engine.work_units import run_write
from hms_cache.store.installation.init import init_schema
from hms_cache.store.schema import PARTITIONS
from tests.cache import world
from tests.cache.world import CATALOG, Server, create_database, table
from tests.conftest import ServerLookup
from tests.store.partitions.catalog import PartitionCatalog, partition
from tests.store.partitions.test_partition_windows import side_by_side, window

T = TableName("hive", "d", "t")
VALUES = ["10", "B", "D", "_x", "a", "a_b", "ab", "c", "z~", "é", "ï", "œ", "–", "€", "a_é", "abé"]
"""Each is another one to every collation."""

COLLATIONS = {
    "latin1_bin": "latin1",
    "latin1_swedish_ci": "latin1",
    "utf8mb3_general_ci": "utf8mb3",
    "utf8mb4_unicode_ci": "utf8mb4",
    "utf8mb3_bin": "utf8mb3",
}
ALWAYS = ("latin1_bin", "utf8mb4_unicode_ci", "sqlite")
"""Those that are tried in each run."""


def set_collation(database: Database, collation: str, characters: str) -> None:
    with database.checking() as connection:
        for owner, column, length in (("PARTITIONS", "PART_NAME", 700), ("PARTITION_KEY_VALS", "PART_KEY_VAL", 256)):
            connection.exec_driver_sql(
                f"ALTER TABLE {owner} MODIFY {column} VARCHAR({length}) CHARACTER SET {characters} COLLATE {collation}"
            )


@pytest.fixture(
    params=[
        pytest.param(one, marks=() if one in ALWAYS else pytest.mark.soak)
        for one in (*COLLATIONS, "sqlite", "postgresql")
    ]
)
def url(request: pytest.FixtureRequest, database_servers: ServerLookup) -> Iterator[str]:
    """A database whose names and values of partitions have this order: that of a collation of MariaDB, or of another
    database."""
    collation: str = request.param
    if collation not in COLLATIONS:
        server = database_servers(collation)
        made = server.initialized_database()
        yield made
        server.give_back(made)
        return
    server = database_servers("mariadb")
    made = server.create_database()  # what is known of partitions that are returned again is kept
    with closing(Database(made)) as database:
        init_schema(database)
        set_collation(database, collation, COLLATIONS[collation])
    yield made
    server.drop_database(made)


@pytest.fixture
def catalog(url: str, tmp_path: Path) -> Iterator[PartitionCatalog]:
    with closing(Database(url)) as database:
        made = PartitionCatalog(database, tmp_path, files="leave")
        made.create_table(keys=[("dt", "string")])
        made.writes.add_partitions(T, [partition(value) for value in VALUES])
        yield made


NAMES = sorted(f"dt={value}" for value in VALUES)


def test_a_window_has_all_partitions_in_its_range(catalog: PartitionCatalog) -> None:
    assert all(map(may_begin_range, NAMES))
    for within in (EVERY_NAME, *(NameRange(first, end) for first in NAMES[::3] for end in (None, *NAMES[2::5]))):
        if within.end is not None and within.end <= within.first:
            continue
        inside = [name for name in NAMES if within.holds(name)]
        for around in ("", *NAMES[::2], "dt=€uro", "雪"):
            for most in (3, 100):
                found = window(catalog, within, around, most)
                if found is not None:
                    covered, got = found
                    assert got == [name for name in inside if covered.holds(name)], (within, around, most)
                    assert len(got) <= most
                    if most == 100:
                        assert covered == within


def test_windows_side_by_side_have_every_partition_once(catalog: PartitionCatalog) -> None:
    assert side_by_side(catalog, 4) == NAMES


def test_the_first_of_all_are_the_first_by_code_point(catalog: PartitionCatalog) -> None:
    for most in range(len(NAMES) + 2):
        assert catalog.reads.get_partition_names(PartitionQuery(T, max_parts=most)) == NAMES[:most]
        found = catalog.reads.get_partitions(PartitionQuery(T, max_parts=most)).partitions
        assert [one.values for one in found] == [[name[3:]] for name in NAMES[:most]]


def test_the_first_of_all_where_a_name_goes_on_with_a_control_character(catalog: PartitionCatalog) -> None:
    """As another program may have stored it. If texts are padded with blanks, it sorts before the shorter name."""
    changed = update(PARTITIONS).where(PARTITIONS.c.PART_NAME == "dt=abé").values(PART_NAME="dt=a\x01x")
    run_write(catalog.database, lambda transaction: transaction.connection.execute(changed))
    names = sorted({*NAMES, "dt=a\x01x"} - {"dt=abé"})
    for most in range(len(names) + 2):
        assert catalog.reads.get_partition_names(PartitionQuery(T, max_parts=most)) == names[:most]


COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


def test_filters_compare_by_code_point(catalog: PartitionCatalog) -> None:
    for sign, is_selected in COMPARISONS.items():
        for bound in (*VALUES, "A", "Z", "aZ", "a^", "zz", "€uro"):
            wanted = sorted(f"dt={value}" for value in VALUES if is_selected(value, bound))
            query = PartitionQuery(T, ByFilter(f"dt {sign} '{bound}'"))
            assert catalog.reads.get_partition_names(query) == wanted, (sign, bound)


def test_memory_answers_as_the_database(url: str, tmp_path: Path) -> None:
    """The same through a cache that holds a part of the table, or all of it."""
    key = TableName(CATALOG, "d", "t")
    with closing(Server(url, tmp_path)) as server:
        create_database(server.objects, "d")
        owner = table("d", "t", (("dt", "string"),))
        server.objects.writes.tables.create_table(owner)
        server.objects.writes.partitions.add_partitions(key, [world.partition(owner, (value,)) for value in VALUES])
        server.poller.step()
        for most in (-1, *range(len(VALUES))):
            query = PartitionQuery(key, max_parts=most)
            expected = server.objects.reads.partitions.get_partition_names(query)
            assert server.store.reads.partitions.get_partition_names(query) == expected
        assert Reason.HIT in server.reasons()


@pytest.mark.parametrize(
    ("collation", "order"),
    [
        ("utf8mb4_bin", TextOrder.CODE_POINTS),
        ("utf8mb4_0900_bin", TextOrder.CODE_POINTS),
        ("utf8_bin", TextOrder.CODE_POINTS),
        ("latin1_bin", TextOrder.ASCII),
        ("gbk_bin", TextOrder.ASCII),
        ("latin1_swedish_ci", TextOrder.OTHER),
        ("utf8mb4_0900_as_cs", TextOrder.OTHER),
        ("gbk_chinese_ci", TextOrder.OTHER),
    ],
)
def test_collations(collation: str, order: TextOrder) -> None:
    assert order_of_collation(collation) is order
