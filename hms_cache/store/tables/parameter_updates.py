"""Changes parameters of several tables at once, all or none, as a commit over several tables needs.

Facts: `update_table_params` (Hive after 4.2), `ObjectStore.updateTableParams`. It changes nothing except the
parameters: no statistics, no directories, no `transient_lastDdlTime`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_catalog, normalize_identifier
from hms_cache.store.contract.environment import ExpectedParameter
from hms_cache.store.engine.context import PartOfStore
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.rows.storage_descriptor_writes import write_parameters
from hms_cache.store.rows.table_locks import lock_table
from hms_cache.store.schema import TABLE_PARAMS
from hms_cache.store.tables.changes import check_expected_parameter
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException, TableParamsUpdate


class TableParameterUpdates(PartOfStore):
    """`update_table_parameters`."""

    def update_table_parameters(self, updates: Sequence[TableParamsUpdate]) -> None:
        """See `TableWrites.update_table_parameters`."""
        # In order of names, so that two calls that change the same tables cannot deadlock.
        ordered = sorted(updates, key=_names)

        def work(transaction: WriteTransaction) -> None:
            for one in ordered:
                self._update(transaction, one)

        if ordered:
            run_write(self._database, work)

    def _update(self, transaction: WriteTransaction, request: TableParamsUpdate) -> None:
        connection, names = transaction.connection, _names(request)
        row = lock_table(connection, *names)
        if row is None:
            raise NoSuchObjectException(f"{'.'.join(names)} table not found")
        after = copy.copy(row.table)
        before = dict(row.table.parameters or {})
        after.parameters = dict(sorted((before | (request.params or {})).items()))
        if request.expected_param_key is not None:
            expected = ExpectedParameter(request.expected_param_key, request.expected_param_value)
            check_expected_parameter(connection, row, after, expected)
        write_parameters(connection, TABLE_PARAMS, "TBL_ID", row.table_id, before, after.parameters)
        transaction.append_event(self._context.messages.build_alter_table(row.table, after))


def _names(update: TableParamsUpdate) -> tuple[str, str, str]:
    return (
        normalize_catalog(update.cat_name or DEFAULT_CATALOG),
        normalize_identifier(update.db_name),
        normalize_identifier(update.table_name),
    )
