"""Unusual statements for Spark: special partition values, conditions on keys of all types, wide and odd tables.

They are run like `tests.clients.spark.statements`.
"""

from __future__ import annotations

from tests.clients.spark.statements import Step, call, files_left, select, sql

KEYS = "s STRING, d DATE, t TIMESTAMP, n DECIMAL(6,2), b BOOLEAN, c CHAR(4), v VARCHAR(6), l BIGINT"
KEYS_OF_ODD = "s='x y%', d=date'2024-02-29', t=timestamp'2024-01-01 10:11:12.5', n=1.5, b=true, c='ab', v='v', l=-7"

ODD_PARTITION_VALUES = (
    sql("odd values", "CREATE DATABASE odd"),
    sql("odd values", "CREATE TABLE odd.txt (id INT) PARTITIONED BY (p STRING) STORED AS TEXTFILE"),
    sql(
        "odd values",
        "INSERT INTO odd.txt PARTITION (p) VALUES (1, 'a b'), (2, 'a%b'), (3, 'a/b'), (4, 'a=b'), (5, 'ü€'),"
        " (6, NULL), (7, ''), (8, '100%25'), (9, '{braces}'), (10, 'a:b\\\\c'), (11, 'it''s \"q\"'),"
        " (12, 'þ'), (13, 'A B')",
    ),
    sql("odd values", "SHOW PARTITIONS odd.txt"),
    select("odd values", "SELECT id, p FROM odd.txt"),
    *(
        select("odd values", f"SELECT id, p FROM odd.txt WHERE p {condition}")
        for condition in (
            "= 'a b'",
            "= 'a%b'",
            "= 'a/b'",
            "= 'a=b'",
            "= 'ü€'",
            "IS NULL",
            "= ''",
            "= '100%25'",
            "= '{braces}'",
            "= 'a:b\\\\c'",
            "= 'þ'",
            "<> 'a b'",
            "NOT IN ('a b', 'ü€')",
            "IN ('a/b', 'þ', 'x')",
            "LIKE 'a%'",
            "LIKE '%b'",
            "LIKE '%=%'",
            "NOT LIKE 'a%'",
            "> 'a'",
            "= '__HIVE_DEFAULT_PARTITION__'",
            "LIKE 'A_B'",
            "IS NOT NULL AND p < 'b'",
            "<=> NULL",
            "LIKE '%25'",
            "= 'it\\'s \"q\"'",
        )
    ),
    sql("odd values", "ALTER TABLE odd.txt PARTITION (p='a/b') RENAME TO PARTITION (p='c/d é')"),
    sql("odd values", "ALTER TABLE odd.txt DROP PARTITION (p='a%b')"),
    sql("odd values", "ALTER TABLE odd.txt DROP PARTITION (p=NULL)"),
    sql("odd values", "ALTER TABLE odd.txt ADD PARTITION (p='')"),
    sql("odd values", "TRUNCATE TABLE odd.txt PARTITION (p='a=b')"),
    sql("odd values", "SHOW PARTITIONS odd.txt PARTITION (p='ü€')"),
    sql("odd values", "SHOW TABLE EXTENDED IN odd LIKE 'txt' PARTITION (p='ü€')"),
    select("odd values", "SELECT id, p FROM odd.txt"),
    sql("odd values", f"CREATE TABLE odd.keys (id INT) PARTITIONED BY ({KEYS}) STORED AS PARQUET"),
    sql("odd values", f"INSERT INTO odd.keys PARTITION ({KEYS_OF_ODD}) VALUES (1)"),
    sql(
        "odd values",
        "INSERT INTO odd.keys SELECT 2, 'y', date'2023-12-31', timestamp'2023-12-31 23:59:59', 2.25, false, 'abcd',"
        " 'long', 9000000000",
    ),
    sql("odd values", "INSERT INTO odd.keys SELECT 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL"),
    sql("odd values", "SHOW PARTITIONS odd.keys"),
    *(
        select("odd values", f"SELECT id FROM odd.keys WHERE {condition}")
        for condition in (
            "d = date'2024-02-29'",
            "d > date'2024-01-01'",
            "d IN (date'2024-02-29', date'2023-12-31')",
            "d NOT IN (date'2024-02-29')",
            "d <> date'2024-02-29'",
            "d = '2024-02-29'",
            "year(d) = 2024",
            "t >= timestamp'2024-01-01 00:00:00'",
            "t = timestamp'2024-01-01 10:11:12.5'",
            "n = 1.5",
            "n > 2",
            "n = 1.50",
            "b = true",
            "b",
            "NOT b",
            "c = 'ab'",
            "c = 'ab  '",
            "c LIKE 'ab%'",
            "v = 'v'",
            "v IN ('v', 'w')",
            "l = -7",
            "l < 0",
            "l = 9000000000",
            "l IN (-7, 9000000000)",
            "l NOT IN (-7)",
            "l <> -7",
            "d IS NULL",
            "s IS NULL AND l IS NULL",
            "s <> 'y'",
            "s NOT IN ('y')",
            "startswith(s, 'x')",
            "contains(s, ' ')",
            "endswith(s, '%')",
            "l IN (" + ", ".join(str(number) for number in range(-1100, 1)) + ")",
            "s IN (" + ", ".join(f"'k{number}'" for number in range(1100)) + ", 'y')",
            "d IN (" + ", ".join(f"date'2024-02-{day:02}'" for day in range(1, 30)) + ")",
            "NOT (s = 'y' OR l = 5)",
            "(s = 'y' AND l > 0) OR (d > date'2024-01-01' AND l < 0)",
            "l + 1 = -6",
        )
    ),
    sql("odd values", "ANALYZE TABLE odd.keys PARTITION (s, d, t, n, b, c, v, l) COMPUTE STATISTICS NOSCAN"),
    sql("odd values", f"DESCRIBE TABLE EXTENDED odd.keys PARTITION ({KEYS_OF_ODD})"),
    sql("odd values", f"ALTER TABLE odd.keys DROP PARTITION ({KEYS_OF_ODD})"),
    sql("odd values", "SHOW PARTITIONS odd.keys"),
    sql("overwrite", "CREATE TABLE odd.ow (id BIGINT, a STRING, b INT) USING parquet PARTITIONED BY (a, b)"),
    sql("overwrite", "INSERT INTO odd.ow SELECT id, concat('p ', id % 3), cast(id % 2 AS INT) FROM range(12)"),
    sql("overwrite", "SET spark.sql.sources.partitionOverwriteMode=dynamic"),
    sql("overwrite", "INSERT OVERWRITE odd.ow SELECT 100, 'p 1', 1"),
    sql("overwrite", "SHOW PARTITIONS odd.ow"),
    select("overwrite", "SELECT a, b, count(*), sum(id) FROM odd.ow GROUP BY a, b"),
    sql("overwrite", "INSERT OVERWRITE odd.ow PARTITION (a='p 0', b) SELECT 7, 5"),
    select("overwrite", "SELECT a, b, count(*), sum(id) FROM odd.ow GROUP BY a, b"),
    sql("overwrite", "SET spark.sql.sources.partitionOverwriteMode=static"),
    sql("overwrite", "INSERT OVERWRITE odd.ow PARTITION (a='p 0', b) SELECT 8, 6"),
    select("overwrite", "SELECT a, b, count(*), sum(id) FROM odd.ow GROUP BY a, b"),
    sql("overwrite", "INSERT OVERWRITE odd.ow SELECT 200, 'z', 1"),
    sql("overwrite", "SHOW PARTITIONS odd.ow"),
    sql("overwrite", "ALTER TABLE odd.ow PARTITION (a='z', b=1) RENAME TO PARTITION (a='z/z', b=2)"),
    select("overwrite", "SELECT * FROM odd.ow"),
    sql("overwrite", "TRUNCATE TABLE odd.ow PARTITION (a='z/z')"),
    select("overwrite", "SELECT * FROM odd.ow"),
)

WIDE = ", ".join(
    f"`Column {number} äöü` STRUCT<`InnerName{number}`: ARRAY<STRING>> COMMENT 'it''s 😀 \"{number}\"'"
    for number in range(300)
)
ALL_TYPES = (
    "a TINYINT, b SMALLINT, c INT, d BIGINT, e FLOAT, f DOUBLE, g DECIMAL(20,4), h STRING, i VARCHAR(9), j CHAR(3),"
    " k BINARY, l BOOLEAN, m DATE, n TIMESTAMP, o ARRAY<INT>, p MAP<STRING,INT>, q STRUCT<X:INT>"
)

ODD_TABLES = (
    sql("odd tables", f"CREATE TABLE odd.Wide ({WIDE}) USING parquet COMMENT 'weit 😀 ''q'' \"d\" \\\\ \\n neu'"),
    sql("odd tables", "DESCRIBE TABLE EXTENDED odd.wide"),
    sql("odd tables", "SHOW CREATE TABLE odd.wide"),
    call("odd tables", "wide schema", lambda spark: [[str(spark.table("odd.wide").schema)]]),
    sql("odd tables", "ALTER TABLE odd.wide ADD COLUMNS (`Late Column` INT COMMENT 'é')"),
    call("odd tables", "wide schema, altered", lambda spark: [[str(spark.table("odd.wide").schema)]]),
    sql("odd tables", "ALTER TABLE odd.wide RENAME TO odd.wider"),
    call("odd tables", "wide schema, renamed", lambda spark: [[str(spark.table("odd.wider").schema)]]),
    sql("odd tables", f"CREATE TABLE odd.types ({ALL_TYPES}) STORED AS ORC"),
    sql(
        "odd tables",
        "INSERT INTO odd.types SELECT 1, 2, 3, 4, 1.5, 2.5, 3.25, 'ü', 'vv', 'c', x'00FF', true, date'2020-02-02',"
        " timestamp'2020-02-02 02:02:02.123', array(1), map('k', 1), named_struct('X', 1)",
    ),
    sql(
        "odd tables",
        "INSERT INTO odd.types SELECT a, b, NULL, d, cast('NaN' AS FLOAT), f, g, h, i, j, k, l, m, n, o, p, q"
        " FROM odd.types",
    ),
    sql("odd tables", "ANALYZE TABLE odd.types COMPUTE STATISTICS NOSCAN"),
    sql("odd tables", "ANALYZE TABLE odd.types COMPUTE STATISTICS FOR COLUMNS a,b,c,d,e,f,g,h,i,j,k,l,m,n"),
    sql("odd tables", "ANALYZE TABLE odd.types COMPUTE STATISTICS FOR ALL COLUMNS"),
    *(sql("odd tables", f"DESCRIBE TABLE EXTENDED odd.types {name}") for name in "abcdefghijklmn"),
    sql("odd tables", "SHOW TBLPROPERTIES odd.types", ordered=False),
    sql("odd tables", "ALTER TABLE odd.types CHANGE COLUMN a a TINYINT COMMENT 'neu'"),
    sql("odd tables", "ALTER TABLE odd.types REPLACE COLUMNS (a INT)"),
    sql(
        "odd tables",
        "ALTER TABLE odd.types SET SERDE 'org.apache.hadoop.hive.ql.io.orc.OrcSerde' WITH SERDEPROPERTIES ('ä'='ö')",
    ),
    sql("odd tables", "ALTER TABLE odd.types UNSET TBLPROPERTIES ('absent')"),
    sql("odd tables", "ALTER TABLE odd.types UNSET TBLPROPERTIES IF EXISTS ('absent')"),
    sql("odd tables", "ALTER TABLE odd.types SET LOCATION '{scratch}/warehouse/odd.db/types'"),
    sql("odd tables", "ALTER TABLE odd.types SET TBLPROPERTIES ('k 1'='v=1;\"''😀', 'empty'='')"),
    sql("odd tables", "DESCRIBE TABLE EXTENDED odd.types"),
    sql("odd tables", "SHOW CREATE TABLE odd.types AS SERDE"),
    sql(
        "odd tables",
        "CREATE TABLE odd.hb (a INT, b STRING) CLUSTERED BY (a) SORTED BY (b) INTO 4 BUCKETS STORED AS ORC",
    ),
    sql("odd tables", "DESCRIBE TABLE EXTENDED odd.hb"),
    sql("odd tables", "SHOW CREATE TABLE odd.hb AS SERDE"),
    sql(
        "odd tables",
        "CREATE TABLE odd.ctas USING orc PARTITIONED BY (p) AS SELECT id, concat('ü ', id % 2) AS p FROM range(6)",
    ),
    select("odd tables", "SELECT p, count(*) FROM odd.ctas GROUP BY p"),
    sql("odd tables", "CREATE TABLE `odd`.`strange-name` (a INT)"),
    sql("odd tables", "CREATE TABLE odd.`1a` (`a.b` INT, `c,d` STRING) USING parquet"),
    sql("odd tables", "DESCRIBE TABLE odd.`1a`"),
    sql("odd tables", "SHOW TABLES IN odd LIKE '*a*|hb'"),
    sql("odd tables", "SHOW TABLE EXTENDED IN odd LIKE 'ow|hb'"),
    sql("odd tables", "MSCK REPAIR TABLE odd.txt"),
    sql("odd tables", "MSCK REPAIR TABLE odd.ow DROP PARTITIONS"),
    sql("odd tables", "MSCK REPAIR TABLE odd.hb"),
    sql("odd views", "CREATE FUNCTION odd.up AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper'"),
    sql(
        "odd views",
        "CREATE VIEW odd.v1 (`Große Spalte` COMMENT 'é 😀', n) TBLPROPERTIES ('x'='y')"
        " AS SELECT odd.up(p) AS up, id FROM odd.txt",
    ),
    sql("odd views", "CREATE VIEW odd.v2 AS SELECT `Große Spalte` AS g, n FROM odd.v1 WHERE n > 1"),
    select("odd views", "SELECT * FROM odd.v2"),
    sql("odd views", "DESCRIBE TABLE EXTENDED odd.v1"),
    sql("odd views", "SHOW CREATE TABLE odd.v1"),
    sql("odd views", "ALTER VIEW odd.v1 UNSET TBLPROPERTIES ('x')"),
    sql("odd views", "CREATE VIEW odd.v1 AS SELECT 1"),
    sql("odd views", "CREATE VIEW IF NOT EXISTS odd.v1 AS SELECT 1"),
    sql("odd views", "DROP TABLE odd.v1"),
    sql("odd views", "DROP VIEW odd.v1"),
    select("odd views", "SELECT * FROM odd.v2"),
    sql("odd views", "ALTER DATABASE odd SET DBPROPERTIES ('ü'='😀 ''', 'empty'='')"),
    sql("odd views", "DESCRIBE DATABASE EXTENDED odd"),
    sql("odd views", "DROP DATABASE odd RESTRICT"),
    sql("odd views", "DROP DATABASE odd CASCADE"),
    call("odd views", "files that are left of odd", lambda spark: files_left(spark)),
)

ODD_STEPS: tuple[Step, ...] = (*ODD_PARTITION_VALUES, *ODD_TABLES)
