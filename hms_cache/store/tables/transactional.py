"""The parameters that make a table transactional. Facts: `TransactionalValidationListener` (Hive 4.0)."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from hms_cache.config.sections import CatalogSettings
from hms_cache.store.rows.table_rows import EXTERNAL_TABLE, MANAGED_TABLE
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Table

TRANSACTIONAL = "transactional"
PROPERTIES = "transactional_properties"
DEFAULT, INSERT_ONLY = "default", "insert_only"

FIRST_WRITE_ID_AFTER_CONVERSION = 10_000_000
"""Write ids of a converted table begin above this: files from before the conversion have lower ones."""


def is_full_acid(table: Table) -> bool:
    """Whether rows of the table can be updated: transactional, and not insert-only."""
    parameters = table.parameters or {}
    is_transactional = str(parameters.get(TRANSACTIONAL, "")).lower() == "true"
    return is_transactional and str(parameters.get(PROPERTIES, "")).lower() != INSERT_ONLY


def check_created_table(table: Table, settings: CatalogSettings) -> None:
    """Normalizes the parameters of a new table. Raises MetaException if it cannot be transactional."""
    value = _pop(table.parameters, TRANSACTIONAL)
    if value is None or value.lower() == "false":
        return
    if value.lower() != "true":
        raise MetaException(f"'transactional' property of TBLPROPERTIES may only have value 'true': {_name(table)}")
    properties = _get(table.parameters, PROPERTIES)
    _require_suitable(table, properties, settings)
    if properties is None:
        table.parameters[PROPERTIES] = DEFAULT
    _normalize_properties(table)
    table.parameters[TRANSACTIONAL] = "true"
    _require_unsorted(table)


def check_altered_table(old: Table, new: Table, settings: CatalogSettings) -> bool:
    """Normalizes the parameters of a changed table; returns whether the change makes it full ACID.

    Raises MetaException if it cannot become transactional, or cannot cease to be.
    """
    if not new.parameters:
        return False
    value = _pop(new.parameters, TRANSACTIONAL)
    if value is not None and value.lower() == "false":
        value = None
    properties = _get(new.parameters, PROPERTIES)
    old_value, old_properties = _get(old.parameters, TRANSACTIONAL), _get(old.parameters, PROPERTIES)
    was_insert_only = str(old_properties or "").lower() == INSERT_ONLY
    if value is not None:
        if old.tableType == MANAGED_TABLE and new.tableType == EXTERNAL_TABLE:
            raise MetaException(f"{_name(new)} cannot be converted to external table as it is transactional table.")
        new.parameters[TRANSACTIONAL] = value
    is_conversion = str(value).lower() == "true" and str(old_value).lower() != "true"
    if is_conversion:
        if properties is None:
            new.parameters[PROPERTIES] = properties = DEFAULT
        _require_suitable(new, properties, settings)
    elif str(value).lower() != str(old_value).lower() and not was_insert_only:
        raise MetaException(f"TBLPROPERTIES with 'transactional'='true' cannot be unset: {_name(new)}")
    if properties is not None:
        if old_value is None:
            _normalize_properties(new)
        elif properties.lower() != str(old_properties).lower() and not was_insert_only:
            raise MetaException(
                "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is created"
            )
    _require_unsorted(new)
    return is_full_acid(new) and str(old_value).lower() != "true"


def _require_suitable(table: Table, properties: str | None, settings: CatalogSettings) -> None:
    formats = {table.sd.inputFormat, table.sd.outputFormat}
    if str(properties).lower() != INSERT_ONLY and not formats.issubset(settings.acid_formats):
        raise MetaException(f"The table must be stored using an ACID compliant format (such as ORC): {_name(table)}")
    if table.tableType == EXTERNAL_TABLE:
        raise MetaException(f"{_name(table)} cannot be declared transactional because it's an external table")


def _normalize_properties(table: Table) -> None:
    properties = _pop(table.parameters, PROPERTIES)
    if properties is None:
        return
    if properties.lower() not in (DEFAULT, INSERT_ONLY):
        raise MetaException(
            f"Invalid transactional properties specified for {_name(table)} with the error "
            f"unknown value {properties.lower()} for transactional_properties"
        )
    table.parameters[PROPERTIES] = properties.lower()


def _require_unsorted(table: Table) -> None:
    if is_full_acid(table) and table.sd.sortCols:
        raise MetaException(f"Table {_name(table)} cannot support full ACID functionality since it is sorted.")


def _get(parameters: Mapping[str, str] | None, name: str) -> str | None:
    """The parameter's value; its name is case-insensitive."""
    for key, value in (parameters or {}).items():
        if key.lower() == name:
            return value
    return None


def _pop(parameters: MutableMapping[str, str], name: str) -> str | None:
    """Removes the parameter and returns its value; its name is case-insensitive."""
    value = None
    for key in [key for key in parameters if key.lower() == name]:
        value = parameters.pop(key)
    return value


def _name(table: Table) -> str:
    return f"{table.dbName}.{table.tableName}"
