"""Connections, dialects, drivers, units of work and sequences: access to the database."""
