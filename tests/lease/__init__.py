"""Exact reads by lease."""
