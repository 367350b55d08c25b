"""Withdraws claims that statistics are exact, if they are known not to match the files.

Until then, Hive answers queries from them. The numbers are kept as estimates for planning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from hms_cache.batches import batches
from hms_cache.client import MetastoreClient
from hms_cache.jobs.frame import JobRun
from hms_cache.jobs.sources.catalog_reader import PartitionRange
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.jobs.statistics.data_files import RECORDED, Figures, Mark, UnitFiles
from hms_cache.jobs.statistics.missing_statistics import PARTITIONS_OF_A_SLICE
from hms_cache.jobs.statistics.plan import MERGED
from hms_cache.jobs.statistics.recording import Unit, is_withdrawn, record_partitions, record_table, withdrawn
from hms_cache.metadata.object_names import name_of_table
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.thrift_gen.hive_metastore.ttypes import Table


def withdraw(run: JobRun, table: Table, files: Mapping[str | None, UnitFiles]) -> None:
    """Withdraws the claims for these partitions, or for the table (None), made when their files were as recorded; units
    written, altered or dropped since then are not changed. Raises the errors of the metastore."""
    units = [_unit(unit, found.location, found.recorded) for unit, found in files.items() if found.recorded is not None]
    if units:
        with MetastoreClient(run.metastores) as client:
            _withdraw(client, table, units, run.options["batch_partitions"])


def withdraw_of_table(run: JobRun, table: Table) -> None:
    """Withdraws all claims for a table that is now excluded, for example because its files were declared to begin with
    a header after its statistics were computed. Afterwards, nothing marks the table as computed. Raises the errors of
    the metastore."""
    metastore, parameters = run.metastores, table.parameters or {}
    if is_transactional(table):
        return  # earlier claims are not valid for any snapshot
    with MetastoreClient(metastore) as client:
        if not table.partitionKeys:
            mark = _mark(parameters)
            if mark is not None:
                _withdraw(client, table, [_unit(None, table.sd.location, mark.figures)], 1)
            return
        reader = MetastoreReader(metastore, fills_cache=False)
        try:
            name = name_of_table(table)
            for names in batches(reader.partition_names(name), PARTITIONS_OF_A_SLICE):
                units = []
                for partition, struct in reader.partitions(PartitionRange(name, names=tuple(names))):
                    mark = _mark(struct.parameters or {})
                    if mark is not None and struct.sd is not None:
                        units.append(_unit(partition, struct.sd.location, mark.figures))
                if units:
                    _withdraw(client, table, units, run.options["batch_partitions"])
        finally:
            reader.close()
        record_table(client, table, _without_merge, lambda found: MERGED not in found)


def _withdraw(client: MetastoreClient, table: Table, units: Sequence[Unit], size: int) -> None:
    if units[0].name is None:
        record_table(client, table, partial(withdrawn, units[0]), partial(is_withdrawn, units[0]))
        return
    for some in batches(units, size):
        record_partitions(client, table, some, change=withdrawn, is_done=is_withdrawn)


def _unit(name: str | None, location: str | None, figures: Figures) -> Unit:
    return Unit(name, 0, location or "", figures, ())


def _mark(parameters: Mapping[str, str]) -> Mark | None:
    """The mark of numbers that are still those of this job."""
    mark = Mark.read(parameters.get(RECORDED))
    is_own = mark is not None and parameters.get("numRows") == str(mark.rows)
    return mark if is_own else None


def _without_merge(parameters: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if name != MERGED}
