"""Properties of databases that replication keeps for itself: events of alters do not tell them.

A replica applies what such an event tells. Told of these, it would count as a source whose whole dump never ends, and
refuse renames. Facts: `AlterDatabaseEvent.filterOutReplProps`, `ReplConst` (Hive 4.0.1).
"""

from __future__ import annotations

import copy

from hms_cache.thrift_gen.hive_metastore.ttypes import Database

_OF_A_WHOLE_DUMP = "bootstrap.dump.state."
"""What the names begin with under which dumps that are being made are noted."""

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
    """A copy without them."""
    told = copy.copy(database)
    if database.parameters:
        told.parameters = {name: value for name, value in database.parameters.items() if not _is_of_replication(name)}
    return told


def _is_of_replication(name: str) -> bool:
    plain = name.replace('"', "")
    return plain in _NAMES or plain.startswith(_OF_A_WHOLE_DUMP)
