"""All handlers in one table."""

from __future__ import annotations

from hms_cache.server.calls import Handler, HandlerTable
from hms_cache.server.handlers import (
    constraints,
    data_connectors,
    databases,
    functions,
    notifications,
    partition_changes,
    partition_names,
    partitions,
    privileges,
    procedures,
    properties,
    reports,
    resource_plans,
    scheduled_queries,
    schema_registry,
    service,
    statistics,
    tables,
    tokens,
    transactions,
)

METHODS_NOT_SERVED = frozenset({"add_index", "alter_index", "drop_index_by_name"})
"""Methods of the protocol that are answered with UNKNOWN_METHOD, as in every Hive since 3.0: indexes were removed from
Hive (HIVE-18448), together with their tables. Clients that ask for indexes get the answer that there are none."""

_MODULES: tuple[HandlerTable, ...] = (
    service.handlers,
    databases.handlers,
    tables.handlers,
    partitions.handlers,
    partition_names.handlers,
    partition_changes.handlers,
    statistics.handlers,
    constraints.handlers,
    functions.handlers,
    notifications.handlers,
    transactions.handlers,
    privileges.handlers,
    tokens.handlers,
    data_connectors.handlers,
    procedures.handlers,
    properties.handlers,
    reports.handlers,
    schema_registry.handlers,
    resource_plans.handlers,
    scheduled_queries.handlers,
)


def all_handlers() -> dict[str, Handler]:
    """Method name to handler. Raises ValueError when two modules claim one method."""
    table: dict[str, Handler] = {}
    for module in _MODULES:
        for name, handler in module.entries.items():
            if name in table:
                raise ValueError(f"two handlers for {name}")
            table[name] = handler
    return table
