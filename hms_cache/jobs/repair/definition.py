"""Definition of the job ``repair`` for the command line."""

from __future__ import annotations

from hms_cache.jobs.frame import AUTH, DATABASE, METASTORE, REQUESTS_PER_S, TABLES, Job, Option

JOB = Job(
    name="repair",
    summary="Add partitions for directories that have none, drop those whose directories are gone: MSCK REPAIR.",
    description=(
        "Compares the names of a table's partitions with one listing of each directory above the last level; the "
        "directories of partitions are not listed. A partition in another place is dropped only if its own directory "
        "is missing, and no partition is dropped if the table's directory is missing. Files are deleted by "
        "--retention only. Needs no Spark.\n\n"
        "--discover works on tables with discover.partitions = true, as Hive's metastore does every six hours. "
        "--retention also drops partitions older than their table's partition.retention.period, with their files if "
        "dropping a partition of that table deletes them. --database makes the job fast for tables with many "
        "partitions: otherwise, if there is a partition to add, the locations of all partitions are read through the "
        "metastore. Iceberg, Delta and transactional tables are skipped and reported.\n\n"
        "With --state, a run that was killed is continued. Exit status 3 if something remains to be changed."
    ),
    main="hms_cache.jobs.repair.main:main",
    needs_spark=False,
    options=(
        Option("metastore", METASTORE.help, required=True, metavar=METASTORE.metavar),
        AUTH,
        Option("database", "Metastore database to read names and locations from.", metavar=DATABASE.metavar),
        TABLES,
        Option("mode", "What to change; sync is both.", default="sync", choices=("add", "drop", "sync")),
        Option("discover", "Only tables with discover.partitions = true.", kind=bool),
        Option("retention", "Also drop partitions past partition.retention.period.", kind=bool),
        Option(
            "drop_limit",
            "Maximum number of partitions to drop of one table; if there are more, none is dropped.",
            kind=int,
            default=10_000,
            minimum=0,
        ),
        Option("batch_partitions", "Number of partitions in one call.", kind=int, default=500, minimum=1),
        Option("threads", "Number of listings at the same time.", kind=int, default=16, minimum=1),
        REQUESTS_PER_S,
        Option("state", "File that keeps the plan while it is carried out.", metavar="FILE"),
        Option("shown", "Number of partitions, and of notes, to show.", kind=int, default=50, minimum=0),
    ),
)
