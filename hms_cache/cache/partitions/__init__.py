"""The partitions of a table in memory."""
