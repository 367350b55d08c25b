"""Rows of a table in a catalog other than the default one, through Hive's classes.

Spark's own Hive client asks for partitions without a catalog. Here it is only asked for the table; the partitions
returned by the metastore are put into the plan (`HiveTableRelation` of Spark 4.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from hms_cache.jobs.sources.metastore_reader import in_catalog
from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import values_of_name
from hms_cache.thrift_gen.hive_metastore.ttypes import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows_of_partitions(
    spark: SparkSession, table: Table, name: TableName, partitions: Mapping[str, str] | None
) -> DataFrame:
    """The columns and partition keys of a table, as ``spark.table`` returns them for the default catalog.

    :param partitions: locations by name, of the partitions to read; all are read in the table's own format. None: the
      table has no partition keys. Raises Py4JJavaError.
    """
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    catalog = session.sharedState().externalCatalog()
    metadata = catalog.getTable(in_catalog(name.catalog, name.database), name.table)
    relation = jvm.org.apache.spark.sql.execution.command.DDLUtils.readHiveTable(metadata)
    if partitions is not None:
        hive_partitions = jvm.java.util.ArrayList()
        keys = [key.name.lower() for key in table.partitionKeys]
        for partition, location in partitions.items():
            values = dict(zip(keys, values_of_name(partition), strict=True))
            hive_partitions.add(_partition(jvm, metadata.storage(), values, location))
        known = jvm.scala.Option.apply(jvm.PythonUtils.toSeq(hive_partitions))
        relation = relation.copy(metadata, relation.dataCols(), relation.partitionCols(), relation.tableStats(), known)
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, relation), spark)


def _partition(jvm: Any, storage: Any, values: Mapping[str, str], location: str) -> Any:
    place = jvm.scala.Option.apply(jvm.org.apache.hadoop.fs.Path(location).toUri())
    relation_storage = storage.copy(
        *(place, storage.inputFormat(), storage.outputFormat(), storage.serde(), storage.compressed()),
        storage.properties(),
    )
    key_values, nothing = jvm.java.util.HashMap(), jvm.java.util.HashMap()
    for key, value in values.items():
        key_values.put(key, value)
    to_map = jvm.PythonUtils.toScalaMap
    return jvm.org.apache.spark.sql.catalyst.catalog.CatalogTablePartition(
        *(to_map(key_values), relation_storage, to_map(nothing), 0, -1, jvm.scala.Option.empty())
    )
