"""Definition of the job ``verify`` for the command line."""

from __future__ import annotations

from hms_cache.jobs.frame import AUTH, DATABASE, TABLES, Job, Option

JOB = Job(
    name="verify",
    summary="Compare what servers answer with what the metastore database holds, for all tables.",
    description=(
        "Can run during writes: a difference counts only if it is still there when both are read again at later "
        "events, and is reported with the event that neither side was older than. Databases, tables, partitions, "
        "column statistics and all names are compared; nothing is changed. Exit status 3 if a difference remains."
    ),
    main="hms_cache.jobs.verify.main:main",
    options=(
        Option(
            "server",
            "A server to compare, thrift://host:port; may be given several times.",
            multiple=True,
            metavar="URI",
        ),
        AUTH,
        DATABASE,
        TABLES,
        Option("rechecks", "How often a difference is checked again.", kind=int, default=3, minimum=1),
        # Longer than the servers' own cache.max_staleness_ms; otherwise permitted stale answers count as differences.
        Option("recheck_wait_s", "Seconds between two such checks.", kind=float, default=2.0),
        Option("sample", "Part of tables, and of large ones' partitions, to compare.", kind=float, default=1.0),
        Option(
            "sample_index",
            "Which part: another one for each number; 1/sample consecutive numbers cover all. [default: the day]",
            kind=int,
        ),
        Option("output", "Directory that keeps each difference as a row in Parquet, by run.", metavar="DIR"),
        Option("shown", "Number of differences to show.", kind=int, default=50, minimum=0),
    ),
)
