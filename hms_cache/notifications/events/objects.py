"""Events of catalogs, databases, functions and other objects that are not tables."""

from __future__ import annotations

from hms_cache.metadata.names import normalize_identifier
from hms_cache.metadata.object_names import database_name, function_name
from hms_cache.notifications.events.base import Event, StructIn, scope_of_row
from hms_cache.notifications.events.rows import EventHeader
from hms_cache.notifications.scope import EVERYTHING, NOTHING, Scope
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.values import frozen


@frozen
class DatabaseCreated(Event):
    database_json: str | None = None

    @property
    def scope(self) -> Scope:
        return database_scope(self.header)

    database = StructIn("database_json", ttypes.Database)


@frozen
class DatabaseAltered(Event):
    """``scope`` contains only the database object; its tables do not change."""

    before_json: str | None = None
    after_json: str | None = None

    @property
    def scope(self) -> Scope:
        return database_scope(self.header)

    before = StructIn("before_json", ttypes.Database)
    after = StructIn("after_json", ttypes.Database)


@frozen
class DatabaseDropped(Event):
    """``scope`` is the database with everything in it. ``database_json`` is missing before Hive 4."""

    database_json: str | None = None

    database = StructIn("database_json", ttypes.Database)


def database_scope(header: EventHeader) -> Scope:
    if not header.database:
        return EVERYTHING
    return Scope(databases=frozenset([database_name(header.catalog, header.database)]))


@frozen
class CatalogEvent(Event):
    """Hive defines the three catalog messages but never logs them; servers of this program do."""

    catalog_name: str | None = None

    @property
    def scope(self) -> Scope:
        return Scope(catalogs=frozenset([normalize_identifier(self.catalog_name)])) if self.catalog_name else EVERYTHING


@frozen
class CatalogCreated(CatalogEvent):
    pass


@frozen
class CatalogAltered(CatalogEvent):
    before_json: str | None = None
    after_json: str | None = None

    before = StructIn("before_json", ttypes.Catalog)
    after = StructIn("after_json", ttypes.Catalog)


@frozen
class CatalogDropped(CatalogEvent):
    @property
    def scope(self) -> Scope:
        if not self.catalog_name:
            return EVERYTHING
        return Scope(whole_catalogs=frozenset([normalize_identifier(self.catalog_name)]), foreign_keys=True)


@frozen
class FunctionEvent(Event):
    function_name: str | None = None

    @property
    def scope(self) -> Scope:
        if not self.header.database or not self.function_name:
            return scope_of_row(self.header)
        name = function_name(self.header.catalog, self.header.database, self.function_name)
        return Scope(functions=frozenset([name]))


@frozen
class FunctionCreated(FunctionEvent):
    function_json: str | None = None

    function = StructIn("function_json", ttypes.Function)


@frozen
class FunctionDropped(FunctionEvent):
    pass


@frozen
class GrantsChanged(Event):
    """A user's rights have changed (`GRANTS_CHANGED`), but not the catalog, so ``scope`` is empty."""

    @property
    def scope(self) -> Scope:
        return NOTHING


@frozen
class OtherObjectChanged(Event):
    """A schema registry object or a data connector was created, altered or dropped.

    Hive defines these types but does not log them. No catalog object depends on one, so ``scope`` is empty.
    """

    @property
    def scope(self) -> Scope:
        return NOTHING
