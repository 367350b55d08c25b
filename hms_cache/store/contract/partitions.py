"""Contract: partitions. A `PartitionSelection` says which partitions are meant, the method what is done with them."""

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
"""Hive's text, which Hive embeds in other texts depending on the call."""


def partitions_are_missing(requested: int, found: int) -> str:
    """Hive's text if partitions to alter do not exist."""
    return f"Alter partition operation failed: new parts size {requested} not matching with old parts size {found}"


@frozen
class AllPartitions:
    """Every partition of the table."""


@frozen
class ByNames:
    """Partitions with these names (`k=v/k2=v2`, escaped as in Hive), each once. Unknown names are ignored."""

    names: tuple[str, ...]


@frozen
class ByValues:
    """The one partition with these values, one per partition key."""

    values: tuple[str, ...]


@frozen
class ByPartialValues:
    """Partitions whose first values equal these; an empty text matches any value (Hive's `_ps` calls)."""

    values: tuple[str, ...]


@frozen
class ByFilter:
    """Partitions that match a text in Hive's filter language."""

    text: str


@frozen
class ByExpression:
    """Partitions that match a serialized expression. `plain_text`: the bytes are a filter text instead (as MSCK's
    connections send it)."""

    expression: bytes
    default_partition_name: str | None = None
    plain_text: bool = False


@frozen
class ByAnyExpression:
    """Partitions that match at least one of several serialized expressions, as a drop may list them."""

    expressions: tuple[ByExpression, ...]


PartitionSelection = AllPartitions | ByNames | ByValues | ByPartialValues | ByFilter | ByExpression

KeyValues = Sequence[str]
"""One value per partition key, in the order of the keys."""


@frozen
class PartitionQuery:
    """Selects partitions of a table. The limit applies after the selection.

    `max_parts`: -1 means no limit, 0 means no partitions.
    """

    table: TableName
    selection: PartitionSelection = AllPartitions()
    max_parts: int = -1
    version: ReadVersion = ANY_VERSION


@frozen
class Grantee:
    """The user and groups whose privileges are returned along with partitions (`_with_auth` calls)."""

    user: str | None
    groups: tuple[str, ...] = ()


@frozen
class PartitionAnswer:
    """Partitions, ascending by name. `has_unknown`: the expression could not be evaluated exactly, and the answer may
    contain partitions that do not match."""

    partitions: list[Partition]
    has_unknown: bool = False


@frozen
class PartitionProjection:
    """The requested parts of a partition (GetProjectionsSpec): dotted field names, and patterns for parameters (SQL
    LIKE)."""

    fields: tuple[str, ...] = ()
    include_parameters: str | None = None
    exclude_parameters: str | None = None


class PartitionReads(ABC):
    """Reads of the partitions of one table.

    Every method raises NoSuchObjectException if the table does not exist, and MetaException for an invalid filter, an
    unknown column, or more partitions than the configured limit.
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
        """Names of the selected partitions, ascending or in the given `order` (GetPartitionNamesRequest: `index:+-,…`).

        Raises MetaException if an expression cannot be evaluated exactly: a list of names cannot say that some may not
        match.
        """

    @abstractmethod
    def get_partition_count(self, query: PartitionQuery) -> int:
        """The number of selected partitions, regardless of `max_parts`."""

    @abstractmethod
    def get_partition_values(
        self, query: PartitionQuery, keys: Sequence[str], *, distinct: bool = True, ascending: bool = True
    ) -> list[PartitionValuesRow]:
        """Values of the named keys, sorted (numbers numerically) and then limited to `max_parts` rows, where 0 means no
        limit, as in Hive."""

    @abstractmethod
    def is_partition_marked_for_event(self, table: TableName, values: dict[str, str], event_type: int) -> bool:
        """Whether such a marker is stored. Raises UnknownTableException."""


class FromTable(Enum):
    """What new partitions inherit from their table."""

    NOTHING = "nothing"
    COLUMNS = "columns"
    DESCRIPTOR = "descriptor"
    """The whole storage descriptor except its location."""


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
        """Adds all or none; returns the added partitions as stored. Directories are created before the commit.

        `from_table`: what they inherit from the table, as it is then, instead of what the request contains.

        Raises AlreadyExistsException unless `if_not_exists` (then existing ones are left out), InvalidObjectException
        (unknown table, wrong number of values), MetaException (names, mixed tables).
        """

    @abstractmethod
    def alter_partitions(
        self, table: TableName, partitions: Sequence[Partition], *, writer: Writer = ANY_WRITER
    ) -> None:
        """Replaces the partitions that have the same values, all or none.

        Raises InvalidOperationException (a partition does not exist), MetaException.
        """

    @abstractmethod
    def rename_partition(
        self, table: TableName, old_values: Sequence[str], partition: Partition, *, writer: Writer = ANY_WRITER
    ) -> None:
        """Gives a partition new values and, in a managed table, moves its directory.

        With `renamePartitionMakeCopy`, a writer's rename in a transactional table copies the files instead; the old
        ones are deleted when no transaction reads them any more (`txnId` is the renaming transaction). Raises
        InvalidOperationException.
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
        """Drops the selected partitions, all or none, and returns them as they were before.

        Raises NoSuchObjectException if a named partition does not exist or an expression selects none (unless
        `if_exists`), and MetaException if an expression cannot be evaluated exactly: dropping too many would lose data.
        """

    @abstractmethod
    def exchange_partitions(
        self, partition_specification: dict[str, str], source: TableName, destination: TableName
    ) -> list[Partition]:
        """Moves partitions from table `source` to table `destination` and returns them as moved."""

    @abstractmethod
    def mark_partition_for_event(self, table: TableName, values: dict[str, str], event_type: int) -> None:
        """Stores a marker (PartitionEventType). Raises UnknownTableException, UnknownPartitionException."""
