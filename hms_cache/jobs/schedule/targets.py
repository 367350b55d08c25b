"""The objects that a step takes a lease on: the tables that match its patterns, and its output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from hms_cache.client import Metastores
from hms_cache.jobs.schedule.lease import Target
from hms_cache.jobs.schedule.plan import Step, auth_of_conf
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.jobs.sources.scope import TableScope


def metastore_of(step: Step) -> Metastores | None:
    """The metastore that grants a step's lease; None if the step only uses a database."""
    servers = step.options.get("server") or (None,)
    uris = step.options.get("metastore") or servers[0]
    if uris is None:
        return None
    # There is no session of Spark here that would know more.
    return Metastores.of_texts(uris, step.options.get("auth") or auth_of_conf(step.conf))


def targets_of(step: Step) -> list[Target]:
    """The tables one by one, or databases if all of their tables are included. Raises MetastoreUnavailableError."""
    targets: list[Target] = []
    metastore = metastore_of(step)
    if metastore is not None and any(option.name == "tables" for option in step.job.options):
        patterns = tuple(one.lower() for one in step.options.get("tables") or ())
        with closing(MetastoreReader(metastore)) as reader:
            targets += dict.fromkeys(_tables(reader, TableScope(patterns)))
    if step.options.get("output"):
        # Normalized as in the jobs: one output has one lease.
        targets.append((f"output {str(step.options['output']).rstrip('/')}", None))
    return targets


def _tables(reader: MetastoreReader, scope: TableScope) -> Iterator[Target]:
    whole = [pattern for pattern in scope.patterns if pattern.endswith(".*")] if scope.patterns else ["*.*.*"]
    some = [pattern for pattern in scope.patterns if not pattern.endswith(".*")]
    databases = TableScope(tuple(whole)) if whole else None
    tables = TableScope(tuple(some)) if some else None
    for catalog in reader.catalog_names():
        if not scope.admits(catalog):
            continue
        for database in reader.database_names(catalog):
            namespace = f"{catalog}.{database}"
            if databases is not None and databases.admits(catalog, database):
                yield namespace, None
            elif tables is not None and tables.admits(catalog, database):
                named = [
                    name for name in reader.table_names(catalog, database) if tables.admits(catalog, database, name)
                ]
                yield from ((namespace, name) for name in named)
