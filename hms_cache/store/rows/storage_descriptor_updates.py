"""Changes thousands of storage descriptors: writes only differences, in few statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select, update

from hms_cache.batches import batches
from hms_cache.store.engine.bulk_writes import (
    IDS_IN_A_STATEMENT,
    ParameterChange,
    change_parameters,
    in_ids,
    insert_rows,
    upsert_rows,
)
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.rows.storage_descriptor_writes import (
    delete_unused_column_descriptors,
    descriptor_values,
    insert_columns,
    replace_lists,
    serde_values,
)
from hms_cache.store.rows.storage_descriptors import ColumnsKey, columns_key
from hms_cache.store.schema import SD_PARAMS, SDS, SERDE_PARAMS, SERDES
from hms_cache.thrift_gen.hive_metastore.ttypes import StorageDescriptor
from hms_cache.values import frozen

_SERDE_IDS = select(SDS.c.SD_ID, SDS.c.SERDE_ID).where(in_ids(SDS.c.SD_ID))


@frozen
class DescriptorChange:
    """A stored descriptor, and its new value, which has a serde."""

    sd_id: int
    column_descriptor_id: int | None
    before: StorageDescriptor
    after: StorageDescriptor


def update_storage_descriptors(
    transaction: WriteTransaction,
    changes: Sequence[DescriptorChange],
    *,
    column_descriptors: Mapping[ColumnsKey, int] | None = None,
) -> None:
    """Changes the rows of the descriptors to `after`.

    Unchanged columns keep their column descriptor. Changed ones get the one in `column_descriptors` if they are in it,
    otherwise a new one, which equal columns share. The columns of an existing column descriptor never change (Hive's
    `ObjectStore.copyMSD`). Column descriptors without references are deleted.
    """
    connection = transaction.connection
    new_cd_ids = _new_column_descriptors(transaction, changes, dict(column_descriptors or {}))
    upsert_rows(
        connection,
        SDS,
        [
            {"SD_ID": change.sd_id, "CD_ID": cd_id, **descriptor_values(change.after)}
            for change, cd_id in zip(changes, new_cd_ids, strict=True)
            if cd_id != change.column_descriptor_id
            or descriptor_values(change.after) != descriptor_values(change.before)
        ],
    )
    change_parameters(
        connection,
        SD_PARAMS,
        "SD_ID",
        [ParameterChange(one.sd_id, one.before.parameters or {}, one.after.parameters or {}) for one in changes],
    )
    _add_serdes(transaction, [change for change in changes if change.before.serdeInfo is None])
    _update_serdes(connection, [change for change in changes if change.before.serdeInfo is not None])
    replace_lists(transaction, ((one.sd_id, one.before, one.after) for one in changes))
    gone = {one.column_descriptor_id for one in changes if one.column_descriptor_id is not None} - set(new_cd_ids)
    if gone:
        delete_unused_column_descriptors(connection, {cd_id for cd_id in gone if cd_id is not None})


def _new_column_descriptors(
    transaction: WriteTransaction, changes: Sequence[DescriptorChange], known: dict[ColumnsKey, int]
) -> list[int | None]:
    """The new column descriptor of each change. New ones are inserted."""
    found: list[int | None] = []
    for change in changes:
        before, after = change.before.cols, change.after.cols
        if after is before or (before is not None and after is not None and columns_key(before) == columns_key(after)):
            found.append(change.column_descriptor_id)
            continue
        if after is None:
            found.append(None)
            continue
        key = columns_key(after)
        if key not in known:
            known[key] = insert_columns(transaction, after)
        found.append(known[key])
    return found


def _add_serdes(transaction: WriteTransaction, changes: Sequence[DescriptorChange]) -> None:
    """Adds serdes to descriptors that another program stored without one."""
    if not changes:
        return
    serde_ids = transaction.ids("MSerDeInfo", len(changes))
    found = list(zip(serde_ids, changes, strict=True))
    insert_rows(
        transaction.connection,
        SERDES,
        [{"SERDE_ID": serde_id, **serde_values(change.after.serdeInfo)} for serde_id, change in found],
    )
    for serde_id, change in found:
        transaction.connection.execute(update(SDS).where(SDS.c.SD_ID == change.sd_id).values(SERDE_ID=serde_id))
    parameters = [ParameterChange(serde_id, {}, change.after.serdeInfo.parameters or {}) for serde_id, change in found]
    change_parameters(transaction.connection, SERDE_PARAMS, "SERDE_ID", parameters)


def _update_serdes(connection: Connection, changes: Sequence[DescriptorChange]) -> None:
    differing = [
        change
        for change in changes
        if change.after.serdeInfo is not change.before.serdeInfo
        and (
            serde_values(change.after.serdeInfo) != serde_values(change.before.serdeInfo)
            or (change.after.serdeInfo.parameters or {}) != (change.before.serdeInfo.parameters or {})
        )
    ]
    if not differing:
        return
    serde_ids: dict[int, int] = {}
    for batch in batches([change.sd_id for change in differing], IDS_IN_A_STATEMENT):
        serde_ids.update((row[0], row[1]) for row in connection.execute(_SERDE_IDS, {"ids": list(batch)}))
    upsert_rows(
        connection,
        SERDES,
        [
            {"SERDE_ID": serde_ids[change.sd_id], **serde_values(change.after.serdeInfo)}
            for change in differing
            if serde_values(change.after.serdeInfo) != serde_values(change.before.serdeInfo)
        ],
    )
    change_parameters(
        connection,
        SERDE_PARAMS,
        "SERDE_ID",
        [
            ParameterChange(
                serde_ids[change.sd_id],
                change.before.serdeInfo.parameters or {},
                change.after.serdeInfo.parameters or {},
            )
            for change in differing
        ],
    )
