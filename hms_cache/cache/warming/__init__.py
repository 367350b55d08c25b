"""Loads: on demand, ahead of reads, and again after changes."""
