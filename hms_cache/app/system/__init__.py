"""Limits of the operating system and the C library: open files, memory."""
