"""Catalogs and databases in the database."""
