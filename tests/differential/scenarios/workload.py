"""Resource plans with their parts, and scheduled queries."""

from __future__ import annotations

from typing import Any

from hms_cache.thrift_gen.hive_metastore.ttypes import (
    QueryState,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequest,
    ScheduledQueryPollRequest,
    ScheduledQueryProgressInfo,
    WMAlterPoolRequest,
    WMAlterResourcePlanRequest,
    WMAlterTriggerRequest,
    WMCreateOrDropTriggerToPoolMappingRequest,
    WMCreateOrUpdateMappingRequest,
    WMCreatePoolRequest,
    WMCreateResourcePlanRequest,
    WMCreateTriggerRequest,
    WMDropMappingRequest,
    WMDropPoolRequest,
    WMDropResourcePlanRequest,
    WMDropTriggerRequest,
    WMGetActiveResourcePlanRequest,
    WMGetAllResourcePlanRequest,
    WMGetResourcePlanRequest,
    WMGetTriggersForResourePlanRequest,
    WMMapping,
    WMNullablePool,
    WMNullableResourcePlan,
    WMPool,
    WMResourcePlan,
    WMTrigger,
    WMValidateResourcePlanRequest,
)
from tests.differential.comparison import Call, Scenario, call

ACTIVE, ENABLED, DISABLED = 1, 2, 3
NS = "default"


def create(name: str, parallelism: int | None = None, copy_from: str | None = None, **expectations: Any) -> Call:
    plan = WMResourcePlan(name, queryParallelism=parallelism, ns=NS)
    return call("create_resource_plan", WMCreateResourcePlanRequest(plan, copy_from), **expectations)


def get(name: str, namespace: str = NS) -> Call:
    return call("get_resource_plan", WMGetResourcePlanRequest(name, namespace), is_ordered=False)


def alter(name: str | None, changes: WMNullableResourcePlan, **more: Any) -> Call:
    expectations = {key: more.pop(key) for key in ("differs",) if key in more}
    request = WMAlterResourcePlanRequest(name, changes, ns=NS, **more)
    return call("alter_resource_plan", request, is_ordered=False, **expectations)


def status(value: int) -> WMNullableResourcePlan:
    return WMNullableResourcePlan(status=value)


def pool(path: str, fraction: float = 0.5, plan: str = "p", policy: str | None = None, **expectations: Any) -> Call:
    return call("create_wm_pool", WMCreatePoolRequest(WMPool(plan, path, fraction, 2, policy, NS)), **expectations)


def mapping(kind: str, name: str, path: str | None, *, update: bool = False, **expectations: Any) -> Call:
    request = WMCreateOrUpdateMappingRequest(WMMapping("p", kind, name, path, 1, NS), update)
    return call("create_or_update_wm_mapping", request, **expectations)


def link(trigger: str, path: str, *, drop: bool = False) -> Call:
    request = WMCreateOrDropTriggerToPoolMappingRequest("p", trigger, path, drop, NS)
    return call("create_or_drop_wm_trigger_to_pool_mapping", request)


def validate(name: str) -> Call:
    return call("validate_resource_plan", WMValidateResourcePlanRequest(name, NS), is_ordered=False)


def drop(name: str) -> Call:
    return call("drop_resource_plan", WMDropResourcePlanRequest(name, NS))


ALL = call("get_all_resource_plans", WMGetAllResourcePlanRequest(NS), is_ordered=False)
ACTIVE_PLAN = call("get_active_resource_plan", WMGetActiveResourcePlanRequest(NS), is_ordered=False)

PLANS = Scenario.of(
    "plans",
    create("P", 10),
    create("p"),
    create(" "),
    create("x", 0),
    create("x", copy_from="none"),
    get("p"),
    get("p", "other"),
    get("none"),
    validate("p"),
    validate("none"),
    alter("p", status(ACTIVE)),
    alter("p", WMNullableResourcePlan(name="q")),
    alter("q", WMNullableResourcePlan(queryParallelism=3, isSetQueryParallelism=True)),
    alter("q", status(ENABLED)),
    alter("q", WMNullableResourcePlan(queryParallelism=10, isSetQueryParallelism=True)),
    alter("q", WMNullableResourcePlan(defaultPoolPath="none", isSetDefaultPoolPath=True)),
    alter("q", WMNullableResourcePlan(queryParallelism=0, isSetQueryParallelism=True)),
    alter("q", WMNullableResourcePlan(ns="other")),
    alter("q", WMNullableResourcePlan(status=ENABLED, queryParallelism=3, isSetQueryParallelism=True)),
    alter("q", status(ENABLED)),
    alter("q", WMNullableResourcePlan(name="r")),
    ACTIVE_PLAN,
    alter("q", status(ACTIVE)),
    ACTIVE_PLAN,
    alter("q", status(ACTIVE)),
    alter("q", status(DISABLED)),
    drop("q"),
    create("second"),
    alter("second", status(ACTIVE), isEnableAndActivate=True),
    ALL,
    alter("q", status(ACTIVE), isEnableAndActivate=True, isReplace=True),
    alter("q", WMNullableResourcePlan(), isReplace=True),
    alter("q", WMNullableResourcePlan(name="q"), isReplace=True),
    alter(None, status(DISABLED), isForceDeactivate=True),
    ACTIVE_PLAN,
    ALL,
    drop("q"),
    drop("second"),
    drop("second"),
    ALL,
)

PARTS = Scenario.of(
    "parts",
    create("p", 8),
    pool("a", 0.25),
    pool("a"),
    pool("a.b", 1.0, policy="fifo"),
    pool("none.b"),
    pool("c", policy="lifo"),
    pool("c", plan="none"),
    call("alter_wm_pool", WMAlterPoolRequest(WMNullablePool("p", "default", 0.75, 3, ns=NS), "default")),
    call("alter_wm_pool", WMAlterPoolRequest(WMNullablePool("p", "z", ns=NS), "a")),
    call("alter_wm_pool", WMAlterPoolRequest(WMNullablePool("p", "y", ns=NS), "none")),
    call("create_wm_trigger", WMCreateTriggerRequest(WMTrigger("p", "T", "ELAPSED_TIME > 10", "KILL", ns=NS))),
    call("create_wm_trigger", WMCreateTriggerRequest(WMTrigger("p", "t", "x", "y", ns=NS))),
    call("alter_wm_trigger", WMAlterTriggerRequest(WMTrigger("p", "t", actionExpression="MOVE TO z", ns=NS))),
    call("alter_wm_trigger", WMAlterTriggerRequest(WMTrigger("p", "none", ns=NS))),
    link("t", "z"),
    link("t", "none"),
    link("none", "z"),
    mapping("user", "U", "z.b"),
    mapping("GROUP", "g", None),
    mapping("USER", "u", "default", update=True),
    mapping("USER", "v", "none"),
    get("p"),
    call("get_triggers_for_resourceplan", WMGetTriggersForResourePlanRequest("p", NS), is_ordered=False),
    call("get_triggers_for_resourceplan", WMGetTriggersForResourePlanRequest("none", NS), is_ordered=False),
    validate("p"),
    create("copy", copy_from="p"),
    get("copy"),
    call("drop_wm_pool", WMDropPoolRequest("p", "z", NS)),
    call("drop_wm_pool", WMDropPoolRequest("p", "default", NS)),
    call("drop_wm_pool", WMDropPoolRequest("p", "none", NS)),
    call("drop_wm_mapping", WMDropMappingRequest(WMMapping("p", "USER", "U", ns=NS))),
    call("drop_wm_mapping", WMDropMappingRequest(WMMapping("p", "USER", "U", ns=NS))),
    call("drop_wm_pool", WMDropPoolRequest("p", "z.b", NS)),
    link("t", "z", drop=True),
    call("drop_wm_trigger", WMDropTriggerRequest("p", "t", NS)),
    call("drop_wm_trigger", WMDropTriggerRequest("p", "t", NS)),
    get("p"),
    alter("p", status(ENABLED)),
    alter("copy", WMNullableResourcePlan(name="p")),
    drop("p"),
    drop("copy"),
)

KEY = ScheduledQueryKey("s", "ns")


def maintain(kind: int, **fields: Any) -> Call:
    query = ScheduledQuery(**{"scheduleKey": KEY, "enabled": True, "query": "select 1", "user": "u", **fields})
    return call("scheduled_query_maintenance", ScheduledQueryMaintenanceRequest(kind, query))


FAR, SOON = "0 0 0 1 1 ? 2037", "* * * * * ?"
CREATE, ALTER, DROP = 1, 2, 3
GET = call("get_scheduled_query", KEY)
POLL = call("scheduled_query_poll", ScheduledQueryPollRequest("ns"))

SCHEDULES = (
    "0 0 0 1 * ? 2037",
    "0 30 10-13 ? 1 WED,FRI 2036",
    "0 0/5 14,18 3 2 ? 2036",
    "0 15 10 L * ? 2035",
    "0 15 10 LW 3 ? 2035",
    "0 15 10 15W * ? 2035",
    "0 15 10 L-3 2 ? 2036",
    "0 15 10 ? 5 6L 2034",
    "0 15 10 ? 5 6#3 2034",
    "0 11 11 11 11 ? 2033",
    "0 0 0 ? * MON-WED 2033",
    "0 0 0 30 2 ? 2033",
    "*/15 */20 * 29 2 ? 2032-2036",
    "daily",
    "0 0 0 * *",
    "61 0 0 * * ?",
    "0 0 0 * * *",
)

QUERIES = Scenario.of(
    "scheduled queries",
    GET,
    POLL,
    maintain(CREATE, schedule="daily"),
    maintain(CREATE, schedule=FAR),
    maintain(CREATE, schedule=FAR),
    GET,
    POLL,
    [step for text in SCHEDULES for step in (maintain(ALTER, schedule=text), GET)],
    maintain(ALTER, schedule=SOON, nextExecution=5, user="v"),
    GET,
    maintain(DROP),
    GET,
    maintain(DROP),
    maintain(ALTER, schedule=SOON),
    [maintain(CREATE, schedule=FAR, scheduleKey=ScheduledQueryKey(*key)) for key in ((None, "ns"), ("s", None))],
    POLL,
    call("scheduled_query_progress", ScheduledQueryProgressInfo(999_999, QueryState.FINISHED, "q")),
)

SCENARIOS = (PLANS, PARTS, QUERIES)
