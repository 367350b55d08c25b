"""The operations of Iceberg's Java library: in Spark, and its HiveCatalog by itself."""

from __future__ import annotations

from pathlib import Path

from tests.clients.spark.session import SparkProcess, remote
from tests.protocol.releases import ICEBERG_FOR_SPARK, jar

_STATEMENTS = (
    "CREATE NAMESPACE ice.shop COMMENT 'all orders'",
    "CREATE NAMESPACE ice.shop",
    "SHOW NAMESPACES IN ice",
    "ALTER NAMESPACE ice.shop SET PROPERTIES ('team'='data')",
    "DESCRIBE NAMESPACE EXTENDED ice.shop",
    "CREATE TABLE ice.shop.orders (id BIGINT, country STRING) USING iceberg PARTITIONED BY (country)",
    "CREATE TABLE ice.shop.orders (id BIGINT) USING iceberg",
    "INSERT INTO ice.shop.orders VALUES (1, 'nl'), (2, 'de')",
    "INSERT INTO ice.shop.orders VALUES (3, 'nl')",
    "SELECT * FROM ice.shop.orders WHERE country = 'nl'",
    "SELECT count(*), max(id) FROM ice.shop.orders",
    "ALTER TABLE ice.shop.orders ADD COLUMN note STRING",
    "ALTER TABLE ice.shop.orders RENAME COLUMN id TO number",
    "ALTER TABLE ice.shop.orders ADD PARTITION FIELD bucket(4, number)",
    "ALTER TABLE ice.shop.orders SET TBLPROPERTIES ('colour'='red')",
    "ALTER TABLE ice.shop.orders UNSET TBLPROPERTIES ('colour')",
    "UPDATE ice.shop.orders SET note = 'm' WHERE number = 1",
    "DELETE FROM ice.shop.orders WHERE number = 2",
    "MERGE INTO ice.shop.orders t USING (SELECT 3L AS k, 'x' AS n UNION ALL SELECT 9L, 'y') s ON t.number = s.k"
    " WHEN MATCHED THEN UPDATE SET note = s.n WHEN NOT MATCHED THEN INSERT (number, note) VALUES (s.k, s.n)",
    "INSERT OVERWRITE ice.shop.orders SELECT number + 10, country, 'n' FROM ice.shop.orders WHERE number < 3",
    "ANALYZE TABLE ice.shop.orders COMPUTE STATISTICS FOR ALL COLUMNS",
    "CALL ice.system.compute_table_stats('shop.orders')",
    "CALL ice.system.rewrite_data_files('shop.orders')",
    "CALL ice.system.expire_snapshots(table => 'shop.orders', retain_last => 1)",
    "CREATE TABLE ice.shop.made USING iceberg AS SELECT * FROM ice.shop.orders",
    "CREATE OR REPLACE TABLE ice.shop.made USING iceberg AS SELECT number FROM ice.shop.orders",
    "ALTER TABLE ice.shop.orders RENAME TO ice.shop.sales",
    "SELECT * FROM ice.shop.orders",
    "CREATE VIEW ice.shop.dutch AS SELECT number FROM ice.shop.sales WHERE country = 'nl'",
    "SELECT * FROM ice.shop.dutch",
    "CREATE OR REPLACE VIEW ice.shop.dutch AS SELECT country FROM ice.shop.sales",
    "SHOW TABLES IN ice.shop",
    "SHOW VIEWS IN ice.shop",
    "CREATE TABLE ice.shop.plain (id BIGINT) USING iceberg TBLPROPERTIES ('engine.hive.lock-enabled'='false')",
    "INSERT INTO ice.shop.plain VALUES (1)",
    "DELETE FROM ice.shop.plain WHERE id = 1",
    "DROP NAMESPACE ice.shop",
)
_OF_THE_CATALOG = """
jvm = spark._jvm
made = jvm.org.apache.iceberg.hive.HiveCatalog()
made.setConf(spark._jsc.hadoopConfiguration())
made.initialize("ice", {{"uri": {uri!r}, "warehouse": {warehouse!r}, "clients": "2"}})
identifier = jvm.org.apache.iceberg.catalog.TableIdentifier.parse
table = made.loadTable(identifier("shop.plain"))
table.updateProperties().set("by", "catalog").commit()
stale = made.loadTable(identifier("shop.plain"))
table.newAppend().commit()
other = made.loadTable(identifier("shop.plain"))
base = other.operations().current()
builder = jvm.org.apache.iceberg.TableMetadata.buildFrom(base).setProperties({{"a": "b"}}).build()
other.operations().commit(base, builder)
outcome = "committed"
try:
    stale_base = stale.operations().current()
    changed = jvm.org.apache.iceberg.TableMetadata.buildFrom(stale_base).setProperties({{"c": "d"}}).build()
    stale.operations().commit(stale_base, changed)
except Exception as error:
    outcome = str(error)[:200]
location = made.loadTable(identifier("shop.plain")).operations().current().metadataFileLocation()
made.dropTable(identifier("shop.plain"), False)
made.registerTable(identifier("shop.registered"), location)
made.tableExists(identifier("shop.plain"))
made.close()
result = outcome
"""
_LAST = (
    "DROP VIEW ice.shop.dutch",
    "DROP TABLE ice.shop.registered",
    "DROP TABLE ice.shop.made PURGE",
    "DROP TABLE ice.shop.sales PURGE",
    "DROP TABLE ice.shop.sales",
    "DROP NAMESPACE ice.shop",
    "SHOW NAMESPACES IN ice",
)


def run(uri: str, root: Path, directory: Path) -> None:
    """Tables with locks and without, views, a commit on an old state."""
    directory.mkdir(parents=True)
    process = SparkProcess(directory, (jar(ICEBERG_FOR_SPARK),))
    warehouse = f"file://{root}/wh"
    try:
        process.session(
            remote(directory, uri)
            | {
                "spark.sql.warehouse.dir": f"file:{root}/wh",
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.ice.type": "hive",
                "spark.sql.catalog.ice.uri": uri,
                "spark.sql.catalog.ice.warehouse": warehouse,
                "spark.sql.catalog.ice.cache-enabled": "false",
            }
        )
        _execute(process, _STATEMENTS)
        print("by the catalog:", process.python(_OF_THE_CATALOG.format(uri=uri, warehouse=warehouse)))
        _execute(process, _LAST)
    finally:
        process.close()


def _execute(process: SparkProcess, statements: tuple[str, ...]) -> None:
    for statement in statements:
        answer = process._ask(do="sql", statement=statement)
        print(statement[:60], "->", str(answer.get("error", "done"))[:120])
