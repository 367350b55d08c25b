"""All bars, beside Hive 4.0.1 and its CachedStore, on one MariaDB server, in one run.

`run.py` runs the parts one after the other; each adds measured cells, bars and notes to the `Results`, which are
written after every part, so that a part that fails or is out of time leaves the others' results.
"""
