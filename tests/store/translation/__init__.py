"""Tests of the translation of metadata as Hive 4 does it."""
