"""hms-cache: a drop-in Hive Metastore whose cache is never wrong."""
