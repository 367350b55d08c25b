"""What an event does to entries: one table of (event type × facet) → action.

Events only invalidate (docs/decisions/0009). The images in an event are never applied, since one event may change more
than it shows: an ALTER_TABLE rewrites locations, columns and statistics of partitions without further events.
"""

from __future__ import annotations

import copy
import enum
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hms_cache.cache.entries import TABLE_FACETS, Facet
from hms_cache.cache.policy import sync_property
from hms_cache.metadata.names import normalize_identifier
from hms_cache.notifications import events as ev
from hms_cache.notifications import tjson
from hms_cache.thrift_gen.hive_metastore.ttypes import Table, TableMeta


class Action(enum.Enum):
    """The action on a facet of a subject that the event's scope names."""

    KEEP = "keep"
    DROP = "drop"
    DROP_NAMED = "drop_named"
    """Only the partitions that the event names. The rest of the facet stays."""
    DROP_IF_TRANSACTIONAL = "drop_if_transactional"
    """Hive may store the write id of a partition's change in the table, too."""
    DROP_IF_COMMIT_PARAMETERS = "drop_if_commit_parameters"
    """A commit may set a parameter of a table that it does not name. Not in the table below, since the event names no
    table."""


KEEP, DROP, NAMED, ACID = Action.KEEP, Action.DROP, Action.DROP_NAMED, Action.DROP_IF_TRANSACTIONAL

_TABLE_FACETS = tuple(facet for facet in Facet if facet in TABLE_FACETS)


def _row(*actions: Action) -> Mapping[Facet, Action]:
    return dict(zip(_TABLE_FACETS, actions, strict=True))


WHOLE_TABLE = _row(DROP, DROP, DROP, DROP, DROP, DROP)
"""The rule for event types that the table below does not name, and for scopes wider than a table."""

CLAIMS_WITHDRAWN = _row(DROP, KEEP, DROP, DROP, DROP, KEEP)
"""The effect of a commit by another kind of metastore on the transactional tables that it wrote. If Hive 4.0 or 4.1 is
to merge column statistics, and finds that the stored ones do not belong to the writer's snapshot, it removes the claim
in `COLUMN_STATS_ACCURATE` of the table or partition, stores the writer's write id there, and logs no event
(`HMSHandler.set_aggr_stats_for`)."""

#                                     TABLE CONSTR PARTS  TSTATS PSTATS EXCLUDED
TABLE_RULES: dict[type[ev.Event], Mapping[Facet, Action]] = {
    ev.TableCreated: WHOLE_TABLE,
    ev.TableAltered: WHOLE_TABLE,
    ev.TableDropped: WHOLE_TABLE,
    ev.PartitionsAdded: _row(ACID, KEEP, NAMED, KEEP, NAMED, KEEP),
    ev.PartitionAltered: _row(ACID, KEEP, NAMED, KEEP, NAMED, KEEP),
    ev.PartitionsAltered: _row(ACID, KEEP, NAMED, KEEP, NAMED, KEEP),
    ev.PartitionsDropped: _row(ACID, KEEP, NAMED, KEEP, NAMED, KEEP),
    ev.DataInserted: _row(DROP, KEEP, NAMED, DROP, NAMED, KEEP),
    ev.TableReloaded: WHOLE_TABLE,
    ev.CompactionCommitted: _row(DROP, KEEP, NAMED, DROP, NAMED, KEEP),
    ev.AcidDataWritten: _row(DROP, KEEP, NAMED, DROP, NAMED, KEEP),
    ev.PrimaryKeyAdded: _row(DROP, DROP, KEEP, KEEP, KEEP, KEEP),
    ev.ForeignKeyAdded: _row(DROP, DROP, KEEP, KEEP, KEEP, KEEP),
    ev.UniqueConstraintAdded: _row(DROP, DROP, KEEP, KEEP, KEEP, KEEP),
    ev.NotNullConstraintAdded: _row(DROP, DROP, KEEP, KEEP, KEEP, KEEP),
    ev.DefaultConstraintAdded: _row(DROP, DROP, KEEP, KEEP, KEEP, KEEP),
    ev.CheckConstraintAdded: _row(DROP, DROP, KEEP, KEEP, KEEP, KEEP),
    ev.ConstraintDropped: _row(DROP, DROP, KEEP, KEEP, KEEP, KEEP),
    ev.TableColumnStatisticsUpdated: _row(DROP, KEEP, KEEP, DROP, KEEP, KEEP),
    ev.TableColumnStatisticsDeleted: _row(DROP, KEEP, KEEP, DROP, KEEP, KEEP),
    ev.PartitionColumnStatisticsUpdated: _row(ACID, KEEP, NAMED, KEEP, NAMED, KEEP),
    ev.PartitionColumnStatisticsDeleted: _row(ACID, KEEP, NAMED, KEEP, NAMED, KEEP),
    # Write ids raise the tag and do not affect the table: see `write_id_tags`.
    ev.WriteIdsAllocated: _row(KEEP, KEEP, KEEP, KEEP, KEEP, KEEP),
}

PARAMETERS_ALTERED = _row(DROP, DROP, KEEP, DROP, KEEP, DROP)
"""The row of an ALTER_TABLE that leaves partitions unchanged (`unchanged_parts`). Table statistics are dropped: they
are read again in one statement."""

_NOT_OF_PARTITIONS = ("owner", "ownerType", "lastAccessTime", "parameters", "privileges", "writeId")
"""Fields of a table that affect no row of a partition, no statistics, and no cached answer about partitions. All others
must be equal: names, ids, keys, type, retention, the storage descriptor with columns and location, …"""

_STRUCTURAL_PARAMETERS = frozenset(
    {
        "external",
        "translated_to_external",
        "transactional",
        "transactional_properties",
        "storage_handler",
        "partition_level_privilege",
        "avro.schema.url",
        "avro.schema.literal",
    }
)
"""Parameters, in lower case, that determine the kind of a table. Altering one of them may rewrite its partitions."""

CHANGES_TABLE_NAMES = frozenset(
    {ev.TableCreated, ev.TableAltered, ev.TableDropped, ev.TableReloaded, ev.UndecodedEvent}
)
"""Event types that may change the list of a database's tables (names, types, comments, owners)."""

CHANGES_DATABASE_NAMES = frozenset({ev.DatabaseCreated, ev.DatabaseDropped, ev.DatabaseAltered, ev.UndecodedEvent})


def keeps_content(event: ev.DatabaseAltered) -> bool:
    """Whether the images of a database show that its contents are unchanged.

    Tables and functions contain nothing of their database except its name; its properties decide whether its tables may
    be cached at all. If an image is missing or cannot be read, nothing is shown.
    """
    try:
        before, after = event.before(), event.after()
    except Exception:
        return False
    if before is None or after is None or (before.name, before.catalogName) != (after.name, after.catalogName):
        return False
    allowed = sync_property(after.parameters or {})
    # Tables that must not be cached are dropped whatever the first image shows: Hive may have read it before another
    # alter. If the image is right, there are none.
    return allowed is not False and allowed == sync_property(before.parameters or {})


class UnchangedParts(NamedTuple):
    """The parts that an ALTER_TABLE shows to be unchanged."""

    partitions: bool
    """The table's partitions and their statistics."""
    names: bool
    """The table's entry in the list of its database's tables."""
    after: Table | None = None
    """The image of the table after the alter, if anything is unchanged."""

    def has_keys(self, keys: Sequence[tuple[str, str]]) -> bool:
        """Whether the table has these partition keys after the alter: names and types."""
        fields = (self.after.partitionKeys if self.after is not None else None) or ()
        return [*keys] == [(field.name, field.type) for field in fields]

    def is_listed_as(self, meta: TableMeta) -> bool:
        """Whether the list of its database's tables shows the table like this after the alter."""
        shown = (meta.tableName, meta.tableType, meta.comments, meta.ownerName, meta.ownerType)
        return self.after is not None and _listed(self.after) == shown


NOTHING_STAYS = UnchangedParts(False, False)


def unchanged_parts(event: ev.TableAltered) -> UnchangedParts:
    """The parts that the two images of the table show to be unchanged. If an image is missing or cannot be read, none.

    An alter writes to partitions if the name, the location, the columns or the keys change (Hive 2.3 to 4.x,
    HiveAlterHandler.alterTable; cascading has no effect if the columns are equal), and if the table is truncated. A
    change of parameters, owner or write id does not.

    The list of tables has names, types, owners and comments. The type follows from `tableType` and from the parameters
    that determine the kind of the table (ObjectStore.convertToMTable).

    Hive reads the table's previous state without a lock, and its CachedStore reads it from a copy that may be minutes
    old. Such an alter undoes what another server changed in the meantime, and neither image shows that. So with writers
    of other kinds, what is held must also be equal to the second image (`FollowingEntries`).
    """
    if event.is_rename:
        return NOTHING_STAYS
    try:
        before, after = event.before(), event.after()
    except Exception:
        return NOTHING_STAYS
    if before is None or after is None or _structure(before.parameters) != _structure(after.parameters):
        return NOTHING_STAYS
    return UnchangedParts(
        not event.is_truncate and _same_partitions(before, after), _listed(before) == _listed(after), after
    )


def _same_partitions(before: Table, after: Table) -> bool:
    if before.sd is None or after.sd is None:
        return False
    if sync_property(before.parameters or {}) != sync_property(after.parameters or {}):
        return False
    before, after = copy.copy(before), copy.copy(after)
    for image in (before, after):
        for name in _NOT_OF_PARTITIONS:
            setattr(image, name, None)
    return bool(before == after)


def _listed(table: Table) -> tuple[object, ...]:
    """The data that the list of tables is made from, except the names of catalog and database, which only a rename
    changes."""
    comment = (table.parameters or {}).get("comment")
    return table.tableName, table.tableType, comment, table.owner, table.ownerType


def _structure(parameters: Mapping[str, str] | None) -> dict[str, str]:
    return {name: text for name, text in (parameters or {}).items() if name.lower() in _STRUCTURAL_PARAMETERS}


_OF_COLUMNS = (
    ev.TableColumnStatisticsUpdated,
    ev.TableColumnStatisticsDeleted,
    ev.PartitionColumnStatisticsUpdated,
    ev.PartitionColumnStatisticsDeleted,
)


def changed_columns(event: ev.Event) -> frozenset[str] | None:
    """The normalized names of the columns whose statistics the event may have changed; None: all columns.

    Hive logs one event for each struct of statistics that it writes, with its contents, and one for a deletion, with
    the column or with none for all (HMSHandler.updateTableColumnStatsInternal, deletePartitionColumnStatistics). The
    event of a deletion contains the column as the client spelled it; deleted is the column of the normalized name. The
    event of an update may be about a column whose name begins or ends with blanks: all columns that differ only in
    these are included.
    """
    if not isinstance(event, _OF_COLUMNS):
        return None
    if isinstance(event, ev.TableColumnStatisticsDeleted | ev.PartitionColumnStatisticsDeleted):
        return frozenset((normalize_identifier(event.column),)) if event.column else None
    try:
        written = event.statistics()
    except Exception:
        return None
    if written is None or not written.statsObj or not all(one.colName for one in written.statsObj):
        return None
    return frozenset(normalize_identifier(one.colName) for one in written.statsObj)


def table_rule(event: ev.Event) -> Mapping[Facet, Action]:
    """The rule of the event's type. Events of unknown types drop everything of the tables that they name (P8)."""
    return TABLE_RULES.get(type(event), WHOLE_TABLE)


_OF_RIGHTS = (
    ev.GrantsChanged,
    ev.UndecodedEvent,
    *(ev.TableCreated, ev.TableDropped),
    *(ev.DatabaseCreated, ev.DatabaseAltered, ev.DatabaseDropped),
    *(ev.CatalogCreated, ev.CatalogAltered, ev.CatalogDropped),
)

_OWNER_FIELDS = ("3", "18")
"""Ids of fields in a table object: the owner and the owner's type (`hive_metastore.thrift`)."""


def changes_rights(event: ev.Event) -> bool:
    """Whether the rights of users, which depend on owners and grants, may have changed. Alters that leave name and
    owner unchanged are the most frequent ones, and change no rights."""
    if isinstance(event, ev.TableAltered):
        return event.is_rename or _owner_of(event.before_json) != _owner_of(event.after_json, "unknown")
    return isinstance(event, _OF_RIGHTS) or event.scope.everything


def _owner_of(table_json: str | None, unknown: str = "") -> object:
    """A value for comparison. With `unknown` set on one side, owners that cannot be read differ."""
    try:
        fields = tjson.parse(table_json or "")
        return [fields.get(number) for number in _OWNER_FIELDS]
    except (tjson.TJsonError, AttributeError):
        return unknown
