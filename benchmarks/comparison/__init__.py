"""All bars, compared with Hive 4.0.1 and its CachedStore, on one MariaDB server, in one run.

`run.py` runs the parts one after the other. Each adds cells, bars and notes to the `Results`, which are written after
every part. So if a part fails or exceeds its time, the other results remain.
"""
