"""All scenarios by name."""

from __future__ import annotations

from tests.differential.scenarios import (
    constraints,
    databases,
    functions,
    partition_changes,
    partitions,
    privileges,
    statistics,
    tables,
    workload,
)

SCENARIOS = {
    f"{module.__name__.rpartition('.')[2]}.{scenario.name}": scenario
    for module in (
        databases,
        tables,
        partitions,
        partition_changes,
        statistics,
        constraints,
        functions,
        privileges,
        workload,
    )
    for scenario in module.SCENARIOS
}
