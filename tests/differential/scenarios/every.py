"""All scenarios by name."""

from __future__ import annotations

from tests.differential.scenarios import (
    auxiliary,
    client_fields,
    combined_fields,
    constraints,
    databases,
    expressions,
    functions,
    names,
    object_fields,
    partition_changes,
    partitions,
    privileges,
    read_fields,
    registry,
    spellings,
    statistics,
    tables,
    transactions,
    workload,
    writers,
    written_fields,
)

SCENARIOS = {
    f"{module.__name__.rpartition('.')[2]}.{scenario.name}": scenario
    for module in (
        databases,
        tables,
        partitions,
        partition_changes,
        expressions,
        statistics,
        constraints,
        functions,
        privileges,
        workload,
        registry,
        auxiliary,
        transactions,
        writers,
        spellings,
        combined_fields,
        client_fields,
        read_fields,
        object_fields,
        names,
        written_fields,
    )
    for scenario in module.SCENARIOS
}
