"""Determines the columns of tables, which may be stored outside the database.

Facts: `HMSHandler.get_fields`, `SerDeStorageSchemaReader`, `AvroSerDe` (Hive 3.1.3); `DefaultStorageSchemaReader`
(4.0.1).
"""

from __future__ import annotations

from hms_cache.store.avro_schemas import AvroSchemaError, columns_of_schema
from hms_cache.store.engine.context import StoreContext
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, MetaException, Table

AVRO_SERDE = "org.apache.hadoop.hive.serde2.avro.AvroSerDe"
SCHEMA_LITERAL = "avro.schema.literal"
SCHEMA_URL = "avro.schema.url"
NO_SCHEMA = "none"
"""Value that means no literal or url, with which a table can override that of its serde."""

_UNDETERMINED = (
    "org.apache.hadoop.hive.serde2.SerDeException Encountered AvroSerdeException determining schema. Returning signal "
    "schema to indicate problem: "
)


class StorageSchemas:
    """Determines the columns of a table. Thread-safe; has no state."""

    def __init__(self, context: StoreContext) -> None:
        self._settings = context.settings.catalog
        self._warehouse = context.warehouse

    def fields_of(self, table: Table) -> tuple[list[FieldSchema], bool]:
        """The columns without the partition keys, and whether they come from a file, which may change without an event.

        For an Avro table with `avro.schema.literal` or `avro.schema.url` they are the schema's; the stored columns are
        those at the table's creation. A url is read at every call, as in Hive, since the file may change. Columns of an
        Avro table without a schema always have a comment, possibly empty, as in Hive. Other serdes that are not in
        `catalog.serdes_using_metastore_for_schema` may have a schema that only their Java class knows; the stored
        columns are returned for them.

        :raises MetaException: the schema cannot be determined; or the serde's schema would have to be read, and
          `storage_schema_reader` is ``refuse``.
        """
        descriptor = table.sd
        serde = descriptor.serdeInfo.serializationLib if descriptor is not None and descriptor.serdeInfo else None
        if serde is not None and serde not in self._settings.serdes_using_metastore_for_schema:
            if self._settings.storage_schema_reader == "refuse":
                raise MetaException("java.lang.UnsupportedOperationException: Storage schema reading not supported")
            if serde == AVRO_SERDE:
                text, is_of_file = self._avro_schema(table)
                if text is not None:
                    return _columns(text), is_of_file
                return [FieldSchema(one.name, one.type, one.comment or "") for one in descriptor.cols or []], False
        return list((descriptor.cols if descriptor is not None else None) or []), False

    def _avro_schema(self, table: Table) -> tuple[str | None, bool]:
        """The text of the table's schema (None if its columns are the schema), and whether it comes from a file.

        Parameters of the table override those of its serde.
        """
        properties = {**(table.sd.serdeInfo.parameters or {}), **(table.parameters or {})}
        literal, url = properties.get(SCHEMA_LITERAL), properties.get(SCHEMA_URL)
        if literal is not None and literal != NO_SCHEMA:
            return literal, False
        if url is None:
            return None, False
        if url == NO_SCHEMA:
            raise MetaException(
                f"{_UNDETERMINED}Neither {SCHEMA_LITERAL} nor {SCHEMA_URL} specified, can't determine table schema"
            )
        try:
            place = self._warehouse.allow(self._warehouse.location(url))
            if place is None:
                # The client chooses the file: otherwise it could read any file of this machine.
                raise MetaException("it lies outside of the warehouse and warehouse.allowed_locations")
            data = self._warehouse.read_file(place, self._settings.schema_file_limit_bytes)
        except MetaException as error:
            raise MetaException(
                f"{_UNDETERMINED}Unable to read schema from given path: {url}: {error.message}"
            ) from error
        return data.decode("utf-8", "replace"), True


def _columns(text: str) -> list[FieldSchema]:
    try:
        return columns_of_schema(text)
    except AvroSchemaError as error:
        raise MetaException(f"{_UNDETERMINED}{error}") from error
