"""Hive's locks."""
