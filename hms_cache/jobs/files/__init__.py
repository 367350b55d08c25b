"""The job ``files``: compares the directories of tables and partitions with the catalog."""
