"""Work on the catalog that does not belong in a server process, on Spark (extra ``spark``).

``sources`` provides the catalog and its notification log as data. Each other package is a job: a definition that can be
read without Spark, a pure ``transform(DataFrame) -> DataFrame``, and a short ``main``. ``frame`` runs the jobs.
"""
