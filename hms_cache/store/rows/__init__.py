"""Rows that several entities share: storage descriptors, tables, databases, constraints, statistics."""
