"""Definition of the job ``files`` for the command line."""

from __future__ import annotations

from hms_cache.jobs.frame import AUTH, METASTORE, REQUESTS_PER_S, TABLES, Job, Option

MEBIBYTE = 1 << 20

JOB = Job(
    name="files",
    summary="Compare the files of tables and partitions with the catalog; add and drop partitions that differ.",
    description=(
        "Lists all directories in parallel, object stores by prefix. --output keeps the results as tables: each run "
        "writes the directories that have changed since the run before.\n\n"
        "--repair add registers directories that contain files and belong to no partition; drop removes partitions "
        "whose directory is missing (no file is deleted); all does both. Nothing is changed if there are more than "
        "--limit. --dry-run shows what would be changed. Exit status 3 if differences remain."
    ),
    main="hms_cache.jobs.files.main:main",
    options=(
        Option("metastore", METASTORE.help, required=True, metavar=METASTORE.metavar),
        AUTH,
        TABLES,
        Option("repair", "Partitions to add or drop.", default="none", choices=("none", "add", "drop", "all")),
        Option("limit", "Maximum number of partitions to add and drop.", kind=int, default=10_000, minimum=0),
        Option("batch_partitions", "Number of partitions in one call of a repair.", kind=int, default=200, minimum=1),
        Option("small_file_mib", "Smaller files count as small files.", kind=int, default=16, minimum=0, metavar="MIB"),
        Option("block_mib", "Size of a block of the file system.", kind=int, default=128, minimum=1, metavar="MIB"),
        Option("slices", "Maximum number of parts that directories are divided into.", kind=int, default=64, minimum=1),
        REQUESTS_PER_S,
        Option("output", "Directory (or, for iceberg, namespace) of the tables with the results.", metavar="DIR"),
        Option("format", "Format of these tables.", default="parquet", choices=("parquet", "iceberg")),
        Option("full_every", "Runs after which all directories are written again.", kind=int, default=30, minimum=1),
        Option("shown", "Number of differences, and of tables, to show.", kind=int, default=50, minimum=0),
    ),
)
