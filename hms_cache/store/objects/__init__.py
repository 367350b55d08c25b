"""Constraints and functions in the database."""
