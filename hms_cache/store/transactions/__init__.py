"""Transactions, write ids, locks and the compaction queue, on the tables of Hive's schema."""
