"""Creates tables with thousands of partitions in seconds by copying one table's partitions within MariaDB.

Hive's metastore takes minutes to load a catalog of 100,000 partitions. The copies differ from their source only in ids,
table and location. No metastore may run meanwhile, since the notification log does not contain these changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pymysql
from sqlalchemy.engine import make_url

_SEQUENCES = {
    "org.apache.hadoop.hive.metastore.model.MPartition": ("PARTITIONS", "PART_ID"),
    "org.apache.hadoop.hive.metastore.model.MStorageDescriptor": ("SDS", "SD_ID"),
    "org.apache.hadoop.hive.metastore.model.MSerDeInfo": ("SERDES", "SERDE_ID"),
}

_COPIES = (
    """INSERT INTO SERDES (SERDE_ID, NAME, SLIB, DESCRIPTION, SERIALIZER_CLASS, DESERIALIZER_CLASS, SERDE_TYPE)
       SELECT r.SERDE_ID + c.SHIFT, r.NAME, r.SLIB, r.DESCRIPTION, r.SERIALIZER_CLASS, r.DESERIALIZER_CLASS,
              r.SERDE_TYPE FROM bench_source s JOIN SERDES r USING (SERDE_ID) CROSS JOIN bench_copies c""",
    """INSERT INTO SERDE_PARAMS (SERDE_ID, PARAM_KEY, PARAM_VALUE)
       SELECT r.SERDE_ID + c.SHIFT, r.PARAM_KEY, r.PARAM_VALUE
       FROM bench_source s JOIN SERDE_PARAMS r USING (SERDE_ID) CROSS JOIN bench_copies c""",
    """INSERT INTO SDS (SD_ID, CD_ID, INPUT_FORMAT, IS_COMPRESSED, IS_STOREDASSUBDIRECTORIES, LOCATION, NUM_BUCKETS,
                        OUTPUT_FORMAT, SERDE_ID)
       SELECT r.SD_ID + c.SHIFT, c.CD_ID, r.INPUT_FORMAT, r.IS_COMPRESSED, r.IS_STOREDASSUBDIRECTORIES,
              REPLACE(r.LOCATION, c.SOURCE_PATH, c.TARGET_PATH), r.NUM_BUCKETS, r.OUTPUT_FORMAT, r.SERDE_ID + c.SHIFT
       FROM bench_source s JOIN SDS r USING (SD_ID) CROSS JOIN bench_copies c""",
    """INSERT INTO PARTITIONS (PART_ID, CREATE_TIME, LAST_ACCESS_TIME, PART_NAME, SD_ID, TBL_ID, WRITE_ID)
       SELECT r.PART_ID + c.SHIFT, r.CREATE_TIME, r.LAST_ACCESS_TIME, r.PART_NAME, r.SD_ID + c.SHIFT, c.TBL_ID,
              r.WRITE_ID FROM bench_source s JOIN PARTITIONS r USING (PART_ID) CROSS JOIN bench_copies c""",
    """INSERT INTO PARTITION_PARAMS (PART_ID, PARAM_KEY, PARAM_VALUE)
       SELECT r.PART_ID + c.SHIFT, r.PARAM_KEY, r.PARAM_VALUE
       FROM bench_source s JOIN PARTITION_PARAMS r USING (PART_ID) CROSS JOIN bench_copies c""",
    """INSERT INTO PARTITION_KEY_VALS (PART_ID, PART_KEY_VAL, INTEGER_IDX)
       SELECT r.PART_ID + c.SHIFT, r.PART_KEY_VAL, r.INTEGER_IDX
       FROM bench_source s JOIN PARTITION_KEY_VALS r USING (PART_ID) CROSS JOIN bench_copies c""",
)


def copy_partitions(url: str, database: str, source: str, targets: Sequence[str]) -> None:
    """Gives each of the tables `targets`, which exist and have none, the partitions of the table `source`."""
    parsed = make_url(url)
    connection = pymysql.connect(
        host=parsed.host or "127.0.0.1",
        port=parsed.port or 3306,
        user=parsed.username or "root",
        password=str(parsed.password or ""),
        database=parsed.database,
    )
    with connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION foreign_key_checks = 0")
        source_id, _, source_path = _table(cursor, database, source)
        cursor.execute(
            "CREATE TEMPORARY TABLE bench_source (PART_ID BIGINT PRIMARY KEY, SD_ID BIGINT, SERDE_ID BIGINT, "
            "KEY (SD_ID), KEY (SERDE_ID)) SELECT p.PART_ID, p.SD_ID, d.SERDE_ID FROM PARTITIONS p "
            "JOIN SDS d ON d.SD_ID = p.SD_ID WHERE p.TBL_ID = %s",
            (source_id,),
        )
        cursor.execute("SELECT MIN(LEAST(PART_ID, SD_ID, SERDE_ID)) FROM bench_source")
        least = int(cursor.fetchone()[0])
        highest = max(_highest(cursor, table, column) for table, column in _SEQUENCES.values())
        cursor.execute(
            "CREATE TEMPORARY TABLE bench_copies (TBL_ID BIGINT PRIMARY KEY, CD_ID BIGINT, SHIFT BIGINT, "
            "SOURCE_PATH VARCHAR(500), TARGET_PATH VARCHAR(500))"
        )
        cursor.execute("SELECT MAX(GREATEST(PART_ID, SD_ID, SERDE_ID)) FROM bench_source")
        width = int(cursor.fetchone()[0]) - least + 1
        for number, target in enumerate(targets):
            table_id, columns_id, path = _table(cursor, database, target)
            shift = highest - least + 1 + number * width
            cursor.execute(
                "INSERT INTO bench_copies VALUES (%s, %s, %s, %s, %s)",
                (table_id, columns_id, shift, f"{source_path}/", f"{path}/"),
            )
        for statement in _COPIES:
            cursor.execute(statement)
        for name, (table, column) in _SEQUENCES.items():
            cursor.execute(
                "UPDATE SEQUENCE_TABLE SET NEXT_VAL = GREATEST(NEXT_VAL, %s) WHERE SEQUENCE_NAME = %s",
                (_highest(cursor, table, column) + 1, name),
            )
        connection.commit()
        cursor.execute("ANALYZE TABLE PARTITIONS, SDS, SERDES, SERDE_PARAMS, PARTITION_PARAMS, PARTITION_KEY_VALS")


def multiply_partitions(
    url: str, database: str, table: str, partitions: int, hours: int, figures: Sequence[str] = ()
) -> None:
    """Copies the first partitions of the table `table`, numbered from 0 as `dt=day-NNNNNN/hour=N`, until it has
    `partitions`.

    The copies have names, values and locations of their own, and different values (numbers of up to ten digits) of
    these parameters, if the first partition has them.
    """
    parsed = make_url(url)
    connection = pymysql.connect(
        host=parsed.host or "127.0.0.1",
        port=parsed.port or 3306,
        user=parsed.username or "root",
        password=str(parsed.password or ""),
        database=parsed.database,
    )
    with connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION foreign_key_checks = 0")
        table_id, _, path = _table(cursor, database, table)
        cursor.execute(
            "SELECT MIN(p.PART_ID), MIN(p.SD_ID), MIN(d.SERDE_ID), COUNT(*) FROM PARTITIONS p "
            "JOIN SDS d ON d.SD_ID = p.SD_ID WHERE p.TBL_ID = %s",
            (table_id,),
        )
        part_id, sd_id, serde_id, count = cursor.fetchone()
        highest = {name: _highest(cursor, name, column) for name, column in _SEQUENCES.values()}
        number = f"n.seq + {count}"
        day = f"CONCAT('day-', LPAD(FLOOR(({number}) / {hours}), 6, '0'))"
        hour = f"(({number}) % {hours})"
        numbers = f"seq_0_to_{partitions - count - 1} n"
        own = ", ".join(f"'{figure}'" for figure in ("", *figures))
        name = f"CONCAT('dt=', {day}, '/hour=', {hour})"
        new = {name: f"n.seq + {value + 1}" for name, value in highest.items()}
        for statement in (
            f"INSERT INTO SERDES (SERDE_ID, NAME, SLIB) SELECT {new['SERDES']}, r.NAME, r.SLIB "
            f"FROM SERDES r JOIN {numbers} WHERE r.SERDE_ID = {serde_id}",
            f"INSERT INTO SDS (SD_ID, CD_ID, INPUT_FORMAT, IS_COMPRESSED, IS_STOREDASSUBDIRECTORIES, LOCATION, "
            f"NUM_BUCKETS, OUTPUT_FORMAT, SERDE_ID) SELECT {new['SDS']}, r.CD_ID, r.INPUT_FORMAT, r.IS_COMPRESSED, "
            f"r.IS_STOREDASSUBDIRECTORIES, CONCAT('{path}/', {name}), r.NUM_BUCKETS, r.OUTPUT_FORMAT, {new['SERDES']} "
            f"FROM SDS r JOIN {numbers} WHERE r.SD_ID = {sd_id}",
            f"INSERT INTO PARTITIONS (PART_ID, CREATE_TIME, LAST_ACCESS_TIME, PART_NAME, SD_ID, TBL_ID, WRITE_ID) "
            f"SELECT {new['PARTITIONS']}, r.CREATE_TIME, r.LAST_ACCESS_TIME, {name}, {new['SDS']}, r.TBL_ID, "
            f"r.WRITE_ID FROM PARTITIONS r JOIN {numbers} WHERE r.PART_ID = {part_id}",
            f"INSERT INTO PARTITION_PARAMS (PART_ID, PARAM_KEY, PARAM_VALUE) SELECT {new['PARTITIONS']}, r.PARAM_KEY, "
            f"IF(r.PARAM_KEY IN ({own}), CRC32(CONCAT(r.PARAM_KEY, n.seq)), r.PARAM_VALUE) "
            f"FROM PARTITION_PARAMS r JOIN {numbers} WHERE r.PART_ID = {part_id}",
            f"INSERT INTO PARTITION_KEY_VALS (PART_ID, PART_KEY_VAL, INTEGER_IDX) "
            f"SELECT {new['PARTITIONS']}, {day}, 0 FROM {numbers}",
            f"INSERT INTO PARTITION_KEY_VALS (PART_ID, PART_KEY_VAL, INTEGER_IDX) "
            f"SELECT {new['PARTITIONS']}, {hour}, 1 FROM {numbers}",
            f"UPDATE SERDES r, SERDES o SET r.SLIB = o.SLIB WHERE o.SERDE_ID = {serde_id} "
            f"AND r.SERDE_ID > {highest['SERDES']}",
        ):
            cursor.execute(statement)
        for sequence, (name, column) in _SEQUENCES.items():
            cursor.execute(
                "UPDATE SEQUENCE_TABLE SET NEXT_VAL = GREATEST(NEXT_VAL, %s) WHERE SEQUENCE_NAME = %s",
                (_highest(cursor, name, column) + 1, sequence),
            )
        connection.commit()
        cursor.execute("ANALYZE TABLE PARTITIONS, SDS, SERDES, SERDE_PARAMS, PARTITION_PARAMS, PARTITION_KEY_VALS")


def multiply_tables(url: str, database: str, table: str, tables: int) -> None:
    """Copies the table `table`, which is not partitioned, this many times as `table_NNNNNN`. The copies share its
    columns."""
    parsed = make_url(url)
    connection = pymysql.connect(
        host=parsed.host or "127.0.0.1",
        port=parsed.port or 3306,
        user=parsed.username or "root",
        password=str(parsed.password or ""),
        database=parsed.database,
    )
    sequences = {
        "org.apache.hadoop.hive.metastore.model.MTable": ("TBLS", "TBL_ID"),
        **{name: value for name, value in _SEQUENCES.items() if value[0] != "PARTITIONS"},
    }
    with connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION foreign_key_checks = 0")
        table_id, _, path = _table(cursor, database, table)
        cursor.execute(
            "SELECT t.SD_ID, s.SERDE_ID FROM TBLS t JOIN SDS s ON s.SD_ID = t.SD_ID WHERE t.TBL_ID = %s", (table_id,)
        )
        sd_id, serde_id = cursor.fetchone()
        new = {name: f"n.seq + {_highest(cursor, name, column) + 1}" for name, column in sequences.values()}
        numbers = f"seq_0_to_{tables - 1} n"
        name = "CONCAT('table_', LPAD(n.seq, 6, '0'))"
        for source, key, value, changed in (
            ("SERDES", "SERDE_ID", serde_id, {"SERDE_ID": new["SERDES"]}),
            ("SERDE_PARAMS", "SERDE_ID", serde_id, {"SERDE_ID": new["SERDES"]}),
            (
                "SDS",
                "SD_ID",
                sd_id,
                {"SD_ID": new["SDS"], "SERDE_ID": new["SERDES"], "LOCATION": f"CONCAT('{path}/', {name})"},
            ),
            ("TBLS", "TBL_ID", table_id, {"TBL_ID": new["TBLS"], "SD_ID": new["SDS"], "TBL_NAME": name}),
            ("TABLE_PARAMS", "TBL_ID", table_id, {"TBL_ID": new["TBLS"]}),
        ):
            cursor.execute(f"SHOW COLUMNS FROM {source}")
            columns = [row[0] for row in cursor.fetchall()]
            values = [changed.get(column, f"r.`{column}`") for column in columns]
            listed = ", ".join(f"`{column}`" for column in columns)
            cursor.execute(
                f"INSERT INTO {source} ({listed}) SELECT {', '.join(values)} FROM {source} r JOIN {numbers} "
                f"WHERE r.{key} = {value}"
            )
        for sequence, (source, column) in sequences.items():
            cursor.execute(
                "UPDATE SEQUENCE_TABLE SET NEXT_VAL = GREATEST(NEXT_VAL, %s) WHERE SEQUENCE_NAME = %s",
                (_highest(cursor, source, column) + 1, sequence),
            )
        connection.commit()
        cursor.execute("ANALYZE TABLE TBLS, SDS, SERDES, SERDE_PARAMS, TABLE_PARAMS")


def _table(cursor: Any, database: str, name: str) -> tuple[int, int, str]:
    cursor.execute(
        "SELECT t.TBL_ID, s.CD_ID, s.LOCATION FROM TBLS t JOIN DBS d ON d.DB_ID = t.DB_ID "
        "JOIN SDS s ON s.SD_ID = t.SD_ID WHERE d.NAME = %s AND t.TBL_NAME = %s",
        (database, name),
    )
    table_id, columns_id, path = cursor.fetchone()
    return int(table_id), int(columns_id), str(path)


def _highest(cursor: Any, table: str, column: str) -> int:
    cursor.execute(f"SELECT COALESCE(MAX({column}), 0) FROM {table}")
    return int(cursor.fetchone()[0])
