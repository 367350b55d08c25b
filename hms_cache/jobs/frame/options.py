"""Options that several jobs have in common."""

from __future__ import annotations

from hms_cache.jobs.frame.job import Option

METASTORE = Option(
    "metastore",
    "Metastore, thrift://host:port; several, separated by commas, are tried in turn.",
    metavar="URI",
)
AUTH = Option(
    "auth",
    "How to authenticate with the metastore: none; kerberos server=hive/_HOST@REALM; ldap user=NAME "
    "password_file=FILE; token; or jwt file=FILE. Default: Spark's settings of Hive's client.",
    metavar="TEXT",
)
DATABASE = Option("database", "Metastore database to read directly; SQLAlchemy or JDBC form.", metavar="URL")
TABLES = Option(
    "tables",
    "Tables to work on, as [catalog.]database.table; * stands for any text. May be given several times; default: all.",
    multiple=True,
    metavar="PATTERN",
)
WAREHOUSE = Option("warehouse", "Directory of managed tables: a path or a URI.", metavar="DIR")
REQUESTS_PER_S = Option(
    "requests_per_s", "Maximum requests a second to one store (a bucket); 0: no limit.", kind=int, default=0, minimum=0
)
