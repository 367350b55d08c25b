"""Measures Spark jobs and data sources: rows per second, and how time grows with the catalog.

    python -m benchmarks jobs [--partitions 10000,100000,1000000] [--cores 1,2] [--only NAME] [--out FILE]

One MariaDB, one server, and one catalog for all sizes: tables of 10,000 partitions, each with a directory and a file,
and a log with as many events. Server, database and Spark share the machine.
"""
