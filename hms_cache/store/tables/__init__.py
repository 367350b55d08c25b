"""Writes and reads of tables: creation, changes, moves, drops."""
