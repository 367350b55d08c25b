"""``hms-cache demo``: a metastore, a PySpark session that works through it, and what was asked of it."""
