"""Columns of tables, where they are kept. Facts: `HMSHandler.get_fields`, `DefaultStorageSchemaReader` (Hive 4.0.1)."""

from __future__ import annotations

from hms_cache.store.settings import StoreSettings
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, MetaException, Table


def fields_of(table: Table, settings: StoreSettings) -> list[FieldSchema]:
    """The columns without the partition keys.

    A serde that is not among `StoreSettings.serdes_using_metastore_for_schema` may have a schema of its own, beside
    which the stored columns are what they were when the table was created.

    :raises MetaException: the serde's schema would have to be read, and `storage_schema_reader` is ``refuse``.
    """
    serde = table.sd.serdeInfo.serializationLib if table.sd is not None and table.sd.serdeInfo is not None else None
    is_stored = serde is None or serde in settings.serdes_using_metastore_for_schema
    if not is_stored and settings.storage_schema_reader == "refuse":
        raise MetaException("java.lang.UnsupportedOperationException: Storage schema reading not supported")
    return list((table.sd.cols if table.sd is not None else None) or [])
