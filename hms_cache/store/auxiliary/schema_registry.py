"""The schema registry: named schemas, their versions, and serdes by name. Facts: `HMSHandler`, `ObjectStore` (4.0.1).

Names are stored in lower case. Nothing here has events or is cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.batches import batches
from hms_cache.metadata.enumerations import known
from hms_cache.metadata.names import DEFAULT_CATALOG, normalize_catalog, normalize_identifier
from hms_cache.store.engine.bulk_writes import IDS_IN_A_STATEMENT, in_ids, insert_rows
from hms_cache.store.engine.context import PartOfStore
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.listing import limited, listed
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.rows.database_rows import lock_database
from hms_cache.store.rows.name_locks import hold_names
from hms_cache.store.rows.storage_descriptor_writes import insert_columns, serde_values
from hms_cache.store.schema import CDS, COLUMNS_V2, DBS, I_SCHEMA, SCHEMA_VERSION, SERDE_PARAMS, SERDES
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    FieldSchema,
    InvalidOperationException,
    ISchema,
    ISchemaName,
    MetaException,
    NoSuchObjectException,
    SchemaCompatibility,
    SchemaType,
    SchemaValidation,
    SchemaVersion,
    SchemaVersionDescriptor,
    SchemaVersionState,
    SerDeInfo,
)

_NO_STATE = 0
"""Hive's value for a version without a state; the protocol's states begin with 1."""

_SCHEMAS = select(*I_SCHEMA.c, DBS.c.NAME.label("DATABASE_NAME"), DBS.c.CTLG_NAME).join(
    DBS, DBS.c.DB_ID == I_SCHEMA.c.DB_ID
)
_VERSIONS = (
    select(
        *(column for column in SCHEMA_VERSION.c), I_SCHEMA.c.NAME, DBS.c.NAME.label("DATABASE_NAME"), DBS.c.CTLG_NAME
    )
    .select_from(
        SCHEMA_VERSION.join(I_SCHEMA, I_SCHEMA.c.SCHEMA_ID == SCHEMA_VERSION.c.SCHEMA_ID).join(
            DBS, DBS.c.DB_ID == I_SCHEMA.c.DB_ID
        )
    )
    .order_by(I_SCHEMA.c.NAME, SCHEMA_VERSION.c.VERSION.desc())
)


class SchemaRegistry(PartOfStore):
    """Reads and writes of schemas and serdes. Thread-safe; each method is one transaction."""

    def create_schema(self, new: ISchema) -> None:
        """Creates a schema.

        :raises NoSuchObjectException: no such database.
        :raises AlreadyExistsException: it exists.
        """
        name = ISchemaName(new.catName, new.dbName, new.name)
        exists = AlreadyExistsException(f"Schema with name {new.dbName}.{new.name} already exists")

        def work(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            catalog, database, schema = _names(name)
            # Only PostgreSQL has a unique key for schemas: this lock serializes two calls that create the same one.
            found = lock_database(connection, catalog, database)
            if found is None:
                raise NoSuchObjectException(f"There is no database {catalog}.{database}")
            if _schema_row(connection, name) is not None:
                raise exists
            values = {
                "SCHEMA_ID": transaction.id("MISchema"),
                "SCHEMA_TYPE": new.schemaType,
                "NAME": schema,
                "DB_ID": found.database_id,
                "SCHEMA_GROUP": new.schemaGroup,
                "DESCRIPTION": new.description,
                **_policy(new),
            }
            if known(SchemaType, new.schemaType) is None:
                raise MetaException(f"Schema {schema} needs a type")
            try:
                connection.execute(insert(I_SCHEMA).values(values))
            except IntegrityError as error:
                raise exists from error

        run_write(self._database, work)

    def alter_schema(self, name: ISchemaName, new: ISchema) -> None:
        """Changes its policy, and group and description if they are set.

        :raises NoSuchObjectException: it does not exist.
        """
        values = _policy(new)
        if new.schemaGroup is not None:
            values["SCHEMA_GROUP"] = new.schemaGroup
        if new.description is not None:
            values["DESCRIPTION"] = new.description

        def work(transaction: WriteTransaction) -> None:
            row = _schema_row(transaction.connection, name)
            if row is None:
                raise NoSuchObjectException(f"Could not find schema {_text(name)}")
            is_it = I_SCHEMA.c.SCHEMA_ID == row.SCHEMA_ID
            transaction.connection.execute(update(I_SCHEMA).where(is_it).values(values))

        run_write(self._database, work)

    def get_schema(self, name: ISchemaName) -> ISchema:
        """:raises NoSuchObjectException: it does not exist."""
        row = run_read(self._database, lambda connection: _schema_row(connection, name))
        if row is None:
            raise NoSuchObjectException(f"No schema named {_text(name)} exists")
        return ISchema(
            row.SCHEMA_TYPE,
            row.NAME,
            row.CTLG_NAME,
            row.DATABASE_NAME,
            row.COMPATIBILITY,
            row.VALIDATION_LEVEL,
            bool(row.CAN_EVOLVE),
            row.SCHEMA_GROUP,
            row.DESCRIPTION,
        )

    def drop_schema(self, name: ISchemaName) -> None:
        """Drops a schema.

        :raises NoSuchObjectException: it does not exist.
        :raises InvalidOperationException: it has versions.
        """

        def work(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            row = _schema_row(connection, name)
            if row is None:
                raise NoSuchObjectException(f"Schema {_text(name)} does not exist")
            in_use = InvalidOperationException(
                f"Schema {_text(name)} cannot be dropped, it has at least one valid version"
            )
            is_of_it = SCHEMA_VERSION.c.SCHEMA_ID == row.SCHEMA_ID
            if connection.execute(select(SCHEMA_VERSION.c.SCHEMA_VERSION_ID).where(is_of_it).limit(1)).first():
                raise in_use
            try:
                connection.execute(delete(I_SCHEMA).where(I_SCHEMA.c.SCHEMA_ID == row.SCHEMA_ID))
            except IntegrityError as error:
                raise in_use from error

        run_write(self._database, work)

    def add_version(self, new: SchemaVersion) -> None:
        """Adds a version. Without a number it is version 0; without a state it has none, as in Hive.

        :raises NoSuchObjectException: no such schema.
        :raises AlreadyExistsException: the version exists.
        """
        exists = AlreadyExistsException(f"Schema name {_text(new.schema)} version {new.version} already exists")

        def work(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            schema = _schema_row(connection, new.schema)
            if schema is None or not _lock_schema(connection, schema.SCHEMA_ID):
                raise NoSuchObjectException(f"No schema named {_text(new.schema)}")
            if _version_row(connection, SchemaVersionDescriptor(new.schema, new.version)) is not None:
                raise exists
            values = {
                "SCHEMA_VERSION_ID": transaction.id("MSchemaVersion"),
                "SCHEMA_ID": schema.SCHEMA_ID,
                "VERSION": new.version or 0,
                "CREATED_AT": new.createdAt or 0,
                "CD_ID": insert_columns(transaction, new.cols or []),
                "STATE": known(SchemaVersionState, new.state) or _NO_STATE,
                "DESCRIPTION": new.description,
                "SCHEMA_TEXT": new.schemaText,
                "FINGERPRINT": new.fingerprint,
                "SCHEMA_VERSION_NAME": new.name,
                "SERDE_ID": None if new.serDe is None else _insert_serde(transaction, new.serDe),
            }
            try:
                connection.execute(insert(SCHEMA_VERSION).values(values))
            except IntegrityError as error:
                raise exists from error

        run_write(self._database, work)

    def get_version(self, descriptor: SchemaVersionDescriptor) -> SchemaVersion:
        """:raises NoSuchObjectException: it does not exist."""
        found = self._read_versions(_version(descriptor))
        if not found:
            raise NoSuchObjectException(f"{_no_version(descriptor).message} exists")
        return found[0]

    def get_latest_version(self, name: ISchemaName) -> SchemaVersion:
        """The version with the highest number. :raises NoSuchObjectException: there is none."""
        return self.get_all_versions(name)[0]

    def get_all_versions(self, name: ISchemaName) -> list[SchemaVersion]:
        """All versions, the highest number first. :raises NoSuchObjectException: there are none."""
        found = self._read_versions(_VERSIONS.where(*_of_schema(name)))
        if not found:
            raise NoSuchObjectException(f"No versions of schema {_text(name)} exist")
        return found

    def drop_version(self, descriptor: SchemaVersionDescriptor) -> None:
        """Drops a version with its columns. Serdes are kept, since others may use them.

        :raises NoSuchObjectException: it does not exist.
        """

        def work(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            row = _required_version(connection, descriptor)
            is_it = SCHEMA_VERSION.c.SCHEMA_VERSION_ID == row.SCHEMA_VERSION_ID
            connection.execute(delete(SCHEMA_VERSION).where(is_it))
            if row.CD_ID is not None:
                connection.execute(delete(COLUMNS_V2).where(COLUMNS_V2.c.CD_ID == row.CD_ID))
                connection.execute(delete(CDS).where(CDS.c.CD_ID == row.CD_ID))

        run_write(self._database, work)

    def find_versions(
        self, column: str | None, namespace: str | None, kind: str | None
    ) -> list[SchemaVersionDescriptor]:
        """The versions with such a column, by schema, newest first.

        :param namespace: text in the column's comment, case-sensitive.
        :param kind: the column's type, case-insensitive, as in Hive on MySQL.
        :raises MetaException: neither name nor namespace is given.
        """
        if column is None and namespace is None:
            raise MetaException("You must specify column name or column namespace, else your query may be too large")
        conditions: list[ColumnElement[bool]] = []
        if column is not None:
            conditions.append(COLUMNS_V2.c.COLUMN_NAME == normalize_identifier(column))
        if namespace is not None:
            conditions.append(same_text(COLUMNS_V2.c.COMMENT, namespace))
        if kind is not None:
            conditions.append(same_text(func.lower(COLUMNS_V2.c.TYPE_NAME), kind.lower()))
        matching = select(COLUMNS_V2.c.CD_ID).where(*conditions)
        statement = _VERSIONS.where(SCHEMA_VERSION.c.CD_ID.in_(matching))
        rows = run_read(self._database, lambda connection: connection.execute(limited(statement)).all())
        return [SchemaVersionDescriptor(_name(row), row.VERSION) for row in listed(rows, "versions of schemas")]

    def map_version_to_serde(self, descriptor: SchemaVersionDescriptor, serde: str) -> None:
        """Sets a version's serde. :raises NoSuchObjectException: no such version or serde."""

        def work(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            row = _required_version(connection, descriptor)
            serde_id = _serde_id(connection, serde)
            if serde_id is None:
                raise NoSuchObjectException(f"No SerDe named {serde}")
            is_it = SCHEMA_VERSION.c.SCHEMA_VERSION_ID == row.SCHEMA_VERSION_ID
            try:
                connection.execute(update(SCHEMA_VERSION).where(is_it).values(SERDE_ID=serde_id))
            except IntegrityError as error:
                raise RetryableConflict(f"the table that has serde {serde} was dropped") from error

        run_write(self._database, work)

    def set_version_state(self, descriptor: SchemaVersionDescriptor, state: int | None) -> None:
        """Sets the state; any transition is allowed. None leaves it unchanged. :raises NoSuchObjectException: no such
        version."""

        def work(transaction: WriteTransaction) -> None:
            row = _required_version(transaction.connection, descriptor)
            is_it = SCHEMA_VERSION.c.SCHEMA_VERSION_ID == row.SCHEMA_VERSION_ID
            if known(SchemaVersionState, state) is not None:
                transaction.connection.execute(update(SCHEMA_VERSION).where(is_it).values(STATE=state))

        run_write(self._database, work)

    def add_serde(self, serde: SerDeInfo) -> None:
        """Adds a serde. :raises AlreadyExistsException: one with this name exists."""
        if not serde.name:
            raise MetaException("A serde needs a name")

        def work(transaction: WriteTransaction) -> None:
            hold_names(transaction.connection)
            if _serde_id(transaction.connection, serde.name) is not None:
                raise AlreadyExistsException(f"Serde with name {serde.name} already exists")
            _insert_serde(transaction, serde)

        run_write(self._database, work)

    def get_serde(self, name: str) -> SerDeInfo:
        """:raises NoSuchObjectException: it does not exist."""

        def read(connection: Connection) -> SerDeInfo | None:
            serde_id = _serde_id(connection, name)
            return None if serde_id is None else _read_serdes(connection, [serde_id])[serde_id]

        found = run_read(self._database, read)
        if found is None:
            raise NoSuchObjectException(f"No SerDe named {name}")
        return found

    def _read_versions(self, statement: Select[Any]) -> list[SchemaVersion]:
        def read(connection: Connection) -> list[SchemaVersion]:
            rows = listed(connection.execute(limited(statement)).all(), "versions of a schema")
            columns: dict[int, list[FieldSchema]] = {}
            fields = COLUMNS_V2.c
            of_versions = (
                select(fields.CD_ID, fields.COLUMN_NAME, fields.TYPE_NAME, fields.COMMENT)
                .where(in_ids(fields.CD_ID))
                .order_by(fields.CD_ID, fields.INTEGER_IDX)
            )
            for some in batches([row.CD_ID for row in rows if row.CD_ID is not None], IDS_IN_A_STATEMENT):
                for cd_id, *field in connection.execute(of_versions, {"ids": list(some)}):
                    columns.setdefault(cd_id, []).append(FieldSchema(*field))
            serdes = _read_serdes(connection, [row.SERDE_ID for row in rows if row.SERDE_ID is not None])
            return [
                SchemaVersion(
                    _name(row),
                    row.VERSION,
                    row.CREATED_AT,
                    columns.get(row.CD_ID, []),
                    row.STATE or None,
                    row.DESCRIPTION,
                    row.SCHEMA_TEXT,
                    row.FINGERPRINT,
                    row.SCHEMA_VERSION_NAME,
                    serdes.get(row.SERDE_ID),
                )
                for row in rows
            ]

        return run_read(self._database, read)


def _names(name: ISchemaName) -> tuple[str, str, str]:
    if name.dbName is None or name.schemaName is None:
        raise MetaException("A schema needs a database and a name")
    catalog = normalize_catalog(name.catName or DEFAULT_CATALOG)
    return catalog, normalize_identifier(name.dbName), normalize_identifier(name.schemaName)


def _name(row: Any) -> ISchemaName:
    return ISchemaName(row.CTLG_NAME, row.DATABASE_NAME, row.NAME)


def _text(name: ISchemaName) -> str:
    """The text of the struct in Java, as in Hive's messages."""
    return f"ISchemaName(catName:{name.catName}, dbName:{name.dbName}, schemaName:{name.schemaName})"


def _no_version(descriptor: SchemaVersionDescriptor) -> NoSuchObjectException:
    text = f"SchemaVersionDescriptor(schema:{_text(descriptor.schema)}, version:{descriptor.version})"
    return NoSuchObjectException(f"No schema version {text}")


def _policy(schema: ISchema) -> dict[str, Any]:
    policy = known(SchemaCompatibility, schema.compatibility), known(SchemaValidation, schema.validationLevel)
    if None in policy:
        raise MetaException(f"Schema {schema.name} needs a compatibility and a validation level")
    return {
        "COMPATIBILITY": schema.compatibility,
        "VALIDATION_LEVEL": schema.validationLevel,
        "CAN_EVOLVE": bool(schema.canEvolve),
    }


def _of_schema(name: ISchemaName) -> list[ColumnElement[bool]]:
    catalog, database, schema = _names(name)
    return [same_text(I_SCHEMA.c.NAME, schema), DBS.c.NAME == database, DBS.c.CTLG_NAME == catalog]


def _schema_row(connection: Connection, name: ISchemaName) -> Any:
    return connection.execute(_SCHEMAS.where(*_of_schema(name))).first()


def _lock_schema(connection: Connection, schema_id: int) -> bool:
    """Whether it still exists. Its row is locked against a drop and new versions until this transaction ends."""
    is_it = I_SCHEMA.c.SCHEMA_ID == schema_id
    return connection.execute(select(I_SCHEMA.c.SCHEMA_ID).where(is_it).with_for_update()).first() is not None


def _version(descriptor: SchemaVersionDescriptor) -> Select[Any]:
    return _VERSIONS.where(*_of_schema(descriptor.schema), SCHEMA_VERSION.c.VERSION == (descriptor.version or 0))


def _version_row(connection: Connection, descriptor: SchemaVersionDescriptor) -> Any:
    return connection.execute(_version(descriptor)).first()


def _required_version(connection: Connection, descriptor: SchemaVersionDescriptor) -> Any:
    row = _version_row(connection, descriptor)
    if row is None:
        raise _no_version(descriptor)
    return row


def _serde_id(connection: Connection, name: str) -> int | None:
    statement = select(SERDES.c.SERDE_ID).where(same_text(SERDES.c.NAME, name)).order_by(SERDES.c.SERDE_ID)
    found: int | None = connection.execute(statement).scalars().first()
    return found


def _insert_serde(transaction: WriteTransaction, serde: SerDeInfo) -> int:
    serde_id = transaction.id("MSerDeInfo")
    transaction.connection.execute(insert(SERDES).values(SERDE_ID=serde_id, **serde_values(serde)))
    rows = [
        {"SERDE_ID": serde_id, "PARAM_KEY": key, "PARAM_VALUE": value}
        for key, value in (serde.parameters or {}).items()
    ]
    insert_rows(transaction.connection, SERDE_PARAMS, rows)
    return serde_id


def _read_serdes(connection: Connection, ids: Sequence[int]) -> dict[int, SerDeInfo]:
    found: dict[int, SerDeInfo] = {}
    has_value = SERDE_PARAMS.c.PARAM_VALUE.is_not(None)
    for some in batches(sorted(set(ids)), IDS_IN_A_STATEMENT):
        named = {"ids": list(some)}
        for s in connection.execute(select(SERDES).where(in_ids(SERDES.c.SERDE_ID)), named):
            # 0 means no type.
            found[s.SERDE_ID] = SerDeInfo(
                s.NAME, s.SLIB, {}, s.DESCRIPTION, s.SERIALIZER_CLASS, s.DESERIALIZER_CLASS, s.SERDE_TYPE or None
            )
        for row in connection.execute(select(SERDE_PARAMS).where(in_ids(SERDE_PARAMS.c.SERDE_ID), has_value), named):
            found[row.SERDE_ID].parameters[row.PARAM_KEY] = row.PARAM_VALUE
    return found
