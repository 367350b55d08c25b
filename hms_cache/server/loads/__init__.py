"""Whose calls keep the server busy, and with which tables."""
