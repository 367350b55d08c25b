"""Sessions of Spark 3.5 with table formats that store more metadata than a metastore does."""

from __future__ import annotations

SPARK = "3.5.5"
JARS = (
    "io.delta:delta-spark_2.12:3.2.1",
    "io.delta:delta-storage:3.2.1",
    "org.apache.hudi:hudi-spark3.5-bundle_2.12:0.15.0",
    "org.apache.paimon:paimon-spark-3.5:0.9.0",
)
COMMON = {"spark.sql.codegen.factoryMode": "FALLBACK"}
DELTA = COMMON | {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
}
HUDI = COMMON | {
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    # Spark's interpreter of plans cannot sort what Hudi writes.
    "spark.sql.codegen.wholeStage": "true",
}
PAIMON = COMMON | {
    "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
    "spark.sql.catalog.paimon.metastore": "hive",
    "spark.sql.catalog.paimon.lock.enabled": "true",
}
