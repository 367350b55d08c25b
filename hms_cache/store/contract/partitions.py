"""Contract: partitions. Which ones is a value (`PartitionSelection`), what of them is the method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.environment import ANY_WRITER, NO_OPTIONS, EnvironmentOptions, Writer
from hms_cache.store.contract.read_version import ANY_VERSION, ReadVersion
from hms_cache.thrift_gen.hive_metastore.ttypes import Partition, PartitionValuesRow
from hms_cache.values import frozen

NO_TABLE_TO_ALTER = "Unable to alter partition because table or database does not exist."
"""Hive's text, which it puts into others by the call."""


def partitions_are_missing(asked: int, found: int) -> str:
    """Hive's text where partitions are altered that are not there."""
    return f"Alter partition operation failed: new parts size {asked} not matching with old parts size {found}"


@frozen
class AllPartitions:
    """Every partition of the table."""


@frozen
class ByNames:
    """Partitions with these names (`k=v/k2=v2`, escaped as Hive does), unknown names left out, each once."""

    names: tuple[str, ...]


@frozen
class ByValues:
    """The one partition with these values, a value per partition key."""

    values: tuple[str, ...]


@frozen
class ByPartialValues:
    """Partitions whose leading values equal these; an empty text stands for any value (Hive's `_ps` calls)."""

    values: tuple[str, ...]


@frozen
class ByFilter:
    """Partitions that meet a filter text of Hive's filter language."""

    text: str


@frozen
class ByExpression:
    """Partitions that meet a serialized expression; `plain_text`: the bytes are a filter text (MSCK's connections)."""

    expression: bytes
    default_partition_name: str | None = None
    plain_text: bool = False


@frozen
class ByAnyExpression:
    """Partitions that meet at least one of several serialized expressions: what a drop may name."""

    expressions: tuple[ByExpression, ...]


PartitionSelection = AllPartitions | ByNames | ByValues | ByPartialValues | ByFilter | ByExpression

KeyValues = Sequence[str]
"""A value per partition key, in the order of the keys."""


@frozen
class PartitionQuery:
    """Which partitions of which table are asked for: first the selection, then the limit.

    `max_parts`: -1 is no limit, 0 is none.
    """

    table: TableName
    selection: PartitionSelection = AllPartitions()
    max_parts: int = -1
    version: ReadVersion = ANY_VERSION


@frozen
class Grantee:
    """For whom privileges are answered along with partitions (`_with_auth` calls)."""

    user: str | None
    groups: tuple[str, ...] = ()


@frozen
class PartitionAnswer:
    """Partitions by name ascending; `has_unknown` when the expression could not be decided exactly (then more came)."""

    partitions: list[Partition]
    has_unknown: bool = False


@frozen
class PartitionProjection:
    """Parts of a partition that are asked (GetProjectionsSpec): dotted field names, and parameter patterns (SQL
    LIKE).
    """

    fields: tuple[str, ...] = ()
    include_parameters: str | None = None
    exclude_parameters: str | None = None


class PartitionReads(ABC):
    """Reads of the partitions of one table.

    Every one: NoSuchObjectException for an unknown table; MetaException for a bad filter, an unknown column, more than
    the configured number of partitions.
    """

    @abstractmethod
    def get_partition(
        self, table: TableName, values: KeyValues, *, grantee: Grantee | None = None, version: ReadVersion = ANY_VERSION
    ) -> Partition:
        """The partition with these values. Raises NoSuchObjectException, MetaException (wrong number of values)."""

    @abstractmethod
    def get_partitions(
        self, query: PartitionQuery, *, grantee: Grantee | None = None, projection: PartitionProjection | None = None
    ) -> PartitionAnswer:
        """The selected partitions."""

    @abstractmethod
    def get_partition_names(self, query: PartitionQuery, *, order: str | None = None) -> list[str]:
        """Names of the selected partitions, ascending, or by `order` (GetPartitionNamesRequest: `index:+-,…`).

        Raises MetaException when an expression cannot be decided: names cannot say that some may not match.
        """

    @abstractmethod
    def get_partition_count(self, query: PartitionQuery) -> int:
        """How many partitions are selected, whatever `max_parts` is."""

    @abstractmethod
    def get_partition_values(
        self, query: PartitionQuery, keys: Sequence[str], *, distinct: bool = True, ascending: bool = True
    ) -> list[PartitionValuesRow]:
        """Values of the named keys, ordered (numbers as numbers); then `max_parts` rows, where 0 is no limit (Hive)."""

    @abstractmethod
    def is_partition_marked_for_event(self, table: TableName, values: dict[str, str], event_type: int) -> bool:
        """True when such a marker is recorded. Raises UnknownTableException."""


class FromTable(Enum):
    """What new partitions take from their table."""

    NOTHING = "nothing"
    COLUMNS = "columns"
    DESCRIPTOR = "descriptor"
    """All of the storage descriptor but its location."""


class PartitionWrites(ABC):
    """Writes of the partitions of one table."""

    @abstractmethod
    def add_partitions(
        self,
        table: TableName,
        partitions: Sequence[Partition],
        *,
        if_not_exists: bool = False,
        from_table: FromTable = FromTable.NOTHING,
        writer: Writer = ANY_WRITER,
    ) -> list[Partition]:
        """Adds all or none; returns those added, as stored. Directories are made before the commit.

        `from_table`: what they take from the table as it is then, in place of what they bring.

        Raises AlreadyExistsException unless `if_not_exists` (then existing ones are left out), InvalidObjectException
        (unknown table, wrong number of values), MetaException (names, mixed tables).
        """

    @abstractmethod
    def alter_partitions(
        self, table: TableName, partitions: Sequence[Partition], *, writer: Writer = ANY_WRITER
    ) -> None:
        """Replaces the partitions with the same values, all or none.

        Raises InvalidOperationException (absent), MetaException.
        """

    @abstractmethod
    def rename_partition(
        self, table: TableName, old_values: Sequence[str], partition: Partition, *, writer: Writer = ANY_WRITER
    ) -> None:
        """Gives a partition new values and, in a managed table, moves its directory.

        `writer`: with `renamePartitionMakeCopy` a writer's rename in a transactional table copies the
        files; the old ones are cleaned when nobody reads them any more (`txnId` is the renaming transaction).
        Raises InvalidOperationException.
        """

    @abstractmethod
    def drop_partitions(
        self,
        table: TableName,
        selection: PartitionSelection | ByAnyExpression,
        *,
        delete_data: bool,
        if_exists: bool = False,
        options: EnvironmentOptions = NO_OPTIONS,
    ) -> list[Partition]:
        """Drops the selected partitions, all or none, and returns them as they were.

        Raises NoSuchObjectException when a named one is absent, or when an expression selects none (unless
        `if_exists`), MetaException for an expression that cannot be decided exactly: more would be data loss.
        """

    @abstractmethod
    def exchange_partitions(
        self, partition_specification: dict[str, str], source: TableName, destination: TableName
    ) -> list[Partition]:
        """Moves partitions from table `source` to `destination`, each (catalog, database, table);
        returns them as moved.
        """

    @abstractmethod
    def mark_partition_for_event(self, table: TableName, values: dict[str, str], event_type: int) -> None:
        """Records a marker (PartitionEventType). Raises UnknownTableException, UnknownPartitionException."""
