"""Servers of an earlier version beside this one, or before and after it."""
