"""Servers on different nodes of a real Galera cluster."""
