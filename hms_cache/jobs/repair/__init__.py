"""The job ``repair``: partitions as the directories of their tables say, as MSCK REPAIR of Hive finds them."""
