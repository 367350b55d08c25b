"""Servers of the tests that need not repeat the imports of each server."""
