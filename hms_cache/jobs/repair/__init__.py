"""The job ``repair``: makes partitions match the directories of their tables, like Hive's MSCK REPAIR."""
