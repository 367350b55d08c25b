"""``hms-cache demo``: starts a metastore, runs a PySpark session on it, and shows the calls that it received."""
