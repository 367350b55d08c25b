"""Checks which changes an alter of a table may make. Facts: `HiveAlterHandler.alterTable` (Hive 4.0)."""

from __future__ import annotations

from collections.abc import Sequence

from hms_cache.config.sections import CatalogSettings
from hms_cache.metadata.column_types import incompatible_columns, invalid_type
from hms_cache.metadata.names import is_valid_name
from hms_cache.store.contract.environment import EnvironmentOptions
from hms_cache.store.rows.table_kinds import is_view
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, InvalidOperationException, MetaException, Table


def require_parts(new: Table) -> None:
    """Raises MetaException if the new table lacks a part without which Hive fails."""
    if new.tableName is None or new.dbName is None:
        raise MetaException("The new table has no name or no database")
    if new.sd is None or new.sd.cols is None or new.sd.serdeInfo is None:
        raise MetaException(f"The new table {new.tableName} has no storage descriptor with columns and a serde")
    if any(column.type is None for column in new.sd.cols):
        raise MetaException(f"The new table {new.tableName} has a column without a type")


def check_new_table(new: Table, settings: CatalogSettings) -> None:
    """Checks the new table by itself. Raises InvalidOperationException."""
    if not is_valid_name(new.tableName, special_characters=settings.special_characters_in_table_names):
        raise InvalidOperationException(f"{new.tableName} is not a valid object name")
    wrong = invalid_type(new.sd.cols)
    if wrong is not None:
        raise InvalidOperationException(f"Invalid column {wrong}")
    columns = {column.name for column in new.sd.cols}
    missing = [name for name in new.sd.bucketCols or () if name.lower() not in columns]
    if missing:
        raise InvalidOperationException(f"Bucket columns - [{', '.join(missing)}] doesn't match with any table columns")


def check_change(old: Table, new: Table, settings: CatalogSettings, environment_context: EnvironmentOptions) -> None:
    """Checks the differences between the tables. Raises InvalidOperationException."""
    if is_view(old):
        # A view's columns come from its query.
        return
    _check_column_types(old, new, settings)
    if environment_context.changes_partition_keys:
        return
    if _names(old.partitionKeys) != _names(new.partitionKeys):
        raise InvalidOperationException("partition keys can not be changed.")


def _check_column_types(old: Table, new: Table, settings: CatalogSettings) -> None:
    if not settings.disallow_incompatible_column_type_changes:
        return
    serde = new.sd.serdeInfo.serializationLib if new.sd.serdeInfo is not None else None
    if serde in settings.serdes_with_free_type_changes:
        return
    wrong = incompatible_columns((old.sd.cols if old.sd is not None else None) or [], new.sd.cols)
    if wrong:
        raise InvalidOperationException(
            "The following columns have types incompatible with the existing columns in their respective positions :\n"
            + ",".join(wrong)
        )


def _names(keys: Sequence[FieldSchema] | None) -> list[str]:
    """Names of partition keys; their types and comments may change."""
    return [key.name.lower() for key in keys or ()]
