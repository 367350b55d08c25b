"""The job ``repair``, as the command line shows it."""

from __future__ import annotations

from hms_cache.jobs.frame import DATABASE, METASTORE, REQUESTS_PER_S, TABLES, Job, Option

JOB = Job(
    name="repair",
    summary="Add partitions for directories that have none, drop those whose directories are gone: MSCK REPAIR.",
    description=(
        "Compares the names of a table's partitions with one listing of each directory above the last level; no "
        "partition's own directory is listed. A partition that lies elsewhere is dropped only if its own directory is "
        "gone, and none is if the table's is. No file is deleted but by --retention. Needs no Spark.\n\n"
        "--discover works on tables with discover.partitions = true, as Hive's metastore does every six hours. "
        "--retention also drops partitions older than their table's partition.retention.period, with their files if "
        "dropping a partition of that table deletes them. --database makes it fast for tables of many partitions: else "
        "where all partitions lie is read through the metastore if there is one to add. Iceberg, Delta and "
        "transactional tables are left alone, and told.\n\n"
        "With --state, a run that was killed goes on where it was. Exit status 3 if something is left that was to be "
        "changed."
    ),
    main="hms_cache.jobs.repair.main:main",
    needs_spark=False,
    options=(
        Option("metastore", METASTORE.help, required=True, metavar=METASTORE.metavar),
        Option("database", "Metastore database to read names and locations from.", metavar=DATABASE.metavar),
        TABLES,
        Option("mode", "What to change; sync is both.", default="sync", choices=("add", "drop", "sync")),
        Option("discover", "Only tables with discover.partitions = true.", kind=bool),
        Option("retention", "Drop partitions past partition.retention.period, too.", kind=bool),
        Option(
            "drop_limit", "Most partitions to drop of one table; if more, none is.", kind=int, default=10_000, minimum=0
        ),
        Option("batch_partitions", "Partitions of one call.", kind=int, default=500, minimum=1),
        Option("threads", "Listings at the same time.", kind=int, default=16, minimum=1),
        REQUESTS_PER_S,
        Option("state", "File that keeps the plan while it is carried out.", metavar="FILE"),
        Option("shown", "Partitions, and notes, to show.", kind=int, default=50, minimum=0),
    ),
)
