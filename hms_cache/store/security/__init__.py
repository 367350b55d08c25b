"""Privileges, roles and tokens in the database."""
