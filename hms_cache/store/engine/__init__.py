"""Connections, dialects, drivers, units of work, sequences: how the store talks to its database."""
