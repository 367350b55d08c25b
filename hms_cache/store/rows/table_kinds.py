"""The meaning of a table's type and parameters. Facts: `MetaStoreUtils`, `TxnUtils` (Hive 3.1, 4.0)."""

from __future__ import annotations

from hms_cache.store.rows.table_rows import EXTERNAL_TABLE, MANAGED_TABLE, VIRTUAL_VIEW, guessed_type
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Table

_ICEBERG_STORAGE_HANDLER = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"


def is_parameter_true(table: Table, key: str) -> bool:
    """Whether the table parameter is TRUE, in any letter case."""
    return str((table.parameters or {}).get(key, "")).upper() == "TRUE"


def is_external(table: Table) -> bool:
    """Whether the metastore does not own the table's data: parameter EXTERNAL, or Iceberg's storage handler."""
    return (
        is_parameter_true(table, "EXTERNAL")
        or (table.parameters or {}).get("storage_handler") == _ICEBERG_STORAGE_HANDLER
        or table.tableType == EXTERNAL_TABLE
    )


def is_view(table: Table) -> bool:
    """Whether it is a view (not a materialized one)."""
    return bool(table.tableType == VIRTUAL_VIEW)


def is_transactional(table: Table) -> bool:
    """Whether writers of the table allocate write ids."""
    return is_parameter_true(table, "transactional")


def is_data_owned(table: Table) -> bool:
    """Whether a drop of the table may delete its data: managed, or external with `external.table.purge`."""
    return not is_view(table) and (not is_external(table) or is_parameter_true(table, "external.table.purge"))


def is_trash_skipped(table: Table) -> bool:
    """Whether its data is never moved to the trash (`auto.purge`, `skip.trash`)."""
    return is_parameter_true(table, "auto.purge") or is_parameter_true(table, "skip.trash")


def require_descriptor(table: Table) -> None:
    """Raises MetaException for a table that another program created without a storage descriptor. Such a table can be
    read and dropped; Hive fails on anything else."""
    if table.sd is None:
        raise MetaException(f"Table {table.catName}.{table.dbName}.{table.tableName} has no storage descriptor")


def stored_type(table: Table) -> str | None:
    """The type to store: the parameter EXTERNAL decides between managed and external (`convertToMTable`).

    Clients that write every field send empty texts for unset ones. If a table without a type has an empty view text,
    readers would take it for a view, so the type is stored; otherwise it is left to readers, as in Hive.
    """
    if table.tableType == "" or (table.tableType is None and table.viewOriginalText == ""):
        return guessed_type(table.viewOriginalText or None, table.parameters or {})
    if table.tableType == MANAGED_TABLE and is_parameter_true(table, "EXTERNAL"):
        return EXTERNAL_TABLE
    if table.tableType == EXTERNAL_TABLE and not is_parameter_true(table, "EXTERNAL"):
        return MANAGED_TABLE
    return str(table.tableType) if table.tableType is not None else None
