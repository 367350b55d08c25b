"""Reads of each entity, answered from memory or from the store."""
