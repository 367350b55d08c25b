"""What an event does to what is remembered: one table of (event type × facet) → action.

Only ever invalidates (docs/decisions/0009): no image of an event is applied, since one event may change more than it
shows (an ALTER_TABLE rewrites partition locations, columns and statistics without a further event).
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
    """What happens to a facet of a subject that the event's scope names."""

    KEEP = "keep"
    DROP = "drop"
    DROP_NAMED = "drop_named"
    """Only the partitions that the event names; the rest of the facet stays (a change touches only its partitions)."""
    DROP_IF_TRANSACTIONAL = "drop_if_transactional"
    """Hive may store the write id of a partition's change with the table, too."""
    DROP_IF_COMMIT_PARAMETERS = "drop_if_commit_parameters"
    """A commit may carry a key and value into a table that it does not name. In no row: its event names no table."""


KEEP, DROP, NAMED, ACID = Action.KEEP, Action.DROP, Action.DROP_NAMED, Action.DROP_IF_TRANSACTIONAL

_TABLE_FACETS = tuple(facet for facet in Facet if facet in TABLE_FACETS)


def _row(*actions: Action) -> Mapping[Facet, Action]:
    return dict(zip(_TABLE_FACETS, actions, strict=True))


WHOLE_TABLE = _row(DROP, DROP, DROP, DROP, DROP, DROP)
"""The rule of every event type that the table below does not name, and of every scope wider than a table."""

CLAIMS_TAKEN_BACK = _row(DROP, KEEP, DROP, DROP, DROP, KEEP)
"""What the commit of another kind of metastore does to the transactional tables it wrote. Hive 4.0 and 4.1 that are to
merge column statistics, and find theirs not of the writer's snapshot, take the claim in `COLUMN_STATS_ACCURATE` of the
table or of a partition back, store the writer's write id there, and log no event (`HMSHandler.set_aggr_stats_for`)."""

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
    # Write ids move the tag, not the table: see `write_id_tags`.
    ev.WriteIdsAllocated: _row(KEEP, KEEP, KEEP, KEEP, KEEP, KEEP),
}

PARAMETERS_ALTERED = _row(DROP, DROP, KEEP, DROP, KEEP, DROP)
"""The row of an ALTER_TABLE after which partitions stay (`what_stays`). Table statistics go: they are read again in one
statement."""

_NOT_OF_PARTITIONS = ("owner", "ownerType", "lastAccessTime", "parameters", "privileges", "writeId")
"""Fields of a table that no row of a partition, no statistics and no cached answer about partitions is made from. All
others must be equal: names, ids, keys, type, retention, the storage descriptor with columns and location, …"""

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
"""Parameters, in lower case, that say what kind of table it is: an alter of one of them may rewrite its partitions."""

CHANGES_TABLE_NAMES = frozenset(
    {ev.TableCreated, ev.TableAltered, ev.TableDropped, ev.TableReloaded, ev.UndecodedEvent}
)
"""Event types after which the list of a database's tables (names, types, comments, owners) may be another one."""

CHANGES_DATABASE_NAMES = frozenset({ev.DatabaseCreated, ev.DatabaseDropped, ev.DatabaseAltered, ev.UndecodedEvent})


def keeps_content(event: ev.DatabaseAltered) -> bool:
    """Whether the images of a database show that what is in it stays as it was.

    Tables and functions carry nothing of their database but its name; its properties decide whether its tables may be
    cached at all. Without both images, or with ones that cannot be read, nothing is shown.
    """
    try:
        before, after = event.before(), event.after()
    except Exception:
        return False
    if before is None or after is None or (before.name, before.catalogName) != (after.name, after.catalogName):
        return False
    allowed = sync_property(after.parameters or {})
    # Tables that must not be cached go whatever the first image shows: Hive may have read it before somebody else's
    # alter. There are none if it is right.
    return allowed is not False and allowed == sync_property(before.parameters or {})


class Stays(NamedTuple):
    """What an ALTER_TABLE shows to be as it was."""

    partitions: bool
    """The table's partitions and their statistics."""
    names: bool
    """What the list of its database's tables says of it."""
    after: Table | None = None
    """The image of the table afterwards, where anything stays."""

    def has_keys(self, keys: Sequence[tuple[str, str]]) -> bool:
        """Whether the table has these partition keys afterwards: names and types."""
        fields = (self.after.partitionKeys if self.after is not None else None) or ()
        return [*keys] == [(field.name, field.type) for field in fields]

    def is_listed_as(self, meta: TableMeta) -> bool:
        """Whether the list of its database's tables has this of it afterwards."""
        shown = (meta.tableName, meta.tableType, meta.comments, meta.ownerName, meta.ownerType)
        return self.after is not None and _listed(self.after) == shown


NOTHING_STAYS = Stays(False, False)


def what_stays(event: ev.TableAltered) -> Stays:
    """What the two images of the table show to be as it was. Without both, or with ones that cannot be read, nothing.

    An alter writes to partitions when the name, the location, the columns or the keys change (Hive 2.3 to 4.x,
    HiveAlterHandler.alterTable; cascading does nothing where the columns are equal), and when the table is truncated.
    A change of parameters, owner or write id does not. The list of tables has names, types, owners and comments; the
    type follows from `tableType` and the parameters that say what kind of table it is (ObjectStore.convertToMTable).

    What the table was before, Hive reads without a lock, and with its CachedStore from a copy that may be minutes old.
    What another server changed meanwhile goes by such an alter, and neither image shows it. So what is held beside
    writers of other kinds has to be as the second image has it, too (`FollowingEntries`).
    """
    if event.is_rename:
        return NOTHING_STAYS
    try:
        before, after = event.before(), event.after()
    except Exception:
        return NOTHING_STAYS
    if before is None or after is None or _structure(before.parameters) != _structure(after.parameters):
        return NOTHING_STAYS
    return Stays(not event.is_truncate and _same_partitions(before, after), _listed(before) == _listed(after), after)


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
    """What the list of tables is made from, but for the names of catalog and database, which only a rename changes."""
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
    """The columns, by their normalized names, whose statistics the event may have changed; None: all of them.

    Hive logs one event for each struct of statistics that it writes, with what it wrote, and one for a deletion, with
    the column or none for all (HMSHandler.updateTableColumnStatsInternal, deletePartitionColumnStatistics). The event
    of a deletion has the column as the client spelt it; what is deleted is the column of the normalized name. One of an
    update may be of a column whose name has blanks at an end: all columns that differ only in these are meant.
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
    """The row of the event's type; unknown types drop all of a table that they name (P8)."""
    return TABLE_RULES.get(type(event), WHOLE_TABLE)


_OF_RIGHTS = (
    ev.GrantsChanged,
    ev.UndecodedEvent,
    *(ev.TableCreated, ev.TableDropped),
    *(ev.DatabaseCreated, ev.DatabaseAltered, ev.DatabaseDropped),
    *(ev.CatalogCreated, ev.CatalogAltered, ev.CatalogDropped),
)

_OWNER_FIELDS = ("3", "18")
"""Of a table object: owner, and its type (`hive_metastore.thrift`)."""


def changes_rights(event: ev.Event) -> bool:
    """Whether what users may do by owners and grants may be another afterwards. Alters that leave name and owner as
    they were are the most frequent ones, and change no rights."""
    if isinstance(event, ev.TableAltered):
        return event.is_rename or _owner_of(event.before_json) != _owner_of(event.after_json, "unknown")
    return isinstance(event, _OF_RIGHTS) or event.scope.everything


def _owner_of(table_json: str | None, unknown: str = "") -> object:
    """What can be compared; with `unknown` given on one side, owners that cannot be read differ."""
    try:
        fields = tjson.parse(table_json or "")
        return [fields.get(number) for number in _OWNER_FIELDS]
    except (tjson.TJsonError, AttributeError):
        return unknown
