"""Reads and writes of catalogs and databases."""
