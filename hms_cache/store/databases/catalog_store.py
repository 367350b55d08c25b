"""Catalogs. Facts: `HMSHandler.create_catalog` … `drop_catalog` (Hive 4.0)."""

from __future__ import annotations

from functools import partial

from sqlalchemy import Connection, ScalarSelect, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.names import (
    DEFAULT_CATALOG,
    DEFAULT_DATABASE,
    is_valid_name,
    normalize_catalog,
)
from hms_cache.metadata.struct_copies import copied
from hms_cache.store.contract.catalogs import CatalogReads, CatalogWrites
from hms_cache.store.databases.database_store import delete_database, insert_database
from hms_cache.store.engine.context import PartOfStore
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.errors import RetryableConflict
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.file_access import FileAccess
from hms_cache.store.rows.database_rows import lock_catalog, lock_database, read_catalog
from hms_cache.store.rows.storage_descriptor_writes import write_parameters
from hms_cache.store.schema import CATALOG_PARAMS, CTLGS, DBS
from hms_cache.store.warehouse import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    Catalog,
    Database,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)


class Catalogs(PartOfStore, CatalogReads, CatalogWrites):
    """Reads and writes of catalogs."""

    def get_catalog(self, catalog: str) -> Catalog:
        name = normalize_catalog(catalog)
        found = run_read(self._database, lambda connection: read_catalog(connection, name))
        if found is None:
            raise NoSuchObjectException(f"No catalog {catalog}")
        return found

    def get_catalog_names(self) -> list[str]:
        statement = select(CTLGS.c.NAME)
        return sorted(run_read(self._database, lambda connection: connection.execute(statement).scalars().all()))

    def create_catalog(self, catalog: Catalog) -> None:
        if not is_valid_name(catalog.name, special_characters=False):
            raise InvalidObjectException(f"{catalog.name} is not a valid catalog name")
        if catalog.locationUri is None:
            raise InvalidObjectException("You must specify a path for the catalog")
        location = self._context.warehouse.location(catalog.locationUri)
        new = copied(catalog)
        new.name = normalize_catalog(catalog.name)
        new.createTime = self._context.now_s()

        def create(transaction: WriteTransaction) -> None:
            if read_catalog(transaction.connection, new.name) is not None:
                raise AlreadyExistsException(f"Catalog {catalog.name} already exists")
            files = FileAccess(self._context, transaction.connection)
            allowed = files.declare(location, f"Catalog {new.name}")
            _insert_catalog(transaction, new)
            new.parameters = _write_parameters(transaction.connection, Catalog(new.name), catalog.parameters or {})
            transaction.append_event(self._context.messages.build_create_catalog(new))
            if allowed is not None:
                self._context.warehouse.changes(transaction).make_directory(allowed)
            insert_database(
                self._context,
                transaction,
                Database(
                    name=DEFAULT_DATABASE,
                    description=f"Default database for catalog {catalog.name}",
                    locationUri=new.locationUri,
                    parameters={},
                    catalogName=new.name,
                ),
            )

        run_write(self._database, create, ids={"MCatalog": 1, "MDatabase": 1})

    def alter_catalog(self, name: str, catalog: Catalog) -> None:
        sent, name = name, normalize_catalog(name)
        if catalog.name and normalize_catalog(catalog.name) != name:
            raise InvalidOperationException("Catalog names cannot be changed")

        def alter(transaction: WriteTransaction) -> None:
            before = lock_catalog(transaction.connection, name)
            if before is None:
                raise NoSuchObjectException(f"No catalog {sent}")
            after = copied(before)
            if (catalog.description or "").strip():
                after.description = catalog.description
            if (catalog.locationUri or "").strip():
                location = self._context.warehouse.location(catalog.locationUri)
                if catalog.locationUri != before.locationUri and location != self._parsed(before.locationUri):
                    self._context.warehouse.require_known_scheme(location)
                after.locationUri = catalog.locationUri
            transaction.connection.execute(
                update(CTLGS)
                .where(CTLGS.c.NAME == name)
                .values({"DESC": after.description, "LOCATION_URI": after.locationUri})
            )
            if catalog.parameters is not None:  # clients before 4.2 cannot send any
                after.parameters = _write_parameters(transaction.connection, before, catalog.parameters)
            transaction.append_event(self._context.messages.build_alter_catalog(before, after))

        run_write(self._database, alter)

    def drop_catalog(self, name: str, *, if_exists: bool = False) -> None:
        sent, name = name, normalize_catalog(name)
        if name == DEFAULT_CATALOG:
            raise MetaException(f"Can not drop {DEFAULT_CATALOG} catalog")

        def drop(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            found = lock_catalog(connection, name)
            if found is None:
                if if_exists:
                    return
                raise NoSuchObjectException(f"No catalog {sent}")
            default = lock_database(connection, name, DEFAULT_DATABASE)
            # No objects are left below these directories. Other files belong to someone else, so only empty directories
            # are deleted. The default database's location differs from the catalog's if the catalog was altered.
            places = [found.locationUri] if default is None else [default.database.locationUri, found.locationUri]
            files = FileAccess(self._context, connection)
            directories = [files.allow_text(text) for text in dict.fromkeys(places)]
            databases = connection.execute(select(DBS.c.NAME).where(DBS.c.CTLG_NAME == name)).scalars().all()
            if set(databases) - {DEFAULT_DATABASE}:
                raise InvalidOperationException(
                    f"There are non-default databases in the catalog {sent} so it cannot be dropped."
                )
            if default is not None:
                try:
                    delete_database(self._context, transaction, default, delete_data=False, cascade=False)
                except InvalidOperationException as error:
                    raise InvalidOperationException(
                        f"There are still objects in the default database for catalog {sent}"
                    ) from error
            if features_of(connection).has(CATALOG_PARAMS):
                connection.execute(delete(CATALOG_PARAMS).where(CATALOG_PARAMS.c.CTLG_ID == _id_of(name)))
            connection.execute(delete(CTLGS).where(CTLGS.c.NAME == name))
            transaction.append_event(self._context.messages.build_drop_catalog(found))
            for directory in directories:
                if directory is not None:
                    transaction.after_commit(partial(self._context.warehouse.remove_empty_directory, directory))

        run_write(self._database, drop)

    def _parsed(self, text: str | None) -> Location | None:
        try:
            return self._context.warehouse.location(text or "")
        except MetaException:
            return None


def _insert_catalog(transaction: WriteTransaction, catalog: Catalog) -> None:
    try:
        transaction.connection.execute(
            insert(CTLGS).values(
                features_of(transaction.connection).writable(
                    CTLGS,
                    {
                        "CTLG_ID": transaction.id("MCatalog"),
                        "NAME": catalog.name,
                        "DESC": catalog.description,
                        "LOCATION_URI": catalog.locationUri,
                        "CREATE_TIME": catalog.createTime,
                    },
                )
            )
        )
    except IntegrityError as error:
        raise RetryableConflict(f"somebody else created catalog {catalog.name} at the same moment") from error


def _id_of(name: str) -> ScalarSelect[int]:
    return select(CTLGS.c.CTLG_ID).where(CTLGS.c.NAME == name).scalar_subquery()


def _write_parameters(connection: Connection, before: Catalog, requested: dict[str, str]) -> dict[str, str] | None:
    """Sets the catalog's parameters and returns them as stored: None if the schema has no table for them."""
    if not features_of(connection).has(CATALOG_PARAMS):
        return None
    catalog_id = connection.execute(select(CTLGS.c.CTLG_ID).where(CTLGS.c.NAME == before.name)).scalar_one()
    write_parameters(connection, CATALOG_PARAMS, "CTLG_ID", catalog_id, before.parameters or {}, requested)
    return dict(sorted(requested.items()))
