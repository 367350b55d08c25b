"""Definition of the job ``history`` for the command line."""

from __future__ import annotations

from hms_cache.jobs.frame import AUTH, DATABASE, METASTORE, Job, Option

JOB = Job(
    name="history",
    summary="Store the notification log as a table by day: who changed what, and when.",
    description=(
        "Continues after the last event of the previous run. Each event is stored exactly once, even if runs are "
        "interrupted. The files of past days are merged. Give either --metastore or --database."
    ),
    main="hms_cache.jobs.history.main:main",
    options=(
        METASTORE,
        AUTH,
        DATABASE,
        Option(
            "output",
            "Directory of the history, a path or a URI that Spark can write; for Iceberg the table.",
            required=True,
            metavar="DIR",
        ),
        Option("format", "Format of the history.", default="parquet", choices=("parquet", "iceberg")),
        Option(
            "checkpoint",
            "Directory for the progress of an Iceberg table; for Parquet, it is in the output.",
            metavar="DIR",
        ),
        Option(
            "start",
            "Where the first run begins: earliest, latest, or an event id (after this event).",
            default="earliest",
        ),
        Option(
            "audit",
            "Audit logs of the servers, in JSON: files, directories or Spark's path patterns. The caller from the log "
            "is stored with each event.",
            multiple=True,
            metavar="PATH",
        ),
        # Memory of a task while it writes: messages have a few KiB, so 100,000 of them some hundred MiB.
        Option("batch_events", "Number of events in one commit.", kind=int, default=100_000, minimum=1),
        Option("keep_messages", "Also store the messages of events: larger, but complete.", kind=bool),
        # A good file size for Spark, Trino and Hive: one task reads it.
        Option(
            "target_mib",
            "Size up to which files of a day are merged; 0: they are not merged.",
            kind=int,
            default=128,
            minimum=0,
        ),
        Option("keep_days", "Number of days to keep, counted from the newest; 0: all.", kind=int, default=0, minimum=0),
        Option("churn_rows", "Number of tables with the most changes to show.", kind=int, default=20, minimum=0),
    ),
)
