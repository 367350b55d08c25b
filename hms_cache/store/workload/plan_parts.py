"""The parts of a resource plan: pools, triggers, mappings. A plan must be disabled to be changed.

Facts: `ObjectStore` (Hive 4.0.1). Differs where Hive's behaviour is accidental: paths of pools are case-insensitive,
updating a mapping that does not exist raises NoSuchObjectException (a NullPointerException in Hive), and dropping pool
``a`` is not refused because a pool ``ab`` exists.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.names import normalize_identifier
from hms_cache.store.engine.context import PartOfStore, require_table
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.schema import WM_MAPPING, WM_POOL, WM_POOL_TO_TRIGGER, WM_RESOURCEPLAN, WM_TRIGGER
from hms_cache.store.workload.rows import MAPPINGS, POOLS, TRIGGERS, PlanRow, require_editable_plan, require_pool
from hms_cache.store.workload.validation import is_scheduling_policy, parent_path
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    NoSuchObjectException,
    WMMapping,
    WMNullablePool,
    WMPool,
    WMTrigger,
)

ENTITY_TYPES = ("USER", "GROUP", "APPLICATION")
"""Types of entities that a mapping assigns to a pool."""


class PlanParts(PartOfStore):
    """Writes of the parts of plans. Thread-safe; each method is one transaction. All methods raise

    * NoSuchObjectException: the plan, or the part to change, does not exist,
    * InvalidOperationException: the plan is not disabled.
    """

    def create_trigger(self, trigger: WMTrigger) -> None:
        """Creates a trigger. :raises AlreadyExistsException: the plan has a trigger with this name."""
        name = normalize_identifier(trigger.triggerName)

        def work(transaction: WriteTransaction, plan: PlanRow) -> None:
            values = {
                "TRIGGER_ID": transaction.id("MWMTrigger"),
                "RP_ID": plan.plan_id,
                "NAME": name,
                "TRIGGER_EXPRESSION": trigger.triggerExpression,
                "ACTION_EXPRESSION": trigger.actionExpression,
                "IS_IN_UNMANAGED": bool(trigger.isInUnmanaged),
            }
            _insert_new(transaction, WM_TRIGGER, values, f"Trigger already exists, use alter: {name}")

        self._edit(trigger.resourcePlanName, trigger.ns, work)

    def alter_trigger(self, trigger: WMTrigger) -> None:
        """Changes the given values: the expressions, and whether it applies to queries outside the plan."""

        def work(transaction: WriteTransaction, plan: PlanRow) -> None:
            found = _require_trigger(transaction.connection, plan, trigger.triggerName)
            given = {
                "TRIGGER_EXPRESSION": trigger.triggerExpression,
                "ACTION_EXPRESSION": trigger.actionExpression,
                "IS_IN_UNMANAGED": trigger.isInUnmanaged,
            }
            values = {name: value for name, value in given.items() if value is not None}
            if values:
                statement = update(WM_TRIGGER).where(TRIGGERS.TRIGGER_ID == found)
                transaction.connection.execute(statement.values(values))

        self._edit(trigger.resourcePlanName, trigger.ns, work)

    def drop_trigger(self, plan_name: str, trigger_name: str, namespace: str | None) -> None:
        """Drops a trigger, also from its pools."""

        def work(transaction: WriteTransaction, plan: PlanRow) -> None:
            connection, name = transaction.connection, normalize_identifier(trigger_name)
            found = _find_trigger(connection, plan, name)
            if found is None:
                raise NoSuchObjectException(f"Cannot delete trigger: {name}")
            for table in (WM_POOL_TO_TRIGGER, WM_TRIGGER):
                connection.execute(delete(table).where(table.c.TRIGGER_ID == found))

        self._edit(plan_name, namespace, work)

    def create_pool(self, pool: WMPool) -> None:
        """Creates a pool below an existing one, or at the top.

        :raises AlreadyExistsException: the plan has a pool with this path.
        :raises InvalidOperationException: no such scheduling policy.
        """

        def work(transaction: WriteTransaction, plan: PlanRow) -> None:
            _require_parent(transaction.connection, plan, pool.poolPath)
            _require_policy(pool.schedulingPolicy)
            values = {
                "POOL_ID": transaction.id("MWMPool"),
                "RP_ID": plan.plan_id,
                "PATH": pool.poolPath,
                "ALLOC_FRACTION": pool.allocFraction or 0.0,
                "QUERY_PARALLELISM": pool.queryParallelism or 0,
                "SCHEDULING_POLICY": pool.schedulingPolicy,
            }
            _insert_new(transaction, WM_POOL, values, f"Pool already exists: {pool.poolPath}")

        self._edit(pool.resourcePlanName, pool.ns, work)

    def alter_pool(self, pool: WMNullablePool, path: str) -> None:
        """Changes the given values. A new path also moves the pools below it.

        :raises AlreadyExistsException: the new path exists.
        """

        def work(transaction: WriteTransaction, plan: PlanRow) -> None:
            connection = transaction.connection
            row = require_pool(connection, plan, path)
            given = {"ALLOC_FRACTION": pool.allocFraction, "QUERY_PARALLELISM": pool.queryParallelism}
            values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
            if pool.isSetSchedulingPolicy:
                _require_policy(pool.schedulingPolicy)
                values["SCHEDULING_POLICY"] = pool.schedulingPolicy
            if pool.poolPath is not None and pool.poolPath != row.PATH:
                values["PATH"] = pool.poolPath
            try:
                if "PATH" in values:
                    _require_parent(connection, plan, pool.poolPath)
                    _move_pools_below(connection, plan, row.PATH, pool.poolPath)
                if values:
                    connection.execute(update(WM_POOL).where(POOLS.POOL_ID == row.POOL_ID).values(values))
            except IntegrityError as error:
                raise AlreadyExistsException(f"Pool already exists: {pool.poolPath}") from error

        self._edit(pool.resourcePlanName, pool.ns, work)

    def drop_pool(self, plan_name: str, path: str, namespace: str | None) -> None:
        """Drops a pool without pools below it and without mappings.

        :raises InvalidOperationException: it has some, or is the plan's default pool.
        """

        def work(transaction: WriteTransaction, plan: PlanRow) -> None:
            connection, requested = transaction.connection, normalize_identifier(path)
            paths = {
                row_path.lower(): pool_id
                for pool_id, row_path in connection.execute(
                    select(POOLS.POOL_ID, POOLS.PATH).where(POOLS.RP_ID == plan.plan_id)
                )
            }
            found = paths.get(requested)
            if found is not None and found == plan.default_pool_id:
                raise InvalidOperationException("Cannot drop default pool of a resource plan")
            if any(each.startswith(f"{requested}.") for each in paths):
                raise InvalidOperationException("Cannot drop a pool that has child pools")
            if found is None:
                raise NoSuchObjectException(f"Cannot delete pool: {requested}")
            if connection.execute(select(MAPPINGS.MAPPING_ID).where(MAPPINGS.POOL_ID == found)).first() is not None:
                raise InvalidOperationException("Please remove all mappings for this pool.")
            for table in (WM_POOL_TO_TRIGGER, WM_POOL):
                connection.execute(delete(table).where(table.c.POOL_ID == found))

        self._edit(plan_name, namespace, work)

    def save_mapping(self, mapping: WMMapping, *, is_update: bool) -> None:
        """Assigns a user, group or application to a pool (none: outside the plan). An update changes only the pool.

        :raises InvalidObjectException: no such type of entity.
        :raises AlreadyExistsException: the mapping exists, and `is_update` is false.
        """
        entity_type, entity_name = _entity(mapping)
        if entity_type not in ENTITY_TYPES:
            raise InvalidObjectException(f"No entity type {mapping.entityType}; there are {', '.join(ENTITY_TYPES)}")

        def work(transaction: WriteTransaction, plan: PlanRow) -> None:
            connection = transaction.connection
            pool_id = None if mapping.poolPath is None else require_pool(connection, plan, mapping.poolPath).POOL_ID
            if not is_update:
                values = {
                    "MAPPING_ID": transaction.id("MWMMapping"),
                    "RP_ID": plan.plan_id,
                    "ENTITY_TYPE": entity_type,
                    "ENTITY_NAME": entity_name,
                    "POOL_ID": pool_id,
                    "ORDERING": mapping.ordering or 0,
                }
                _insert_new(transaction, WM_MAPPING, values, f"Mapping already exists: {entity_type} {entity_name}")
                return
            is_it = _is_mapping(plan, entity_type, entity_name)
            if connection.execute(select(MAPPINGS.MAPPING_ID).where(*is_it)).first() is None:
                raise NoSuchObjectException(f"Cannot find mapping of {entity_type} {entity_name}")
            connection.execute(update(WM_MAPPING).where(*is_it).values(POOL_ID=pool_id))

        self._edit(mapping.resourcePlanName, mapping.ns, work)

    def drop_mapping(self, mapping: WMMapping) -> None:
        """Drops the mapping of an entity."""

        def work(transaction: WriteTransaction, plan: PlanRow) -> None:
            statement = delete(WM_MAPPING).where(*_is_mapping(plan, *_entity(mapping)))
            if transaction.connection.execute(statement).rowcount != 1:
                raise NoSuchObjectException("Cannot delete mapping.")

        self._edit(mapping.resourcePlanName, mapping.ns, work)

    def save_pool_trigger(
        self, plan_name: str, trigger_name: str, path: str, namespace: str | None, *, is_drop: bool
    ) -> None:
        """Adds a trigger to a pool, or removes it. It is no error if nothing has to be changed, as in Hive."""

        def work(transaction: WriteTransaction, plan: PlanRow) -> None:
            connection, links = transaction.connection, WM_POOL_TO_TRIGGER.c
            pool_id = require_pool(connection, plan, path).POOL_ID
            trigger_id = _require_trigger(connection, plan, trigger_name)
            is_it = (links.POOL_ID == pool_id, links.TRIGGER_ID == trigger_id)
            if is_drop:
                connection.execute(delete(WM_POOL_TO_TRIGGER).where(*is_it))
            elif connection.execute(select(links.POOL_ID).where(*is_it)).first() is None:
                connection.execute(insert(WM_POOL_TO_TRIGGER).values(POOL_ID=pool_id, TRIGGER_ID=trigger_id))

        self._edit(plan_name, namespace, work)

    def _edit(self, plan_name: str, namespace: str | None, work: Any) -> None:
        """Runs `work` with the plan's row locked, so that the plan cannot be enabled meanwhile."""
        require_table(self._database, WM_RESOURCEPLAN)
        run_write(
            self._database,
            lambda transaction: work(transaction, require_editable_plan(transaction.connection, plan_name, namespace)),
        )


def _insert_new(transaction: WriteTransaction, table: Table, values: dict[str, Any], refusal: str) -> None:
    try:
        transaction.connection.execute(insert(table).values(values))
    except IntegrityError as error:
        raise AlreadyExistsException(refusal) from error


def _find_trigger(connection: Connection, plan: PlanRow, name: str) -> int | None:
    is_it = (TRIGGERS.RP_ID == plan.plan_id, same_text(TRIGGERS.NAME, name))
    found: int | None = connection.execute(select(TRIGGERS.TRIGGER_ID).where(*is_it)).scalar()
    return found


def _require_trigger(connection: Connection, plan: PlanRow, name: str) -> int:
    found = _find_trigger(connection, plan, normalize_identifier(name))
    if found is None:
        raise NoSuchObjectException(f"Cannot find trigger with name: {normalize_identifier(name)}")
    return found


def _require_parent(connection: Connection, plan: PlanRow, path: str) -> None:
    parent = parent_path(path)
    if parent is None:
        return
    try:
        require_pool(connection, plan, parent)
    except NoSuchObjectException as error:
        raise NoSuchObjectException("Pool path is invalid, the parent does not exist") from error


def _require_policy(policy: str | None) -> None:
    if not is_scheduling_policy(policy):
        raise InvalidOperationException(f"Invalid scheduling policy {policy}")


def _move_pools_below(connection: Connection, plan: PlanRow, path: str, new_path: str) -> None:
    rows = connection.execute(select(POOLS.POOL_ID, POOLS.PATH).where(POOLS.RP_ID == plan.plan_id)).all()
    for pool_id, row_path in rows:
        if row_path.startswith(f"{path}."):
            moved = update(WM_POOL).where(POOLS.POOL_ID == pool_id)
            connection.execute(moved.values(PATH=new_path + row_path[len(path) :]))


def _entity(mapping: WMMapping) -> tuple[str, str]:
    return mapping.entityType.strip().upper(), normalize_identifier(mapping.entityName)


def _is_mapping(plan: PlanRow, entity_type: str, entity_name: str) -> tuple[Any, ...]:
    return (
        MAPPINGS.RP_ID == plan.plan_id,
        same_text(MAPPINGS.ENTITY_TYPE, entity_type),
        same_text(MAPPINGS.ENTITY_NAME, entity_name),
    )
