"""Tables whose partitions are not managed by jobs: their partitions are not determined by directories."""

from __future__ import annotations

from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.thrift_gen.hive_metastore.ttypes import Table

_OTHER_ENGINES = {"iceberg": "Iceberg", "delta": "Delta Lake", "hudi": "Hudi"}


def refusal(table: Table) -> str | None:
    """Why jobs must not change this table's partitions; None if they may."""
    if table.tableType == "MATERIALIZED_VIEW":
        return "it is a materialized view: ALTER MATERIALIZED VIEW … REBUILD of Hive writes its partitions"
    parameters = table.parameters or {}
    for name in (parameters.get("table_type"), parameters.get("spark.sql.sources.provider")):
        engine = _OTHER_ENGINES.get((name or "").lower())
        if engine is not None:
            return f"{engine} keeps its own partitions"
    input_format = (table.sd.inputFormat if table.sd is not None else None) or ""
    if "hoodie" in input_format.lower():  # synchronized without Spark's parameters, as by Flink and Hive
        return "Hudi keeps its own partitions"
    if parameters.get("storage_handler"):
        return f"its partitions are those of {parameters['storage_handler']}"
    if is_transactional(table):
        return "it is transactional: MSCK of Hive takes the lock and the write ids that this needs"
    return None
