"""The statements that the tests send to Spark: each statement that reaches a metastore, in a working order.

`tests.clients.spark.worker` runs them in Spark's process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Rows = list[list[str]]


@dataclass(frozen=True)
class Step:
    """One statement. `ordered`: the order of its rows is part of the answer."""

    kind: str
    statement: str
    action: Callable[[Any], Rows] | None = None
    ordered: bool = True


def sql(kind: str, statement: str, *, ordered: bool = True) -> Step:
    return Step(kind, statement, None, ordered)


def select(kind: str, statement: str) -> Step:
    return Step(kind, statement, None, False)


def call(kind: str, text: str, action: Callable[[Any], Rows]) -> Step:
    return Step(kind, text, action, False)


def rows_of(frame: Any) -> Rows:
    return [[str(value) for value in row] for row in frame.collect()]


def _save_as_table(spark: Any) -> Rows:
    spark.range(20).selectExpr("id", "id % 4 AS p").write.partitionBy("p").saveAsTable("spk.ds")
    return []


def _insert_into(spark: Any) -> Rows:
    spark.range(100, 105).selectExpr("id", "id % 3 AS p").write.mode("append").insertInto("spk.ds")
    return []


def _save_bucketed(spark: Any) -> Rows:
    frame = spark.range(10).selectExpr("id", "cast(id AS string) AS s")
    frame.write.format("json").bucketBy(2, "id").sortBy("id").option("compression", "gzip").saveAsTable("spk.bk")
    return []


def _list_columns(spark: Any) -> Rows:
    return [[c.name, c.dataType, str(c.isPartition)] for c in spark.catalog.listColumns("spk.ev")]


def _list_tables(spark: Any) -> Rows:
    # Spark's interpreter of projections cannot make these objects, its compiler can.
    mode = "spark.sql.codegen.factoryMode"
    before = spark.conf.get(mode)
    spark.conf.set(mode, "CODEGEN_ONLY")
    try:
        return [[t.name, t.tableType, str(t.description)] for t in spark.catalog.listTables("spk")]
    finally:
        spark.conf.set(mode, before)


EV = "spk.ev"
JAN_1 = "dt='2024-01-01'"

DATABASES = (
    sql("databases", "SHOW DATABASES"),
    sql("databases", "DESCRIBE DATABASE EXTENDED default"),
    sql("databases", "CREATE DATABASE spk COMMENT 'a comment' WITH DBPROPERTIES ('a'='1', 'b'='zwei')"),
    sql("databases", "CREATE DATABASE IF NOT EXISTS spk"),
    sql("databases", "CREATE DATABASE SPK"),
    sql("databases", "CREATE DATABASE other LOCATION '{scratch}/elsewhere'"),
    sql("databases", "USE spk"),
    sql("databases", "DESCRIBE DATABASE EXTENDED spk"),
    sql("databases", "ALTER DATABASE spk SET DBPROPERTIES ('b'='2', 'c'='ü')"),
    sql("databases", "ALTER DATABASE other SET LOCATION '{scratch}/elsewhere2'"),
    sql("databases", "ALTER DATABASE other SET LOCATION '{scratch}/elsewhere'"),
    sql("databases", "DESCRIBE DATABASE EXTENDED spk"),
    sql("databases", "DESCRIBE DATABASE EXTENDED other"),
    sql("databases", "SHOW DATABASES LIKE 's*|oth*'"),
    sql("databases", "USE absent"),
)

PARTITIONED_TABLE = (
    sql(
        "create table",
        "CREATE TABLE spk.ev (id BIGINT COMMENT 'the id', v STRING) PARTITIONED BY (dt STRING COMMENT 'day', hr INT)"
        " STORED AS PARQUET TBLPROPERTIES ('owner.team'='data')",
    ),
    sql("create table", "CREATE TABLE spk.ev (id BIGINT)"),
    sql("insert static", f"INSERT INTO {EV} PARTITION ({JAN_1}, hr=0) VALUES (1,'a'),(2,'b')"),
    sql(
        "insert dynamic",
        f"INSERT INTO {EV} PARTITION (dt, hr) SELECT id, cast(id as string), concat('2024-01-0', 1 + id % 3),"
        " cast(id % 4 as int) FROM range(24)",
    ),
    sql("insert dynamic", f"INSERT INTO {EV} PARTITION (dt='2024-01-04', hr) SELECT 1, NULL, cast(NULL as int)"),
    sql("insert overwrite", f"INSERT OVERWRITE {EV} PARTITION ({JAN_1}, hr=0) VALUES (9,'z')"),
)

READS = (
    select("select, equality", f"SELECT * FROM {EV} WHERE {JAN_1} AND hr=0"),
    select("select, range", f"SELECT count(*), sum(id) FROM {EV} WHERE dt >= '2024-01-02' AND dt < '2024-01-04'"),
    select("select, range", f"SELECT count(*) FROM {EV} WHERE hr > 1"),
    select("select, range", f"SELECT count(*) FROM {EV} WHERE hr BETWEEN 1 AND 2 AND dt <> '2024-01-02'"),
    select("select, IN", f"SELECT count(*) FROM {EV} WHERE dt IN ('2024-01-01', '2024-01-03', 'nope')"),
    select("select, IN", f"SELECT count(*) FROM {EV} WHERE hr IN (1, 2)"),
    select("select, IN", f"SELECT count(*) FROM {EV} WHERE hr NOT IN (1, 2)"),
    select("select, LIKE", f"SELECT count(*) FROM {EV} WHERE dt LIKE '2024-01-0%'"),
    select("select, LIKE", f"SELECT count(*) FROM {EV} WHERE dt LIKE '%01-03' OR dt LIKE '%-04%'"),
    select("select, LIKE and IN", f"SELECT count(*) FROM {EV} WHERE dt LIKE '2024-01-0%' AND hr IN (1,2)"),
    select("select, OR", f"SELECT count(*) FROM {EV} WHERE ({JAN_1} AND hr=1) OR (dt='2024-01-02' AND hr=2)"),
    select("select, null", f"SELECT count(*) FROM {EV} WHERE hr IS NULL"),
    select("select, null", f"SELECT count(*) FROM {EV} WHERE hr IS NOT NULL AND hr <=> 3"),
    select("select, casts", f"SELECT count(*) FROM {EV} WHERE cast(dt AS date) = date'2024-01-02'"),
    select("select, casts", f"SELECT count(*) FROM {EV} WHERE hr = '1'"),
    select("select, nothing", f"SELECT * FROM {EV} WHERE dt = 'it''s \"quoted\"'"),
    select("select, no filter", f"SELECT count(*), min(hr), max(dt) FROM {EV}"),
    call("schema", f"spark.table('{EV}').schema", lambda spark: [[str(spark.table(EV).schema)]]),
    call("schema", "spark.catalog.listColumns('spk.ev')", _list_columns),
)

SHOWS = (
    sql("show", "SHOW TABLES IN spk"),
    sql("show", "SHOW TABLES IN spk LIKE 'e*'"),
    sql("show", f"SHOW PARTITIONS {EV}"),
    sql("show", f"SHOW PARTITIONS {EV} PARTITION ({JAN_1})"),
    sql("show", f"SHOW TABLE EXTENDED IN spk LIKE 'ev' PARTITION ({JAN_1}, hr=0)"),
    sql("show", f"SHOW TBLPROPERTIES {EV}", ordered=False),
    sql("show", f"SHOW COLUMNS IN {EV}"),
    sql("describe", f"DESCRIBE TABLE EXTENDED {EV}"),
    sql("describe", f"DESCRIBE TABLE EXTENDED {EV} PARTITION ({JAN_1}, hr=0)"),
    sql("describe", f"DESCRIBE TABLE EXTENDED {EV} PARTITION (dt='1999-01-01', hr=0)"),
    sql("describe", f"SHOW CREATE TABLE {EV}"),
)

PARTITION_DDL = (
    sql("partition DDL", f"ALTER TABLE {EV} ADD PARTITION (dt='2024-02-01', hr=1) PARTITION (dt='2024-02-01', hr=2)"),
    sql("partition DDL", f"ALTER TABLE {EV} ADD IF NOT EXISTS PARTITION (dt='2024-02-01', hr=1)"),
    sql("partition DDL", f"ALTER TABLE {EV} ADD PARTITION (dt='2024-02-01', hr=1)"),
    sql("partition DDL", f"ALTER TABLE {EV} ADD PARTITION (dt='a/b=c d', hr=7) LOCATION '{{scratch}}/outside'"),
    sql("partition DDL", f"SHOW PARTITIONS {EV}"),
    sql("partition DDL", f"ALTER TABLE {EV} DROP PARTITION (dt='2024-02-01', hr=1)"),
    sql("partition DDL", f"ALTER TABLE {EV} DROP PARTITION (dt='2024-02-01', hr=1)"),
    sql("partition DDL", f"ALTER TABLE {EV} DROP IF EXISTS PARTITION (dt='2024-02-01', hr=1)"),
    sql(
        "partition DDL",
        f"ALTER TABLE {EV} PARTITION (dt='2024-02-01', hr=2) RENAME TO PARTITION (dt='2024-02-02', hr=2)",
    ),
    sql("partition DDL", f"ALTER TABLE {EV} PARTITION (dt='2024-02-02', hr=2) SET LOCATION '{{scratch}}/moved'"),
    sql(
        "partition DDL",
        f"ALTER TABLE {EV} PARTITION (dt='2024-02-02', hr=2) SET SERDEPROPERTIES ('serialization.format'='2')",
    ),
    sql("partition DDL", f"DESCRIBE TABLE EXTENDED {EV} PARTITION (dt='2024-02-02', hr=2)"),
    sql("partition DDL", f"ALTER TABLE {EV} DROP PARTITION (dt='a/b=c d', hr=7)"),
    sql("partition DDL", f"TRUNCATE TABLE {EV} PARTITION (dt='2024-01-03', hr=2)"),
    sql("partition DDL", f"SHOW PARTITIONS {EV}"),
)

ALTERS = (
    sql("alter table", f"ALTER TABLE {EV} ADD COLUMNS (extra DOUBLE COMMENT 'more')"),
    sql("alter table", f"INSERT INTO {EV} PARTITION (dt='2024-03-01', hr=0) VALUES (5, 'five', 5.5)"),
    select("alter table", f"SELECT id, v, extra FROM {EV} WHERE dt >= '2024-03-01' OR {JAN_1}"),
    sql("alter table", f"ALTER TABLE {EV} SET TBLPROPERTIES ('k'='v', 'comment'='all events')"),
    sql("alter table", f"ALTER TABLE {EV} UNSET TBLPROPERTIES ('owner.team')"),
    sql("alter table", f"ALTER TABLE {EV} CHANGE COLUMN v v STRING COMMENT 'the value'"),
    sql("alter table", f"ALTER TABLE {EV} SET SERDEPROPERTIES ('x'='y')"),
    sql("alter table", f"SHOW TBLPROPERTIES {EV}", ordered=False),
    sql("alter table", f"DESCRIBE TABLE EXTENDED {EV}"),
)

STATISTICS = (
    sql("analyze", f"ANALYZE TABLE {EV} PARTITION (dt, hr) COMPUTE STATISTICS"),
    sql("analyze", f"DESCRIBE TABLE EXTENDED {EV} PARTITION ({JAN_1}, hr=1)"),
    sql("analyze", f"ANALYZE TABLE {EV} COMPUTE STATISTICS"),
    sql("analyze", f"ANALYZE TABLE {EV} COMPUTE STATISTICS FOR COLUMNS id, v"),
    sql("analyze", f"DESCRIBE TABLE EXTENDED {EV}"),
    sql("analyze", f"DESCRIBE TABLE EXTENDED {EV} id"),
    sql("analyze", f"SHOW TBLPROPERTIES {EV}", ordered=False),
)

REPAIR = (
    call("repair", "mkdir dt=2024-04-01/hr=3", lambda spark: _make_directory(spark)),
    sql("repair", f"MSCK REPAIR TABLE {EV}"),
    sql("repair", f"SHOW PARTITIONS {EV}"),
    sql("repair", f"ALTER TABLE {EV} RECOVER PARTITIONS"),
    call("repair", "rmdir dt=2024-04-01/hr=3", lambda spark: _remove_directory(spark)),
    sql("repair", f"MSCK REPAIR TABLE {EV} SYNC PARTITIONS"),
    sql("repair", f"SHOW PARTITIONS {EV}"),
)

DATASOURCE_TABLES = (
    call("datasource table", "DataFrame.write.partitionBy('p').saveAsTable('spk.ds')", _save_as_table),
    select("datasource table", "SELECT count(*) FROM spk.ds WHERE p = 1"),
    sql("datasource table", "INSERT INTO spk.ds SELECT id, id%5 FROM range(10)"),
    call("datasource table", "DataFrame.write.mode('append').insertInto('spk.ds')", _insert_into),
    sql("datasource table", "INSERT OVERWRITE spk.ds PARTITION (p=2) SELECT 77"),
    select("datasource table", "SELECT p, count(*), sum(id) FROM spk.ds GROUP BY p"),
    sql("datasource table", "DESCRIBE TABLE EXTENDED spk.ds"),
    call("datasource table", "bucketed, sorted JSON", _save_bucketed),
    sql("datasource table", "DESCRIBE TABLE EXTENDED spk.bk"),
    select("datasource table", "SELECT sum(id) FROM spk.bk"),
    sql(
        "datasource table",
        "CREATE TABLE spk.typed (a TINYINT, b SMALLINT, c FLOAT, d DECIMAL(12,3), e DATE, f TIMESTAMP, g BINARY,"
        " h ARRAY<STRUCT<x: INT, y: MAP<STRING, BOOLEAN>>>, i CHAR(3), j VARCHAR(9) DEFAULT 'no', k INT NOT NULL)"
        " USING parquet PARTITIONED BY (e) COMMENT 'all types'",
    ),
    sql("datasource table", "DESCRIBE TABLE EXTENDED spk.typed"),
    sql("datasource table", "ALTER TABLE spk.typed ALTER COLUMN a COMMENT 'tiny'"),
    sql("datasource table", "SHOW CREATE TABLE spk.typed"),
    sql("datasource table", "CREATE TABLE spk.csv (a INT, b STRING) USING csv OPTIONS (header 'true', sep ';')"),
    sql("datasource table", "SHOW CREATE TABLE spk.csv"),
)

OTHER_TABLES = (
    sql("external table", "CREATE EXTERNAL TABLE spk.ext (a INT, b STRING) STORED AS ORC LOCATION '{scratch}/ext'"),
    sql("external table", "INSERT INTO spk.ext VALUES (1, 'one')"),
    sql("external table", "DESCRIBE TABLE EXTENDED spk.ext"),
    sql("external table", "DROP TABLE spk.ext"),
    sql("external table", "CREATE TABLE spk.ext (a INT, b STRING) USING orc LOCATION '{scratch}/ext'"),
    select("external table", "SELECT * FROM spk.ext"),
    sql("ctas", "CREATE TABLE spk.ctas STORED AS ORC AS SELECT id FROM range(5)"),
    select("ctas", "SELECT * FROM spk.ctas"),
    sql(
        "hive table",
        "CREATE TABLE spk.txt (a INT, b STRING) PARTITIONED BY (p STRING) ROW FORMAT DELIMITED"
        " FIELDS TERMINATED BY ',' NULL DEFINED AS 'nil' STORED AS TEXTFILE",
    ),
    sql("hive table", "INSERT INTO spk.txt PARTITION (p='x') VALUES (1, NULL)"),
    sql("hive table", "INSERT INTO spk.txt PARTITION (p) VALUES (2, 'zwei', 'y'), (3, 'drei', 'x')"),
    sql("hive table", "INSERT OVERWRITE spk.txt PARTITION (p='x') VALUES (4, 'vier')"),
    select("hive table", "SELECT * FROM spk.txt WHERE p IN ('x', 'y')"),
    sql("hive table", "DESCRIBE TABLE EXTENDED spk.txt PARTITION (p='x')"),
    sql("hive table", "SHOW CREATE TABLE spk.txt AS SERDE"),
    sql("hive table", "CREATE TABLE spk.likeness LIKE spk.txt"),
    sql("hive table", "DESCRIBE TABLE EXTENDED spk.likeness"),
)

VIEWS = (
    sql("view", f"CREATE VIEW spk.vw (ident COMMENT 'c') COMMENT 'v' AS SELECT id FROM {EV} WHERE {JAN_1}"),
    select("view", "SELECT count(*) FROM spk.vw"),
    sql("view", f"ALTER VIEW spk.vw AS SELECT id, v FROM {EV} WHERE {JAN_1}"),
    sql("view", "ALTER VIEW spk.vw SET TBLPROPERTIES ('w'='1')"),
    sql("view", "DESCRIBE TABLE EXTENDED spk.vw"),
    sql("view", "SHOW VIEWS IN spk"),
    sql("view", "ALTER VIEW spk.vw RENAME TO spk.vw2"),
    select("view", f"SELECT e.id FROM {EV} e JOIN spk.ds d ON e.id=d.id WHERE e.{JAN_1} AND d.p=1"),
    sql("view", "CREATE OR REPLACE VIEW spk.vw2 AS SELECT 1 AS one"),
    select("view", "SELECT * FROM spk.vw2"),
)

RENAMES = (
    sql("truncate", "TRUNCATE TABLE spk.ctas"),
    select("truncate", "SELECT count(*) FROM spk.ctas"),
    sql("rename", "ALTER TABLE spk.ctas RENAME TO spk.ctas2"),
    sql("rename", "ALTER TABLE spk.absent RENAME TO spk.ctas3"),
    sql("rename", "ALTER TABLE spk.ctas2 RENAME TO spk.ev"),
    sql("rename", "ALTER TABLE spk.ds RENAME TO spk.ds2"),
    select("rename", "SELECT p, count(*), sum(id) FROM spk.ds2 WHERE p > 0 GROUP BY p"),
    sql("rename", "DESCRIBE TABLE EXTENDED spk.ds2 PARTITION (p=1)"),
    sql("rename", f"ALTER TABLE {EV} RENAME TO spk.ev2"),
    select("rename", f"SELECT count(*) FROM spk.ev2 WHERE {JAN_1}"),
    select("rename", f"SELECT count(*) FROM {EV}"),
)

FUNCTIONS = (
    sql("function", "CREATE FUNCTION spk.f1 AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFLength'"),
    sql("function", "CREATE FUNCTION spk.f1 AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFLower'"),
    sql("function", "SHOW USER FUNCTIONS"),
    sql("function", "DESCRIBE FUNCTION spk.f1"),
    select("function", "SELECT spk.f1('four')"),
    sql("function", "CREATE OR REPLACE FUNCTION spk.f1 AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFLower'"),
    sql("function", "SHOW USER FUNCTIONS LIKE 'spk.f*'"),
    sql("function", "DROP FUNCTION spk.f1"),
    sql("function", "DROP FUNCTION spk.f1"),
    sql("function", "SHOW USER FUNCTIONS"),
)

DROPS = (
    call("exists", "tableExists('spk.nope')", lambda spark: [[str(spark.catalog.tableExists("spk.nope"))]]),
    call("exists", "tableExists('spk.ev2')", lambda spark: [[str(spark.catalog.tableExists("spk.ev2"))]]),
    call("exists", "databaseExists('nope')", lambda spark: [[str(spark.catalog.databaseExists("nope"))]]),
    call("list tables", "spark.catalog.listTables('spk')", _list_tables),
    sql("drop", "DROP VIEW spk.vw2"),
    sql("drop", "DROP TABLE spk.vw2"),
    sql("drop", "DROP TABLE IF EXISTS spk.vw2"),
    sql("drop", "DROP TABLE spk.ds2"),
    sql("drop", "DROP TABLE spk.ext"),
    sql("drop", "DROP TABLE spk.csv PURGE"),
    sql("drop", "DROP DATABASE spk"),
    call("drop", "files that are left", lambda spark: files_left(spark)),
    sql("drop", "DROP DATABASE spk CASCADE"),
    sql("drop", "DROP DATABASE IF EXISTS spk"),
    sql("drop", "DROP DATABASE spk"),
    sql("drop", "DROP DATABASE other"),
    sql("drop", "SHOW DATABASES"),
    call("drop", "files that are left", lambda spark: files_left(spark)),
)

STEPS: tuple[Step, ...] = (
    *DATABASES,
    *PARTITIONED_TABLE,
    *READS,
    *SHOWS,
    *PARTITION_DDL,
    *ALTERS,
    *STATISTICS,
    *REPAIR,
    *DATASOURCE_TABLES,
    *OTHER_TABLES,
    *VIEWS,
    *RENAMES,
    *FUNCTIONS,
    *DROPS,
)


def _warehouse(spark: Any) -> Any:
    from pathlib import Path

    return Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))


def _make_directory(spark: Any) -> Rows:
    (_warehouse(spark) / "spk.db" / "ev" / "dt=2024-04-01" / "hr=3").mkdir(parents=True)
    return []


def _remove_directory(spark: Any) -> Rows:
    (_warehouse(spark) / "spk.db" / "ev" / "dt=2024-04-01" / "hr=3").rmdir()
    return []


def files_left(spark: Any) -> Rows:
    """Returns the remaining directories, to check that dropped data is gone and external data remains."""
    scratch = _warehouse(spark).parent
    found = [path.relative_to(scratch) for path in scratch.rglob("*") if path.is_dir()]
    return [[str(path)] for path in sorted(found) if path.parts[0] in ("warehouse", "ext", "elsewhere", "elsewhere2")]
