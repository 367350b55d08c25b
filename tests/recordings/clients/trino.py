"""The statements for Trino, with its connectors for Hive, Iceberg and Delta Lake."""

from __future__ import annotations

from pathlib import Path

from tests.clients.trino.coordinator import Coordinator, QueryFailed

_HIVE = (
    "CREATE SCHEMA hive.s",
    "CREATE SCHEMA hive.s",
    "SHOW SCHEMAS FROM hive",
    "CREATE TABLE hive.s.plain (a bigint COMMENT 'the a', b varchar) COMMENT 'plain' WITH (format = 'PARQUET')",
    "INSERT INTO hive.s.plain VALUES (1, 'x'), (2, NULL)",
    "SELECT * FROM hive.s.plain",
    "ANALYZE hive.s.plain",
    "SHOW STATS FOR hive.s.plain",
    "SELECT count(*), max(a) FROM hive.s.plain",
    "CREATE TABLE hive.s.part (a bigint, d date, p varchar, q integer) WITH (partitioned_by = ARRAY['p', 'q'])",
    "INSERT INTO hive.s.part VALUES (1, DATE '2024-01-05', 'x', 1), (2, NULL, 'x', 2), (3, NULL, 'y', 1)",
    "INSERT INTO hive.s.part VALUES (4, NULL, 'x', 1), (5, NULL, NULL, NULL)",
    "SELECT a FROM hive.s.part WHERE p = 'x' AND q > 1",
    "SELECT count(*) FROM hive.s.part WHERE p IN ('x', 'y')",
    "SELECT count(*) FROM hive.s.part WHERE p IS NULL",
    'SELECT * FROM hive.s."part$partitions"',
    "ANALYZE hive.s.part",
    "ANALYZE hive.s.part WITH (partitions = ARRAY[ARRAY['x', '1']], columns = ARRAY['a'])",
    "SHOW STATS FOR hive.s.part",
    "SHOW STATS FOR (SELECT * FROM hive.s.part WHERE p = 'x')",
    "DELETE FROM hive.s.part WHERE p = 'y'",
    "CALL hive.system.create_empty_partition('s', 'part', ARRAY['p', 'q'], ARRAY['z', '9'])",
    "CALL hive.system.unregister_partition('s', 'part', ARRAY['p', 'q'], ARRAY['z', '9'])",
    "CALL hive.system.sync_partition_metadata('s', 'part', 'FULL')",
    "CALL hive.system.drop_stats('s', 'part', ARRAY[ARRAY['x', '1']])",
    "ALTER TABLE hive.s.part ADD COLUMN more varchar",
    "ALTER TABLE hive.s.part RENAME COLUMN a TO aa",
    "COMMENT ON COLUMN hive.s.part.aa IS 'renamed'",
    "COMMENT ON TABLE hive.s.part IS 'of two keys'",
    "ALTER TABLE hive.s.part RENAME TO hive.s.part2",
    "SELECT * FROM hive.s.part",
    "SHOW CREATE TABLE hive.s.part2",
    "CREATE TABLE hive.s.made WITH (bucketed_by = ARRAY['a'], bucket_count = 2) AS SELECT * FROM hive.s.plain",
    "UPDATE hive.s.plain SET b = 'u' WHERE a = 1",
    "TRUNCATE TABLE hive.s.plain",
    "CREATE VIEW hive.s.v AS SELECT b FROM hive.s.plain",
    "CREATE OR REPLACE VIEW hive.s.v AS SELECT a FROM hive.s.plain",
    "SELECT * FROM hive.s.v",
    "CREATE FUNCTION hive.s.twice(x bigint) RETURNS bigint RETURN x * 2",
    "SELECT hive.s.twice(21)",
    "SHOW FUNCTIONS FROM hive.s",
    "DROP FUNCTION hive.s.twice(bigint)",
    "SHOW TABLES FROM hive.s",
    "SELECT table_name, column_name FROM hive.information_schema.columns WHERE table_schema = 's'",
)
_ACID = (
    "CREATE TABLE hive.s.acid (a bigint, b varchar, p varchar)"
    " WITH (format = 'ORC', transactional = true, partitioned_by = ARRAY['p'])",
    "INSERT INTO hive.s.acid VALUES (1, 'x', 'p1'), (2, 'y', 'p1'), (3, 'z', 'p2')",
    "DELETE FROM hive.s.acid WHERE a = 2",
    "UPDATE hive.s.acid SET b = 'q' WHERE a = 3",
    "MERGE INTO hive.s.acid t USING (VALUES (1, 'm'), (9, 'n')) AS s(a, b) ON t.a = s.a"
    " WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b, 'p3')",
    "INSERT INTO hive.s.acid SELECT 1 / (a - 1), 'x', 'p1' FROM hive.s.acid",
    "SELECT * FROM hive.s.acid ORDER BY a",
    "CREATE TABLE hive.s.counted (a bigint) WITH (transactional = true)",
    "INSERT INTO hive.s.counted VALUES 1, 2, 2",
    "ANALYZE hive.s.counted",
    "SHOW STATS FOR hive.s.counted",
    "INSERT INTO hive.s.counted VALUES 7",
    "DELETE FROM hive.s.acid",
    "DROP TABLE hive.s.acid",
    "DROP TABLE hive.s.counted",
)
_ICEBERG = (
    "CREATE TABLE iceberg.s.t (a bigint, b varchar, d date) WITH (partitioning = ARRAY['b', 'month(d)'])",
    "INSERT INTO iceberg.s.t VALUES (1, 'x', DATE '2024-01-05'), (2, 'y', NULL)",
    "UPDATE iceberg.s.t SET d = DATE '2025-01-01' WHERE a = 1",
    "DELETE FROM iceberg.s.t WHERE a = 2",
    "MERGE INTO iceberg.s.t t USING (VALUES (1, 'm'), (9, 'n')) AS s(a, b) ON t.a = s.a"
    " WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b, NULL)",
    "ANALYZE iceberg.s.t",
    "SHOW STATS FOR iceberg.s.t",
    "SELECT count(*), max(a) FROM iceberg.s.t",
    "ALTER TABLE iceberg.s.t EXECUTE optimize",
    "ALTER TABLE iceberg.s.t ADD COLUMN e varchar COMMENT 'more'",
    "ALTER TABLE iceberg.s.t RENAME TO iceberg.s.t2",
    "CREATE MATERIALIZED VIEW iceberg.s.mv AS SELECT b, count(*) c FROM iceberg.s.t2 GROUP BY b",
    "REFRESH MATERIALIZED VIEW iceberg.s.mv",
    "SELECT * FROM iceberg.s.mv",
    "DROP MATERIALIZED VIEW iceberg.s.mv",
    "CREATE VIEW iceberg.s.iv AS SELECT a FROM iceberg.s.t2",
    "SHOW TABLES FROM iceberg.s",
    "DROP VIEW iceberg.s.iv",
    "DROP TABLE iceberg.s.t2",
)
_DELTA = (
    "CREATE TABLE delta.s.d (a bigint, b varchar) WITH (partitioned_by = ARRAY['b'])",
    "INSERT INTO delta.s.d VALUES (1, 'x')",
    "UPDATE delta.s.d SET a = 2",
    "ALTER TABLE delta.s.d RENAME TO delta.s.d2",
    "DROP TABLE delta.s.d2",
)
_ROLES = (
    "SET ROLE admin IN secured",
    "CREATE ROLE tester IN secured",
    "GRANT tester TO USER bob IN secured",
    "GRANT SELECT ON secured.s.plain TO ROLE tester WITH GRANT OPTION",
    "GRANT INSERT ON secured.s.plain TO USER bob",
    "SHOW GRANTS ON TABLE secured.s.plain",
    "SELECT * FROM secured.information_schema.table_privileges",
    "SHOW ROLE GRANTS FROM secured",
    "REVOKE SELECT ON secured.s.plain FROM ROLE tester",
    "REVOKE tester FROM USER bob IN secured",
    "DROP ROLE tester IN secured",
)
_LAST = (
    "DROP VIEW hive.s.v",
    "DROP TABLE hive.s.made",
    "DROP TABLE hive.s.plain",
    "DROP SCHEMA hive.s",
    "DROP SCHEMA hive.s CASCADE",
)


def run(uri: str, root: Path, directory: Path) -> None:
    """Tables of each connector, and roles."""
    coordinator = Coordinator(directory, uri)
    try:
        coordinator.start()
        session = coordinator.session()
        for statement in (*_HIVE, *_ACID, *_ICEBERG, *_DELTA, *_ROLES, *_LAST):
            try:
                answer = str(session.execute(statement).rows[:3])
            except QueryFailed as error:
                answer = f"{error.name}: {error.message}"
            print(statement[:60], "->", answer[:120])
    finally:
        coordinator.stop()
