"""The job ``statistics``: column statistics of tables and partitions, computed by Spark, written to the metastore."""
