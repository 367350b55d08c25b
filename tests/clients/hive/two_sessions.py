"""Statements of two sessions that use the same tables in turn; the output of each depends on the other."""

from __future__ import annotations

FIRST, SECOND = 0, 1

_TABLES = {
    "acid": "create table d3.acid (k int, v string, n bigint) stored as orc tblproperties('transactional'='true')",
    "part": "create table d3.part (k int, v string, n bigint) partitioned by (p string) stored as orc"
    " tblproperties('transactional'='true')",
    "ins": "create table d3.ins (k int, v string, n bigint)"
    " tblproperties('transactional'='true','transactional_properties'='insert_only')",
    "ext": "create external table d3.ext (k int, v string, n bigint) stored as parquet",
}
_HAS_UPDATES = ("acid", "part")


def statements() -> list[tuple[int, str]]:
    """(session, statement) in the order in which they run."""
    found: list[tuple[int, str]] = [(FIRST, "create database d3")]
    for each in (FIRST, SECOND):
        found.append((each, "set hive.compute.query.using.stats=true"))
        found.append((each, "set hive.stats.autogather=true"))
        found.append((each, "set hive.stats.column.autogather=true"))
    for name, creation in _TABLES.items():
        found += _of_table(name, creation)
    return found + _across_tables()


def _of_table(name: str, creation: str) -> list[tuple[int, str]]:
    table = f"d3.{name}"
    rows = "(1,'a',10),(2,'b',20),(3,'c',null)"
    if name == "part":
        rows = "(1,'a',10,'x'),(2,'b',20,'x'),(3,'c',null,'y')"
    found = [(FIRST, creation), (SECOND, f"select count(*) from {table}")]
    found += [(FIRST, f"insert into {table} values {rows}"), *_questions(SECOND, table)]
    more = "(9,'z',90)" if name != "part" else "(9,'z',90,'y')"
    found += [(SECOND, f"insert into {table} values {more}"), *_questions(FIRST, table)]
    found += [(FIRST, f"analyze table {table} compute statistics for columns"), *_questions(SECOND, table)]
    found += [(SECOND, f"analyze table {table} compute statistics"), *_questions(FIRST, table)]
    if name in _HAS_UPDATES:
        found += [(FIRST, f"update {table} set n=100 where k=9"), *_questions(SECOND, table)]
        found += [(SECOND, f"delete from {table} where k=1"), *_questions(FIRST, table)]
        found += [(FIRST, f"update {table} set v='q', n=n+1 where n is not null"), *_questions(SECOND, table)]
        columns = "s.k, s.v, s.n" + (", 'w'" if name == "part" else "")
        found.append(
            (
                SECOND,
                f"merge into {table} t using (select 2 k, 'm' v, 7 n union all select 40, 'n', 400) s on t.k=s.k"
                " when matched and s.k=2 then update set v=s.v, n=s.n"
                f" when not matched then insert values ({columns})",
            )
        )
        found += _questions(FIRST, table)
        found += [(FIRST, f"analyze table {table} compute statistics for columns"), *_questions(SECOND, table)]
        found += [(FIRST, f"delete from {table} where k>30"), *_questions(SECOND, table)]
    found += [
        (SECOND, f"alter table {table} set tblproperties('seen'='by second')"),
        (FIRST, f"show tblproperties {table}('seen')"),
        (FIRST, f"describe formatted {table} n"),
        (SECOND, f"explain select max(n) from {table}"),
    ]
    return found


def _questions(session: int, table: str) -> list[tuple[int, str]]:
    """The first three may be answered from statistics."""
    return [
        (session, f"select min(k), max(k), min(n), max(n) from {table}"),
        (session, f"select count(*), count(n) from {table}"),
        (session, f"select * from {table} order by k"),
    ]


def _across_tables() -> list[tuple[int, str]]:
    return [
        (FIRST, "create table d3.low (k int, n bigint) stored as orc tblproperties('transactional'='true')"),
        (SECOND, "create table d3.high (k int, n bigint) stored as orc tblproperties('transactional'='true')"),
        (
            FIRST,
            "from d3.acid insert into d3.low select k, n where k < 5 insert into d3.high select k, n where k >= 5",
        ),
        (SECOND, "select max(k), count(*) from d3.low"),
        (SECOND, "select min(k), count(*) from d3.high"),
        (FIRST, "insert overwrite table d3.ins select k, v, n from d3.acid"),
        *_questions(SECOND, "d3.ins"),
        (SECOND, "insert into d3.part partition(p) select k+100, v, n, 'dyn' from d3.acid"),
        *_questions(FIRST, "d3.part"),
        (FIRST, "select p, max(n) from d3.part group by p order by p"),
        (FIRST, "select max(n) from d3.part where p='dyn'"),
        (SECOND, "truncate table d3.part partition(p='dyn')"),
        *_questions(FIRST, "d3.part"),
        (FIRST, "alter table d3.part drop partition(p='dyn')"),
        (SECOND, "show partitions d3.part"),
        *_questions(SECOND, "d3.part"),
        (SECOND, "alter table d3.part partition(p='x') rename to partition(p='xx')"),
        *_questions(FIRST, "d3.part"),
        (FIRST, "alter table d3.acid compact 'major'"),
        (SECOND, "alter table d3.part partition(p='xx') compact 'minor'"),
        (FIRST, "truncate table d3.acid"),
        *_questions(SECOND, "d3.acid"),
        (SECOND, "insert into d3.acid values (5,'e',50)"),
        *_questions(FIRST, "d3.acid"),
        (FIRST, "alter table d3.acid add columns (w int)"),
        (SECOND, "select k, w from d3.acid order by k"),
        (SECOND, "insert into d3.acid values (6,'f',60,600)"),
        (FIRST, "select max(w), count(w) from d3.acid"),
        (FIRST, "alter table d3.acid rename to d3.acid2"),
        (SECOND, "select count(*) from d3.acid"),
        *_questions(SECOND, "d3.acid2"),
        (SECOND, "update d3.acid2 set w=1 where w is null"),
        (FIRST, "select min(w), max(w) from d3.acid2"),
        (FIRST, "create table d3.made stored as orc tblproperties('transactional'='true') as select * from d3.acid2"),
        *_questions(SECOND, "d3.made"),
        (SECOND, "create materialized view d3.sums stored as orc as select v, sum(n) s from d3.made group by v"),
        (FIRST, "select * from d3.sums order by v"),
        (FIRST, "insert into d3.made values (8,'h',80,8)"),
        (SECOND, "alter materialized view d3.sums rebuild"),
        (FIRST, "select * from d3.sums order by v"),
        (SECOND, "drop table d3.made"),
        (SECOND, "drop materialized view d3.sums"),
        (SECOND, "drop table d3.made"),
        (FIRST, "select count(*) from d3.made"),
        (FIRST, "create table d3.acid (k int, v string, n bigint) stored as orc tblproperties('transactional'='true')"),
        *_questions(SECOND, "d3.acid"),
        (SECOND, "insert into d3.acid values (1,'new',1)"),
        *_questions(FIRST, "d3.acid"),
        (FIRST, "drop table d3.acid"),
        (SECOND, "select * from d3.acid"),
        (SECOND, "show tables in d3"),
        (FIRST, "show transactions"),
        (FIRST, "drop database d3 cascade"),
        (SECOND, "show databases"),
    ]
