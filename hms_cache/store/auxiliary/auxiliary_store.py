"""The stores of objects outside the catalog and transactions: not cached, read from the database at every call."""

from __future__ import annotations

from hms_cache.store.auxiliary.data_connectors import DataConnectors
from hms_cache.store.auxiliary.named_types import DatabaseIdentity, NamedTypes
from hms_cache.store.auxiliary.runtime_statistics import RuntimeStatistics
from hms_cache.store.auxiliary.scheduled_queries import ScheduledQueries
from hms_cache.store.auxiliary.schema_registry import SchemaRegistry
from hms_cache.store.auxiliary.stored_procedures import StoredProcedures
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.properties.properties import Properties
from hms_cache.store.rows.storage_schemas import StorageSchemas
from hms_cache.store.security.privileges import Privileges
from hms_cache.store.security.rights import GrantedRights
from hms_cache.store.security.roles import Roles
from hms_cache.store.security.tokens import Tokens
from hms_cache.store.translation.metadata_translation import MetadataTranslation
from hms_cache.store.workload.plan_parts import PlanParts
from hms_cache.store.workload.resource_plans import ResourcePlans


class AuxiliaryStores:
    """Each part is a class in its own module. Thread-safe."""

    def __init__(self, context: StoreContext) -> None:
        self.settings = context.settings.catalog
        self.privileges = Privileges(context)
        self.roles = Roles(context)
        self.rights = GrantedRights(context)
        self.tokens = Tokens(context)
        self.data_connectors = DataConnectors(context)
        self.procedures = StoredProcedures(context)
        self.runtime_statistics = RuntimeStatistics(context)
        self.types = NamedTypes(context)
        self.identity = DatabaseIdentity(context)
        self.schemas = SchemaRegistry(context)
        self.properties = Properties(context)
        self.resource_plans = ResourcePlans(context)
        self.plan_parts = PlanParts(context)
        self.storage_schemas = StorageSchemas(context)
        self.translation = MetadataTranslation(context)
        self.scheduled_queries = ScheduledQueries(context)
