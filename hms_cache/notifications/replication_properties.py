"""Properties of databases that belong to replication and are left out of alter events.

A replica applies the properties in such an event. With these it would count as a source whose complete dump never ends,
and refuse renames. Facts: `AlterDatabaseEvent.filterOutReplProps`, `ReplConst` (Hive 4.0.1).
"""

from __future__ import annotations

import copy

from hms_cache.thrift_gen.hive_metastore.ttypes import Database

_OF_A_WHOLE_DUMP = "bootstrap.dump.state."
"""Prefix of the names of properties that record dumps in progress."""

_NAMES = frozenset(
    {
        "hive.repl.ckpt.key",
        "hive.repl.first.inc.pending",
        "hive.repl.is.custom.db.loc",
        "hive.repl.is.custom.db.managedloc",
        "repl.background.enable",
        "repl.failover.endpoint",
        "repl.incompatible",
        "repl.last.id",
        "repl.metrics.failback.count",
        "repl.metrics.failover.count",
        "repl.metrics.last.failback.endtime",
        "repl.metrics.last.failback.starttime",
        "repl.metrics.last.failover.type",
        "repl.resume.started",
        "repl.source.for",
        "repl.target.for",
        "repl.target.last.id",
    }
)


def without_replication_properties(database: Database) -> Database:
    """A copy without these properties."""
    copied = copy.copy(database)
    if database.parameters:
        copied.parameters = {name: value for name, value in database.parameters.items() if not _is_of_replication(name)}
    return copied


def _is_of_replication(name: str) -> bool:
    plain = name.replace('"', "")
    return plain in _NAMES or plain.startswith(_OF_A_WHOLE_DUMP)
