"""Statements of two sessions about parts of tables: partitions of each type, constraints, views, statistics."""

from __future__ import annotations

from dataclasses import dataclass

from tests.clients.hive.two_sessions import FIRST, SECOND


@dataclass(frozen=True)
class PartitionType:
    """A type of partition column, with four values in ascending order."""

    name: str
    values: tuple[str, str, str, str]

    @property
    def table(self) -> str:
        return f"d4.p_{self.name.partition('(')[0]}"


PARTITION_TYPES = (
    PartitionType("tinyint", ("-3", "0", "7", "100")),
    PartitionType("smallint", ("-300", "9", "10", "3000")),
    PartitionType("int", ("-70000", "9", "10", "70000")),
    PartitionType("bigint", ("-7000000000", "9", "10", "7000000000")),
    PartitionType("decimal(8,2)", ("-1.50", "0.10", "1.00", "999.25")),
    PartitionType("double", ("-1.5", "0.25", "1.0", "1000.0")),
    # Before the underscore of the default partition's name, which Hive compares as a text when it drops.
    PartitionType("string", ("'A b'", "'A=b/c%'", "'ab'", "'ä'")),
    PartitionType("varchar(10)", ("'10'", "'9'", "'a'", "'b c'")),
    PartitionType("char(5)", ("'10'", "'9'", "'a'", "'b'")),
    PartitionType("date", ("date '1969-12-31'", "date '2020-02-29'", "date '2020-03-01'", "date '2024-10-09'")),
    PartitionType(
        "timestamp",
        (
            "timestamp '1969-12-31 23:59:59'",
            "timestamp '2020-02-29 00:00:00'",
            "timestamp '2020-02-29 12:30:00.5'",
            "timestamp '2024-10-09 01:02:03'",
        ),
    ),
)


def statements() -> list[tuple[int, str]]:
    """(session, statement) in the order in which they run."""
    found: list[tuple[int, str]] = [(FIRST, "create database d4")]
    for each in (FIRST, SECOND):
        found.append((each, "set hive.compute.query.using.stats=true"))
        found.append((each, "set hive.stats.column.autogather=true"))
    for kind in PARTITION_TYPES:
        found += _of_type(kind)
    return [*found, *_TRUTH_VALUES, *_TWO_KEYS, *_CONSTRAINTS, *_VIEWS, *_STATISTICS, *_COMPACTIONS, *_END]


def _of_type(kind: PartitionType) -> list[tuple[int, str]]:
    first, second, third, fourth = kind.values
    table = kind.table
    # The grammar permits no special characters in the names of partitions.
    spec = f"'{first}'" if first.startswith("-") else first
    return [
        (FIRST, f"create external table {table} (k int) partitioned by (p {kind.name}) stored as orc"),
        (FIRST, f"insert into {table} partition(p) select 1, {second} union all select 2, {third}"),
        (SECOND, f"show partitions {table}"),
        (SECOND, f"select k from {table} where p = {second}"),
        (SECOND, f"alter table {table} add partition (p={spec}) partition (p={fourth})"),
        (FIRST, f"insert into {table} partition(p={spec}) values (3)"),
        (SECOND, f"insert into {table} partition(p={fourth}) values (4)"),
        (FIRST, f"select k, p from {table} where p > {second} order by k"),
        (FIRST, f"select count(*), max(k) from {table} where p <= {third}"),
        (SECOND, f"select k from {table} where p in ({first}, {fourth}) order by k"),
        (FIRST, f"select k from {table} where p between {second} and {third} order by k"),
        (SECOND, f"select k from {table} where p <> {third} and not p = {fourth} order by k"),
        (SECOND, f"insert into {table} partition(p) select 5, cast(null as {kind.name})"),
        (FIRST, f"select k, p from {table} where p is null"),
        (FIRST, f"select count(*) from {table} where p is not null"),
        (FIRST, f"alter table {table} drop partition (p={third})"),
        (SECOND, f"show partitions {table}"),
        (SECOND, f"select min(p), max(p), count(*) from {table}"),
        (SECOND, f"alter table {table} drop partition (p<={second})"),
        (FIRST, f"select * from {table} order by k"),
    ]


_TRUTH_VALUES = [
    (FIRST, "create external table d4.p_boolean (k int) partitioned by (p boolean) stored as orc"),
    (FIRST, "insert into d4.p_boolean partition(p) select 1, true union all select 2, false"),
    (SECOND, "show partitions d4.p_boolean"),
    (SECOND, "select k from d4.p_boolean where p"),
    (SECOND, "select k from d4.p_boolean where p = false"),
    (SECOND, "alter table d4.p_boolean drop partition (p=true)"),
    (FIRST, "select * from d4.p_boolean"),
]

_TWO_KEYS = [
    (
        FIRST,
        "create table d4.two (k int, v string) partitioned by (y int, name string) stored as orc"
        " tblproperties('transactional'='true')",
    ),
    (
        SECOND,
        "from (select 1 k, 'a' v union all select 2, 'b') s"
        " insert into d4.two partition(y=2020, name) select k, v, v where k = 1"
        " insert into d4.two partition(y=2021, name) select k, v, v where k = 2"
        " insert into d4.two partition(y=2021, name='x y') select k + 10, v",
    ),
    (FIRST, "show partitions d4.two"),
    (FIRST, "show partitions d4.two partition(y=2021)"),
    (FIRST, "show partitions d4.two where y > 2020 order by name desc limit 1"),
    (SECOND, "select * from d4.two where y = 2021 and name like 'x%' order by k"),
    (SECOND, "update d4.two set v='u' where y = 2021"),
    (FIRST, "select * from d4.two order by y, name, k"),
    (FIRST, "delete from d4.two where name = 'b'"),
    (SECOND, "select count(*) from d4.two where y = 2021"),
    (
        SECOND,
        "merge into d4.two t using (select 11 k, 2021 y union all select 50, 2022) s on t.k = s.k and t.y = s.y"
        " when matched then delete when not matched then insert values (s.k, 'new', s.y, 'made')",
    ),
    (FIRST, "select * from d4.two order by y, name, k"),
    (FIRST, "insert overwrite table d4.two partition(y=2022, name='made') select 51, 'over'"),
    (SECOND, "select * from d4.two where y = 2022"),
    (SECOND, "alter table d4.two partition(y=2022, name='made') rename to partition(y=2023, name='moved')"),
    (FIRST, "select * from d4.two where y >= 2022"),
    (FIRST, "alter table d4.two add columns (w int) cascade"),
    (SECOND, "insert into d4.two partition(y, name) values (60, 'w', 6, 2023, 'moved')"),
    (FIRST, "select k, w from d4.two where y = 2023 order by k"),
    (SECOND, "alter table d4.two drop partition (y<2022)"),
    (FIRST, "show partitions d4.two"),
]

_CONSTRAINTS = [
    (
        FIRST,
        "create table d4.parent (id int not null enable, code string default 'none', size int,"
        " constraint pk_parent primary key (id) disable novalidate rely)"
        " stored as orc tblproperties('transactional'='true')",
    ),
    (
        SECOND,
        "create table d4.child (id int, parent int, constraint fk_child foreign key (parent) references d4.parent(id)"
        " disable novalidate rely) stored as orc tblproperties('transactional'='true')",
    ),
    (SECOND, "insert into d4.parent (id, size) values (1, 10)"),
    (FIRST, "select * from d4.parent"),
    (FIRST, "alter table d4.parent add constraint uq_code unique (code) disable novalidate"),
    (SECOND, "alter table d4.parent change column size size int constraint ck_size check (size > 0) enable"),
    (FIRST, "describe formatted d4.parent"),
    (SECOND, "alter table d4.parent drop constraint ck_size"),
    (FIRST, "insert into d4.parent (id, size) values (2, -1)"),
    (SECOND, "select * from d4.parent order by id"),
    (SECOND, "explain cbo select c.id from d4.child c join d4.parent p on c.parent = p.id"),
    (FIRST, "alter table d4.parent rename to d4.elder"),
    (SECOND, "describe formatted d4.child"),
    (SECOND, "show create table d4.elder"),
    (SECOND, "alter table d4.elder drop constraint pk_parent"),
    (FIRST, "describe formatted d4.child"),
    (FIRST, "drop table d4.elder"),
    (SECOND, "describe formatted d4.child"),
]

_VIEWS = [
    (FIRST, "create view d4.seen (a, b) as select k, y from d4.two"),
    (SECOND, "select * from d4.seen order by a"),
    (SECOND, "alter view d4.seen as select k, w from d4.two where k > 55"),
    (FIRST, "select * from d4.seen"),
    (FIRST, "create view d4.over_view as select max(k) m from d4.seen"),
    (SECOND, "select * from d4.over_view"),
    (SECOND, "alter view d4.seen rename to d4.looked_at"),
    (FIRST, "select * from d4.over_view"),
    (FIRST, "describe formatted d4.looked_at"),
    (FIRST, "alter view d4.looked_at set tblproperties('colour'='red')"),
    (SECOND, "show tblproperties d4.looked_at('colour')"),
    (SECOND, "show create table d4.looked_at"),
    (SECOND, "create or replace view d4.looked_at as select 1 one"),
    (FIRST, "select * from d4.looked_at"),
    (FIRST, "show views in d4"),
    (SECOND, "drop view d4.looked_at"),
    (FIRST, "select * from d4.looked_at"),
    (
        FIRST,
        "create materialized view d4.totals partitioned on (y) stored as orc as select name, y from d4.two",
    ),
    (SECOND, "select * from d4.totals order by y, name"),
    (SECOND, "show partitions d4.totals"),
    (SECOND, "insert into d4.two partition(y, name) values (70, 'w', 7, 2024, 'more')"),
    (FIRST, "alter materialized view d4.totals rebuild"),
    (SECOND, "select * from d4.totals order by y, name"),
    (SECOND, "alter materialized view d4.totals disable rewrite"),
    (FIRST, "describe formatted d4.totals"),
    (FIRST, "drop materialized view d4.totals"),
    (SECOND, "show materialized views in d4"),
]

_STATISTICS = [
    (FIRST, "create external table d4.counted (k int, s string) partitioned by (p int) stored as orc"),
    (FIRST, "insert into d4.counted partition(p=1) values (1,'a'),(2,'b')"),
    (SECOND, "insert into d4.counted partition(p=2) values (7,'g')"),
    (FIRST, "select min(k), max(k), count(*) from d4.counted"),
    (SECOND, "analyze table d4.counted partition(p) compute statistics"),
    (SECOND, "analyze table d4.counted partition(p=1) compute statistics for columns"),
    (FIRST, "describe formatted d4.counted partition(p=1) k"),
    (FIRST, "describe formatted d4.counted k"),
    (FIRST, "explain select max(k) from d4.counted"),
    (SECOND, "analyze table d4.counted compute statistics for columns k"),
    (FIRST, "explain select max(k) from d4.counted"),
    (FIRST, "select max(k) from d4.counted"),
    (
        SECOND,
        "alter table d4.counted partition(p=2) update statistics for column k"
        " set ('lowValue'='5','highValue'='9','numNulls'='0','numDVs'='2')",
    ),
    (FIRST, "describe formatted d4.counted partition(p=2) k"),
    (FIRST, "alter table d4.counted partition(p=2) update statistics set ('numRows'='77')"),
    (SECOND, "describe formatted d4.counted partition(p=2)"),
    (SECOND, "alter table d4.counted set tblproperties('external.table.purge'='true')"),
    (SECOND, "truncate table d4.counted partition(p=1)"),
    (FIRST, "select min(k), max(k), count(*) from d4.counted"),
    (FIRST, "alter table d4.counted change column k k bigint cascade"),
    (SECOND, "select max(k), count(k) from d4.counted"),
    (SECOND, "alter table d4.counted drop partition(p=2)"),
    (FIRST, "select max(k), count(*) from d4.counted"),
]

_COMPACTIONS = [
    (FIRST, "create table d4.heap (k int) stored as orc tblproperties('transactional'='true')"),
    (FIRST, "insert into d4.heap values (1)"),
    (SECOND, "insert into d4.heap values (2)"),
    (FIRST, "delete from d4.heap where k = 1"),
    (SECOND, "alter table d4.heap compact 'minor'"),
    (FIRST, "alter table d4.heap compact 'major'"),
    (FIRST, "alter table d4.two partition(y=2024, name='more') compact 'major'"),
    (FIRST, "alter table d4.two partition(y=2024, name='nowhere') compact 'major'"),
    (SECOND, "show compactions database d4"),
    (SECOND, "select * from d4.heap"),
    (SECOND, "drop table d4.heap"),
    (FIRST, "create table d4.heap (k int) stored as orc tblproperties('transactional'='true')"),
    (SECOND, "select count(*) from d4.heap"),
]

_END = [
    (SECOND, "show tables in d4"),
    (FIRST, "drop database d4"),
    (FIRST, "drop database d4 cascade"),
    (SECOND, "show databases"),
]
