"""Partitions in the database: selection, additions, alterations, drops."""
