"""Reads the rows of files, with Spark or in its workers."""
