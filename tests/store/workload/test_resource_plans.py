"""Resource plans as stored by Hive's `ObjectStore`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, func, select

from hms_cache.store.schema import WM_MAPPING, WM_POOL, WM_POOL_TO_TRIGGER, WM_RESOURCEPLAN, WM_TRIGGER
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.workload.conftest import Workload

ACTIVE, ENABLED, DISABLED = (ttypes.WMResourcePlanStatus._NAMES_TO_VALUES[n] for n in ("ACTIVE", "ENABLED", "DISABLED"))


def plan(name: str, parallelism: int | None = None, ns: str | None = None) -> ttypes.WMResourcePlan:
    return ttypes.WMResourcePlan(name=name, queryParallelism=parallelism, ns=ns)


def pool(path: str, fraction: float = 0.5, plan_name: str = "p", **more: object) -> ttypes.WMPool:
    return ttypes.WMPool(plan_name, path, allocFraction=fraction, queryParallelism=2, **more)


def status(value: int) -> ttypes.WMNullableResourcePlan:
    return ttypes.WMNullableResourcePlan(status=value)


def test_a_plan_with_all_its_parts(workload: Workload) -> None:
    stores = workload.stores()
    plans, parts = stores.resource_plans, stores.plan_parts
    plans.create(plan(" P ", 10), None)
    full = plans.get("p", None)
    assert full.plan == ttypes.WMResourcePlan("p", DISABLED, 10, "default", "default")
    assert full.pools == [ttypes.WMPool("p", "default", 1.0, 10, None, "default")]
    assert (full.mappings, full.triggers, full.poolTriggers) == (None, None, None)

    parts.alter_pool(ttypes.WMNullablePool("p", "default", allocFraction=0.5, queryParallelism=4), "default")
    parts.create_pool(pool("bi", schedulingPolicy="fifo"))
    parts.create_pool(pool("bi.etl", 1.0))
    parts.create_trigger(ttypes.WMTrigger("p", "Slow", "ELAPSED_TIME > 1000", "KILL"))
    parts.alter_trigger(ttypes.WMTrigger("p", "slow", actionExpression="MOVE TO default", isInUnmanaged=True))
    parts.save_pool_trigger("p", "slow", "BI", None, is_drop=False)
    parts.save_pool_trigger("p", "slow", "bi", None, is_drop=False)
    parts.save_mapping(ttypes.WMMapping("p", "user", "U1", "bi.etl", 3), is_update=False)
    parts.save_mapping(ttypes.WMMapping("p", "GROUP", "g"), is_update=False)
    parts.alter_pool(ttypes.WMNullablePool("p", "reports", isSetSchedulingPolicy=True), "bi")

    full = plans.get("P", "default")
    assert [each.poolPath for each in full.pools] == ["default", "reports", "reports.etl"]
    assert full.pools[1].schedulingPolicy is None
    trigger = ttypes.WMTrigger("p", "slow", "ELAPSED_TIME > 1000", "MOVE TO default", True, "default")
    assert full.triggers == [trigger] == plans.get_triggers("p", None)
    assert full.poolTriggers == [ttypes.WMPoolTrigger("reports", "slow")]
    assert full.mappings == [
        ttypes.WMMapping("p", "GROUP", "g", None, 0, "default"),
        ttypes.WMMapping("p", "USER", "u1", "reports.etl", 3, "default"),
    ]

    plans.create(plan("copy"), "p")
    copied = plans.get("copy", None)
    assert copied.plan == ttypes.WMResourcePlan("copy", DISABLED, 10, "default", "default")
    assert [each.poolPath for each in copied.pools] == ["default", "reports", "reports.etl"]
    assert [(each.entityName, each.poolPath) for each in copied.mappings] == [("g", None), ("u1", "reports.etl")]
    assert copied.poolTriggers == full.poolTriggers

    parts.save_mapping(ttypes.WMMapping("p", "USER", "u1", "default"), is_update=True)
    assert [(m.entityName, m.poolPath, m.ordering) for m in plans.get("p", None).mappings or ()] == [
        ("g", None, 0),
        ("u1", "default", 3),
    ]
    parts.drop_mapping(ttypes.WMMapping("p", "user", "U1"))
    parts.drop_pool("p", "reports.etl", None)
    parts.save_pool_trigger("p", "slow", "reports", None, is_drop=True)
    assert plans.get("p", None).poolTriggers is None
    parts.save_pool_trigger("p", "slow", "reports", None, is_drop=False)
    parts.drop_trigger("p", "SLOW", None)
    assert (plans.get("p", None).triggers, plans.get("p", None).poolTriggers) == (None, None)
    assert len(plans.get("copy", None).triggers) == 1

    for name in ("p", "copy"):
        plans.drop(name, None)
    tables = (WM_RESOURCEPLAN, WM_POOL, WM_TRIGGER, WM_MAPPING, WM_POOL_TO_TRIGGER)
    with workload.database.checking() as connection:
        counts = [connection.execute(select(func.count()).select_from(table)).scalar() for table in tables]
    assert counts == [0] * len(tables)


def test_one_plan_of_a_namespace_is_active(workload: Workload) -> None:
    plans = workload.stores().resource_plans
    for name, namespace in (("a", None), ("b", "default"), ("a", "other")):
        plans.create(plan(name, 3, namespace), None)
    assert plans.get_active(None) is None
    with pytest.raises(ttypes.InvalidOperationException, match="is disabled and should be enabled before activation"):
        plans.alter("a", None, status(ACTIVE))
    active = plans.alter("a", None, status(ACTIVE), can_activate_disabled=True)
    assert active == plans.get_active(None)
    assert active is not None
    assert (active.plan.name, active.plan.status, len(active.pools)) == ("a", ACTIVE, 1)
    assert plans.alter("a", None, status(ACTIVE)) is None
    assert plans.alter("a", "other", status(ENABLED)) is None
    assert plans.alter("b", None, status(ENABLED)) is None
    assert plans.alter("b", None, status(ACTIVE)) is not None
    shown = [(each.name, each.status, each.defaultPoolPath) for each in plans.get_all(None)]
    assert shown == [("a", ENABLED, "default"), ("b", ACTIVE, "default")]
    assert [each.name for each in plans.get_all("other")] == ["a"]
    with pytest.raises(ttypes.InvalidOperationException, match="Resource plan b is active; activate another plan"):
        plans.alter("b", None, status(DISABLED))
    with pytest.raises(ttypes.MetaException, match="Cannot drop an active resource plan"):
        plans.drop("b", None)
    assert plans.alter(None, None, status(DISABLED), can_deactivate=True) is None
    assert plans.get_active(None) is None


def test_a_plan_takes_the_place_of_another(workload: Workload) -> None:
    plans = workload.stores().resource_plans
    for name in ("old", "new", "next"):
        plans.create(plan(name), None)
    plans.alter("old", None, status(ACTIVE), can_activate_disabled=True)
    by_name = ttypes.WMNullableResourcePlan(name="old")
    taken = plans.alter("new", None, by_name, is_replace=True)
    assert taken is not None
    assert (taken.plan.name, taken.plan.status) == ("old", ACTIVE)
    taken = plans.alter("next", None, status(ACTIVE), is_replace=True)
    assert taken is not None
    assert taken.plan.name == "old"
    names = [(each.name, each.status) for each in plans.get_all(None)]
    assert (names[0], len(names)) == (("old", ACTIVE), 3)
    stamped = names[1][0]
    assert names[1:] == [(stamped, DISABLED), (f"{stamped}_1", DISABLED)]
    for changes, text in (
        (ttypes.WMNullableResourcePlan(), "Must specify a name, or the active plan; received null, null"),
        (by_name, "A plan cannot replace itself"),
        (ttypes.WMNullableResourcePlan(name=stamped, queryParallelism=3), "Cannot change values during replace"),
    ):
        with pytest.raises(ttypes.InvalidOperationException, match=text):
            plans.alter("old", None, changes, is_replace=True)


def test_fields_of_a_disabled_plan_change(workload: Workload) -> None:
    stores = workload.stores(default_pool_size=0)
    plans, parts = stores.resource_plans, stores.plan_parts
    plans.create(plan("p"), None)
    plans.create(plan("q"), None)
    assert plans.get("p", None).pools == []
    parts.create_pool(pool("main", 1.0))
    changes = ttypes.WMNullableResourcePlan(
        name="R", queryParallelism=5, isSetQueryParallelism=True, defaultPoolPath="main", isSetDefaultPoolPath=True
    )
    plans.alter("p", None, changes)
    assert plans.get("r", None).plan == ttypes.WMResourcePlan("r", DISABLED, 5, "main", "default")
    answer = plans.validate("r", None)
    assert answer.errors == []
    assert answer.warnings == ["Sum of all pools' query parallelism: 2 is less than resource plan query parallelism: 5"]
    with pytest.raises(ttypes.InvalidOperationException, match="Cannot drop default pool of a resource plan"):
        parts.drop_pool("r", "main", None)
    unset = ttypes.WMNullableResourcePlan(isSetQueryParallelism=True, isSetDefaultPoolPath=True)
    plans.alter("r", None, unset)
    assert plans.get("r", None).plan == ttypes.WMResourcePlan("r", DISABLED, None, None, "default")
    with pytest.raises(ttypes.AlreadyExistsException, match="Resource plan name should be unique"):
        plans.alter("r", None, ttypes.WMNullableResourcePlan(name="q"))
    plans.alter("r", None, status(ENABLED))
    for refused in (
        lambda: plans.alter("r", None, ttypes.WMNullableResourcePlan(name="s")),
        lambda: parts.create_pool(pool("x", plan_name="r")),
        lambda: parts.create_trigger(ttypes.WMTrigger("r", "t")),
    ):
        with pytest.raises(ttypes.InvalidOperationException, match="Resource plan must be disabled to edit it"):
            refused()


def test_validation_finds_what_is_wrong(sqlite_workload: Workload) -> None:
    stores = sqlite_workload.stores(default_pool_size=0)
    plans, parts = stores.resource_plans, stores.plan_parts
    plans.create(plan("p", 3), None)
    assert plans.validate("p", None).errors == ["Root has no children"]
    parts.create_pool(pool("a", 0.7))
    parts.create_pool(pool("b", 0.7, schedulingPolicy="default"))
    parts.create_pool(pool("b.c", 0.7))
    parts.create_pool(ttypes.WMPool("p", "b.d", allocFraction=0.7))
    assert plans.validate("p", None).errors == [
        "Invalid query parallelism for pool: b.d",
        "Sum of all pools' query parallelism: 6 exceeds resource plan query parallelism: 3",
        "Sum of root children pools' alloc fraction should be 1.0 got: 1.4 for pool: ",
        "Sum of children pools' alloc fraction should be less than 1 got: 1.4 for pool: b",
    ]
    with pytest.raises(
        ttypes.InvalidOperationException, match=r"ResourcePlan: p is invalid: \[Invalid query parallelism"
    ):
        plans.alter("p", None, status(ENABLED))


def test_refusals(workload: Workload) -> None:
    stores = workload.stores()
    plans, parts = stores.resource_plans, stores.plan_parts
    plans.create(plan("p"), None)
    parts.create_pool(pool("a"))
    parts.create_pool(pool("a.b"))
    parts.create_trigger(ttypes.WMTrigger("p", "t"))
    mapping = ttypes.WMMapping("p", "USER", "u", "a.b")
    parts.save_mapping(mapping, is_update=False)
    refusals: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (ttypes.InvalidObjectException, "Resource name cannot be empty", lambda: plans.create(plan(" "), None)),
        (ttypes.InvalidObjectException, "should be positive", lambda: plans.create(plan("x", 0), None)),
        (ttypes.AlreadyExistsException, "Resource plan already exists: p", lambda: plans.create(plan("P"), None)),
        (ttypes.NoSuchObjectException, "no resource plan named: x in default", lambda: plans.create(plan("y"), "x")),
        (ttypes.NoSuchObjectException, "no resource plan named: p in n", lambda: plans.get("p", "n")),
        (ttypes.NoSuchObjectException, "Cannot find resourcePlan: x in default", lambda: plans.validate("x", None)),
        (ttypes.NoSuchObjectException, "There is no resource plan named: x", lambda: plans.drop("x", None)),
        (ttypes.NoSuchObjectException, "no active resource plan", lambda: plans.alter(None, None, status(ENABLED))),
        (
            ttypes.InvalidOperationException,
            "Cannot change ns; from default to n",
            lambda: plans.alter("p", None, ttypes.WMNullableResourcePlan(ns="n")),
        ),
        (ttypes.AlreadyExistsException, "Pool already exists", lambda: parts.create_pool(pool("a"))),
        (ttypes.NoSuchObjectException, "the parent does not exist", lambda: parts.create_pool(pool("x.y"))),
        (
            ttypes.InvalidOperationException,
            "Invalid scheduling policy lifo",
            lambda: parts.create_pool(pool("x", schedulingPolicy="lifo")),
        ),
        (ttypes.InvalidOperationException, "has child pools", lambda: parts.drop_pool("p", "a", None)),
        (ttypes.InvalidOperationException, "remove all mappings", lambda: parts.drop_pool("p", "a.b", None)),
        (ttypes.NoSuchObjectException, "Cannot delete pool: x", lambda: parts.drop_pool("p", "x", None)),
        (
            ttypes.AlreadyExistsException,
            "Pool already exists: a",
            lambda: parts.alter_pool(ttypes.WMNullablePool("p", "a"), "default"),
        ),
        (
            ttypes.AlreadyExistsException,
            "Trigger already exists, use alter: t",
            lambda: parts.create_trigger(ttypes.WMTrigger("p", "T")),
        ),
        (
            ttypes.NoSuchObjectException,
            "Cannot find trigger with name: x",
            lambda: parts.alter_trigger(ttypes.WMTrigger("p", "x")),
        ),
        (ttypes.NoSuchObjectException, "Cannot delete trigger: x", lambda: parts.drop_trigger("p", "x", None)),
        (ttypes.AlreadyExistsException, "Mapping already", lambda: parts.save_mapping(mapping, is_update=False)),
        (
            ttypes.NoSuchObjectException,
            "Cannot find mapping of USER v",
            lambda: parts.save_mapping(ttypes.WMMapping("p", "USER", "v"), is_update=True),
        ),
        (
            ttypes.NoSuchObjectException,
            "Cannot find pool: x",
            lambda: parts.save_mapping(ttypes.WMMapping("p", "USER", "v", "x"), is_update=False),
        ),
        (
            ttypes.InvalidObjectException,
            "No entity type ROBOT",
            lambda: parts.save_mapping(ttypes.WMMapping("p", "ROBOT", "v"), is_update=False),
        ),
        (
            ttypes.NoSuchObjectException,
            "Cannot delete mapping",
            lambda: parts.drop_mapping(ttypes.WMMapping("p", "USER", "v")),
        ),
    ]
    for kind, text, refused in refusals:
        with pytest.raises(kind, match=text):
            refused()
    assert [each.poolPath for each in plans.get("p", None).pools] == ["a", "a.b", "default"]


def test_a_plan_is_copied_as_it_was_at_one_moment(workload: Workload) -> None:
    """Another server adds a pool with a trigger when the copy has read the pools, but not their contents."""
    parts = workload.stores().plan_parts
    plans = workload.stores().resource_plans
    plans.create(plan("p", 10), None)
    parts.create_trigger(ttypes.WMTrigger("p", "slow", "ELAPSED_TIME > 1000", "KILL"))

    def change() -> None:
        parts.create_pool(pool("new"))
        parts.save_pool_trigger("p", "slow", "new", None, is_drop=False)

    copying, changes = threading.get_ident(), list[Future[None]]()

    def after_statement(connection: Connection, cursor: Any, statement: str, *_: Any) -> None:
        is_of_pools = statement.startswith("SELECT") and "ALLOC_FRACTION" in statement
        if is_of_pools and threading.get_ident() == copying and not changes:
            changes.append(others.submit(change))
            wait(changes, 0.3)

    with ThreadPoolExecutor(1) as others:
        event.listen(Engine, "after_cursor_execute", after_statement)
        try:
            plans.create(plan("q"), "p")
        finally:
            event.remove(Engine, "after_cursor_execute", after_statement)
        changes[0].result(30)
    assert [each.poolPath for each in plans.get("q", None).pools] == ["default"]
    assert plans.get("q", None).poolTriggers is None
    assert [each.poolPath for each in plans.get("p", None).pools] == ["default", "new"]
