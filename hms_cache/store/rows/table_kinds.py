"""What a table's type and parameters mean. Facts: `MetaStoreUtils`, `TxnUtils` (Hive 3.1, 4.0)."""

from __future__ import annotations

from hms_cache.store.rows.table_rows import EXTERNAL_TABLE, MANAGED_TABLE, VIRTUAL_VIEW, guessed_type
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Table

_ICEBERG_STORAGE_HANDLER = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"


def is_parameter_true(table: Table, key: str) -> bool:
    """Whether the table parameter says TRUE, in any case."""
    return str((table.parameters or {}).get(key, "")).upper() == "TRUE"


def is_external(table: Table) -> bool:
    """Whether the table's data is not the metastore's: parameter EXTERNAL, or Iceberg's storage handler."""
    return (
        is_parameter_true(table, "EXTERNAL")
        or (table.parameters or {}).get("storage_handler") == _ICEBERG_STORAGE_HANDLER
        or table.tableType == EXTERNAL_TABLE
    )


def is_view(table: Table) -> bool:
    """Whether it is a view without data."""
    return bool(table.tableType == VIRTUAL_VIEW)


def is_transactional(table: Table) -> bool:
    """Whether writers of the table take write ids."""
    return is_parameter_true(table, "transactional")


def is_data_owned(table: Table) -> bool:
    """Whether dropping the table may delete its data: managed, or external with `external.table.purge`."""
    return not is_view(table) and (not is_external(table) or is_parameter_true(table, "external.table.purge"))


def is_trash_skipped(table: Table) -> bool:
    """Whether its data never goes to the trash (`auto.purge`, `skip.trash`)."""
    return is_parameter_true(table, "auto.purge") or is_parameter_true(table, "skip.trash")


def require_descriptor(table: Table) -> None:
    """Raises MetaException for a table without a storage descriptor, which another program made: it can be read and
    dropped, and Hive fails on anything else that is asked of it."""
    if table.sd is None:
        raise MetaException(f"Table {table.catName}.{table.dbName}.{table.tableName} has no storage descriptor")


def stored_type(table: Table) -> str | None:
    """The type to store: the parameter EXTERNAL decides between managed and external (`convertToMTable`).

    Clients that write every field send empty texts for what they do not set. Of a table without a type an empty text of
    a view would be taken for one when it is read, so the type is stored; otherwise it is left to readers, as in Hive.
    """
    if table.tableType == "" or (table.tableType is None and table.viewOriginalText == ""):
        return guessed_type(table.viewOriginalText or None, table.parameters or {})
    if table.tableType == MANAGED_TABLE and is_parameter_true(table, "EXTERNAL"):
        return EXTERNAL_TABLE
    if table.tableType == EXTERNAL_TABLE and not is_parameter_true(table, "EXTERNAL"):
        return MANAGED_TABLE
    return str(table.tableType) if table.tableType is not None else None
