"""Work over the catalog that does not belong into a server process, on Spark (extra ``spark``).

``sources`` shows the catalog and its notification log as data; each other package is a job: a definition that needs no
Spark to be read, a pure ``transform(DataFrame) -> DataFrame``, and a short ``main``. ``frame`` runs them.
"""
