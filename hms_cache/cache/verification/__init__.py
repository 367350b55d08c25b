"""Comparison of memory with the database, and rules that always hold."""
