"""Data connectors, which describe access to databases of other systems. Facts: `HMSHandler`, `ObjectStore` (Hive
4.0.1).

Hive logs no events for them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.names import is_valid_name, normalize_identifier
from hms_cache.metadata.principals import USER, principal_type, principal_type_name
from hms_cache.store.engine.context import PartOfStore, require_table
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.listing import limited, listed
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.schema import DATACONNECTOR_PARAMS, DATACONNECTORS, DC_PRIVS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    DataConnector,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)


class DataConnectors(PartOfStore):
    """Reads and writes of data connectors. Thread-safe; each method is one transaction."""

    def create(self, connector: DataConnector) -> None:
        """Creates a connector.

        :raises InvalidObjectException: an invalid name, or no type or URL.
        :raises AlreadyExistsException: it exists.
        """
        if connector.name is None:
            raise MetaException("Data connector name cannot be null.")
        if not is_valid_name(connector.name):
            raise InvalidObjectException(f"{connector.name} is not a valid dataconnector name")
        if connector.type is None or connector.url is None:
            raise InvalidObjectException(f"Dataconnector {connector.name} must have a type and a url")
        name = normalize_identifier(connector.name)
        values = {
            "NAME": name,
            "TYPE": connector.type,
            "URL": connector.url,
            "COMMENT": connector.description,
            "OWNER_NAME": self._context.server_user if connector.ownerName is None else connector.ownerName,
            "OWNER_TYPE": _owner_type(connector),
            "CREATE_TIME": self._context.now_s(),
        }

        def work(transaction: WriteTransaction) -> None:
            exists = AlreadyExistsException(f"DataConnector {connector.name} already exists")
            if _read(transaction.connection, name) is not None:
                raise exists
            try:
                transaction.connection.execute(insert(DATACONNECTORS).values(values))
            except IntegrityError as error:
                raise exists from error
            _insert_parameters(transaction.connection, name, connector.parameters)

        require_table(self._database, DATACONNECTORS)
        run_write(self._database, work)

    def get(self, name: str) -> DataConnector:
        """:raises NoSuchObjectException: it does not exist."""
        if name is None:
            raise MetaException("Data connector name cannot be null.")
        require_table(self._database, DATACONNECTORS)
        found = run_read(self._database, lambda connection: _read(connection, normalize_identifier(name)))
        if found is None:
            raise _missing(name)
        return found

    def get_names(self) -> list[str]:
        """All names, ascending."""
        require_table(self._database, DATACONNECTORS)
        statement = limited(select(DATACONNECTORS.c.NAME))
        names = run_read(self._database, lambda connection: connection.execute(statement).scalars().all())
        return sorted(listed(names, "data connectors"))

    def alter(self, name: str, connector: DataConnector) -> None:
        """Changes URL, parameters and owner, and the description if one is given; name and type do not change.

        :raises NoSuchObjectException: it does not exist.
        """
        key = normalize_identifier(name)
        values: dict[str, Any] = {"URL": connector.url, "OWNER_NAME": connector.ownerName}
        if principal_type(connector.ownerType) is not None:
            values["OWNER_TYPE"] = _owner_type(connector)
        if connector.description and connector.description.strip():
            values["COMMENT"] = connector.description
        if connector.url is None:
            raise MetaException(f"Dataconnector {name} must have a url")

        def work(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            if not _lock(connection, key):
                raise _missing(name)
            connection.execute(update(DATACONNECTORS).where(DATACONNECTORS.c.NAME == key).values(values))
            connection.execute(delete(DATACONNECTOR_PARAMS).where(DATACONNECTOR_PARAMS.c.NAME == key))
            _insert_parameters(connection, key, connector.parameters)

        require_table(self._database, DATACONNECTORS)
        run_write(self._database, work)

    def drop(self, name: str, *, if_exists: bool) -> None:
        """Drops a connector and the privileges on it.

        :raises NoSuchObjectException: it does not exist, unless `if_exists`.
        """
        key = normalize_identifier(name)

        def work(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            if not _lock(connection, key):
                if if_exists:
                    return
                raise NoSuchObjectException(f"DataConnector {name} doesn't exist")
            features = features_of(connection)
            for table in filter(features.has, (DC_PRIVS, DATACONNECTOR_PARAMS, DATACONNECTORS)):
                connection.execute(delete(table).where(table.c.NAME == key))

        require_table(self._database, DATACONNECTORS)
        run_write(self._database, work)


def _missing(name: str) -> NoSuchObjectException:
    # The end of the text is Hive's, too: the text of a missing cause.
    return NoSuchObjectException(f"Dataconnector named {name} does not exist:null")


def _owner_type(connector: DataConnector) -> str:
    return principal_type_name(connector.ownerType) or USER


def _lock(connection: Connection, name: str) -> bool:
    """Whether it exists. Its row is locked against grants and changes until this transaction ends."""
    is_it = select(DATACONNECTORS.c.NAME).where(same_text(DATACONNECTORS.c.NAME, name)).with_for_update()
    return connection.execute(is_it).first() is not None


def _insert_parameters(connection: Connection, name: str, parameters: dict[str, str] | None) -> None:
    if parameters:
        rows = [{"NAME": name, "PARAM_KEY": key, "PARAM_VALUE": value} for key, value in parameters.items()]
        try:
            connection.execute(insert(DATACONNECTOR_PARAMS), rows)
        except IntegrityError as error:
            # MySQL also ignores case here.
            raise MetaException(
                f"The database takes some of these parameters for the same: {sorted(parameters)}"
            ) from error


def _read(connection: Connection, name: str) -> DataConnector | None:
    parameters = DATACONNECTOR_PARAMS
    rows = connection.execute(
        select(*DATACONNECTORS.c, parameters.c.PARAM_KEY, parameters.c.PARAM_VALUE)
        .select_from(DATACONNECTORS.outerjoin(parameters, parameters.c.NAME == DATACONNECTORS.c.NAME))
        .where(same_text(DATACONNECTORS.c.NAME, name))
    ).all()
    if not rows:
        return None
    row = rows[0]
    return DataConnector(
        name=row.NAME,
        type=row.TYPE,
        url=row.URL,
        description=row.COMMENT,
        parameters={each.PARAM_KEY: each.PARAM_VALUE for each in rows if each.PARAM_VALUE is not None},
        ownerName=row.OWNER_NAME,
        ownerType=PrincipalType._NAMES_TO_VALUES.get(row.OWNER_TYPE),
        createTime=row.CREATE_TIME,
    )
