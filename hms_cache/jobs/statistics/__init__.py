"""The job ``statistics``: computes column statistics of tables and partitions with Spark and writes them to the
metastore."""
