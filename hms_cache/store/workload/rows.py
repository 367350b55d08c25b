"""Rows of resource plans as values, and as structs for clients.

Lists are sorted (pools by path, triggers by name, mappings by type and name); Hive returns them in the order of a hash
set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from hms_cache.metadata.names import normalize_identifier
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.text_conditions import same_text
from hms_cache.store.schema import WM_MAPPING, WM_POOL, WM_POOL_TO_TRIGGER, WM_RESOURCEPLAN, WM_TRIGGER
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    InvalidOperationException,
    NoSuchObjectException,
    WMFullResourcePlan,
    WMMapping,
    WMPool,
    WMPoolTrigger,
    WMResourcePlan,
    WMResourcePlanStatus,
    WMTrigger,
)

DEFAULT_NAMESPACE = "default"

ACTIVE, ENABLED, DISABLED = "ACTIVE", "ENABLED", "DISABLED"
"""``WM_RESOURCEPLAN.STATUS``. At most one plan of a namespace is active."""

PLANS, POOLS, TRIGGERS, MAPPINGS = WM_RESOURCEPLAN.c, WM_POOL.c, WM_TRIGGER.c, WM_MAPPING.c


@dataclass(slots=True)
class PlanRow:
    """A row of ``WM_RESOURCEPLAN``."""

    plan_id: int
    name: str
    namespace: str
    parallelism: int | None
    status: str
    default_pool_id: int | None


@dataclass(slots=True)
class PlanContent:
    """The parts of a plan: rows of its four other tables, sorted."""

    pools: list[Any] = field(default_factory=list)
    triggers: list[Any] = field(default_factory=list)
    mappings: list[Any] = field(default_factory=list)
    pool_triggers: list[tuple[int, int]] = field(default_factory=list)
    """(pool id, trigger id)"""


def namespace_of(namespace: str | None) -> str:
    """The normalized namespace. Clients of Hive 3 send none, which means ``default``."""
    return normalize_identifier(DEFAULT_NAMESPACE if namespace is None else namespace)


def read_plans(
    connection: Connection, namespace: str, *, name: str | None = None, status: str | None = None, lock: bool = False
) -> list[PlanRow]:
    """The plans of a namespace by name, optionally only those with this name or status.

    :param lock: locks them against other writers until the transaction ends.
    """
    features = features_of(connection)
    has_namespace = features.has(PLANS.NS)
    if not has_namespace and namespace != DEFAULT_NAMESPACE:
        return []
    statement = select(
        PLANS.RP_ID,
        PLANS.NAME,
        features.column(PLANS.NS, DEFAULT_NAMESPACE),
        PLANS.QUERY_PARALLELISM,
        PLANS.STATUS,
        PLANS.DEFAULT_POOL_ID,
    ).order_by(PLANS.NAME, PLANS.RP_ID)
    if has_namespace:
        statement = statement.where(same_text(PLANS.NS, namespace))
    if name is not None:
        statement = statement.where(same_text(PLANS.NAME, name))
    if status is not None:
        statement = statement.where(PLANS.STATUS == status)
    if lock:
        statement = statement.with_for_update()
    return [PlanRow(*row) for row in connection.execute(statement)]


def require_plan(connection: Connection, name: str, namespace: str | None, *, lock: bool = False) -> PlanRow:
    """The plan. :raises NoSuchObjectException: there is none with this name in the namespace."""
    name, namespace = normalize_identifier(name), namespace_of(namespace)
    found = read_plans(connection, namespace, name=name, lock=lock)
    if not found:
        raise NoSuchObjectException(f"There is no resource plan named: {name} in {namespace}")
    return found[0]


def require_editable_plan(connection: Connection, name: str, namespace: str | None) -> PlanRow:
    """Locks and returns the plan. :raises InvalidOperationException: it is not disabled."""
    plan = require_plan(connection, name, namespace, lock=True)
    if plan.status != DISABLED:
        raise InvalidOperationException("Resource plan must be disabled to edit it.")
    return plan


def require_pool(connection: Connection, plan: PlanRow, path: str) -> Any:
    """The row of a plan's pool; its path is case-insensitive.

    :raises NoSuchObjectException: it does not exist.
    """
    requested = normalize_identifier(path)
    for row in connection.execute(select(*POOLS).where(POOLS.RP_ID == plan.plan_id)):
        if row.PATH.lower() == requested:
            return row
    raise NoSuchObjectException(f"Cannot find pool: {requested}")


def read_content(connection: Connection, plan_id: int) -> PlanContent:
    """All parts of a plan, in four statements."""
    links = WM_POOL_TO_TRIGGER.c
    return PlanContent(
        pools=list(connection.execute(select(*POOLS).where(POOLS.RP_ID == plan_id).order_by(POOLS.PATH))),
        triggers=list(connection.execute(select(*TRIGGERS).where(TRIGGERS.RP_ID == plan_id).order_by(TRIGGERS.NAME))),
        mappings=list(
            connection.execute(
                select(*MAPPINGS).where(MAPPINGS.RP_ID == plan_id).order_by(MAPPINGS.ENTITY_TYPE, MAPPINGS.ENTITY_NAME)
            )
        ),
        pool_triggers=[
            (pool_id, trigger_id)
            for pool_id, trigger_id in connection.execute(
                select(links.POOL_ID, links.TRIGGER_ID)
                .select_from(WM_POOL_TO_TRIGGER.join(WM_POOL, POOLS.POOL_ID == links.POOL_ID))
                .where(POOLS.RP_ID == plan_id)
            )
        ],
    )


def plan_struct(plan: PlanRow, default_pool_path: str | None) -> WMResourcePlan:
    """The plan without its parts."""
    return WMResourcePlan(
        name=plan.name,
        status=WMResourcePlanStatus._NAMES_TO_VALUES[plan.status],
        queryParallelism=plan.parallelism,
        defaultPoolPath=default_pool_path,
        ns=plan.namespace,
    )


def full_plan_struct(plan: PlanRow, content: PlanContent) -> WMFullResourcePlan:
    """The plan with its parts. Empty lists are omitted, except pools (a required field)."""
    paths = {pool.POOL_ID: pool.PATH for pool in content.pools}
    names = {trigger.TRIGGER_ID: trigger.NAME for trigger in content.triggers}
    links = sorted((paths[pool_id], names[trigger_id]) for pool_id, trigger_id in content.pool_triggers)
    default_path = None if plan.default_pool_id is None else paths.get(plan.default_pool_id)
    return WMFullResourcePlan(
        plan=plan_struct(plan, default_path),
        pools=[
            WMPool(
                resourcePlanName=plan.name,
                poolPath=pool.PATH,
                allocFraction=pool.ALLOC_FRACTION,
                queryParallelism=pool.QUERY_PARALLELISM,
                schedulingPolicy=pool.SCHEDULING_POLICY,
                ns=plan.namespace,
            )
            for pool in content.pools
        ],
        mappings=[
            WMMapping(
                resourcePlanName=plan.name,
                entityType=mapping.ENTITY_TYPE,
                entityName=mapping.ENTITY_NAME,
                poolPath=paths.get(mapping.POOL_ID),
                ordering=mapping.ORDERING,
                ns=plan.namespace,
            )
            for mapping in content.mappings
        ]
        or None,
        triggers=[trigger_struct(plan, trigger) for trigger in content.triggers] or None,
        poolTriggers=[WMPoolTrigger(path, name) for path, name in links] or None,
    )


def trigger_struct(plan: PlanRow, trigger: Any) -> WMTrigger:
    """A row of ``WM_TRIGGER`` as a struct for clients."""
    return WMTrigger(
        resourcePlanName=plan.name,
        triggerName=trigger.NAME,
        triggerExpression=trigger.TRIGGER_EXPRESSION,
        actionExpression=trigger.ACTION_EXPRESSION,
        isInUnmanaged=bool(trigger.IS_IN_UNMANAGED),
        ns=plan.namespace,
    )
