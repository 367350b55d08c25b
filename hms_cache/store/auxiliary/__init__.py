"""Rarely used objects: connectors, types, scheduled queries, the schema registry, stored procedures."""
