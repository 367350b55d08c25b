"""Events of tables and partitions."""

from __future__ import annotations

from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.events.base import Event, StructIn, StructsIn, scope_of_row
from hms_cache.notifications.events.rows import PartitionFiles
from hms_cache.notifications.scope import EVERYTHING, PartitionValues, Scope, scope_of_partitions, scope_of_tables
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.values import frozen


@frozen
class TableEvent(Event):
    """An event of one table; ``table_json`` is the table in the message, if there is one."""

    table_json: str | None = None

    @property
    def scope(self) -> Scope:
        table = self.own_table
        return EVERYTHING if table is None else scope_of_tables([table])

    table = StructIn("table_json", ttypes.Table)


@frozen
class TableCreated(TableEvent):
    table_type: str | None = None
    files: tuple[str, ...] = ()


@frozen
class TableDropped(TableEvent):
    """Foreign keys of other tables that refer to this one are deleted with it."""

    table_type: str | None = None

    @property
    def scope(self) -> Scope:
        return scope_of_row(self.header)


@frozen
class TableAltered(Event):
    """The row's columns have the new name, the message the old one; both are in ``scope``.

    A rename also changes objects that refer to the table by name, and a changed column list changes foreign keys; hence
    ``foreign_keys`` in the scope.
    """

    old_name: TableName | None = None
    new_name: TableName | None = None
    is_truncate: bool = False
    write_id: int | None = None
    table_type: str | None = None
    before_json: str | None = None
    after_json: str | None = None

    @property
    def is_rename(self) -> bool:
        """Also true if one of the names is unknown."""
        return self.old_name is None or self.old_name != self.new_name

    @property
    def scope(self) -> Scope:
        if self.old_name is None or self.new_name is None:
            return EVERYTHING
        return scope_of_tables([self.old_name, self.new_name], foreign_keys=True)

    before = StructIn("before_json", ttypes.Table)
    after = StructIn("after_json", ttypes.Table)


# ---- partitions -----------------------------------------------------------------------------------------------------


@frozen
class PartitionsEvent(TableEvent):
    """``partitions``: values in the order of the partition keys; ``None`` if unknown, or for the whole table."""

    partitions: tuple[PartitionValues, ...] | None = None

    @property
    def scope(self) -> Scope:
        return scope_of_partitions(self.own_table, self.partitions)


@frozen
class PartitionsAdded(PartitionsEvent):
    table_type: str | None = None
    partition_jsons: tuple[str, ...] = ()
    files: tuple[PartitionFiles, ...] = ()

    partition_objects = StructsIn("partition_jsons", ttypes.Partition)


@frozen
class PartitionAltered(PartitionsEvent):
    """``partitions`` contains the old values and, after a rename, the new ones."""

    is_truncate: bool = False
    write_id: int | None = None
    before_json: str | None = None
    after_json: str | None = None

    before = StructIn("before_json", ttypes.Partition)
    after = StructIn("after_json", ttypes.Partition)


@frozen
class PartitionsAltered(PartitionsEvent):
    """ALTER_PARTITIONS of Hive 4.1 and later; contains only new images."""

    is_truncate: bool = False
    write_id: int | None = None
    partition_jsons: tuple[str, ...] = ()

    partition_objects = StructsIn("partition_jsons", ttypes.Partition)


@frozen
class PartitionsDropped(PartitionsEvent):
    table_type: str | None = None


@frozen
class DataInserted(PartitionsEvent):
    """INSERT; ``partitions`` is ``None`` for an unpartitioned table."""

    is_replace: bool = False
    partition_json: str | None = None
    files: tuple[str, ...] = ()

    partition = StructIn("partition_json", ttypes.Partition)


@frozen
class TableReloaded(PartitionsEvent):
    """RELOAD: another metastore's client reports that it refreshed or invalidated a table or a partition."""

    is_refresh: bool = False
    partition_json: str | None = None

    partition = StructIn("partition_json", ttypes.Partition)
