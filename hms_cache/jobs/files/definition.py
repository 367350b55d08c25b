"""The job ``files``, as the command line shows it."""

from __future__ import annotations

from hms_cache.jobs.frame import METASTORE, REQUESTS_PER_S, TABLES, Job, Option

MEBIBYTE = 1 << 20

JOB = Job(
    name="files",
    summary="Compare the files of tables and partitions with the catalog; add and drop partitions that differ.",
    description=(
        "Lists all directories in parallel, object stores by prefix. --output keeps what it finds as tables: each run "
        "writes the directories that are not as the run before found them.\n\n"
        "--repair add registers directories with files that no partition has, drop "
        "removes partitions whose directory is gone (no file is deleted), all does both; nothing is changed if there "
        "are more than --limit. --dry-run shows what would be. Exit status 3 if differences remain."
    ),
    main="hms_cache.jobs.files.main:main",
    options=(
        Option("metastore", METASTORE.help, required=True, metavar=METASTORE.metavar),
        TABLES,
        Option("repair", "Partitions to add or drop.", default="none", choices=("none", "add", "drop", "all")),
        Option("limit", "Most partitions that a repair may add and drop.", kind=int, default=10_000, minimum=0),
        Option("batch_partitions", "Partitions of one call of a repair.", kind=int, default=200, minimum=1),
        Option("small_file_mib", "Files below this are small.", kind=int, default=16, minimum=0, metavar="MIB"),
        Option("block_mib", "Size of a block of the file system.", kind=int, default=128, minimum=1, metavar="MIB"),
        Option("slices", "Most parts that directories are divided into.", kind=int, default=64, minimum=1),
        REQUESTS_PER_S,
        Option("output", "Directory (or, for iceberg, namespace) that keeps what runs find, as tables.", metavar="DIR"),
        Option("format", "Format of these tables.", default="parquet", choices=("parquet", "iceberg")),
        Option("full_every", "Runs from one that keeps all directories to the next.", kind=int, default=30, minimum=1),
        Option("shown", "Differences, and tables, to show.", kind=int, default=50, minimum=0),
    ),
)
