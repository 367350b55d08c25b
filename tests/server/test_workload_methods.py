"""Resource plans and scheduled queries through a whole server."""

from __future__ import annotations

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Link, Serve


@pytest.fixture
def link(serve: Serve) -> Link:
    return serve().link()


def test_resource_plans(link: Link) -> None:
    plan = ttypes.WMResourcePlan("p", queryParallelism=4)
    link.call("create_resource_plan", request=ttypes.WMCreateResourcePlanRequest(plan))
    copy = ttypes.WMCreateResourcePlanRequest(ttypes.WMResourcePlan("q"), "p")
    link.call("create_resource_plan", request=copy)
    with pytest.raises(ttypes.AlreadyExistsException, match="Resource plan already exists"):
        link.call("create_resource_plan", request=copy)
    link.call("create_wm_trigger", request=ttypes.WMCreateTriggerRequest(ttypes.WMTrigger("p", "t", "e", "KILL")))
    link.call("alter_wm_trigger", request=ttypes.WMAlterTriggerRequest(ttypes.WMTrigger("p", "t", "f")))
    pool = ttypes.WMPool("p", "a", 0.5, 2)
    link.call("create_wm_pool", request=ttypes.WMCreatePoolRequest(pool))
    altered = ttypes.WMNullablePool("p", "default", 0.5, 2)
    link.call("alter_wm_pool", request=ttypes.WMAlterPoolRequest(altered, "default"))
    linked = ttypes.WMCreateOrDropTriggerToPoolMappingRequest("p", "t", "a", False)
    link.call("create_or_drop_wm_trigger_to_pool_mapping", request=linked)
    mapping = ttypes.WMMapping("p", "USER", "u", "a")
    link.call("create_or_update_wm_mapping", request=ttypes.WMCreateOrUpdateMappingRequest(mapping, False))
    full = link.call("get_resource_plan", request=ttypes.WMGetResourcePlanRequest("p")).resourcePlan
    assert [each.poolPath for each in full.pools] == ["a", "default"]
    assert full.poolTriggers == [ttypes.WMPoolTrigger("a", "t")]
    assert [each.entityName for each in full.mappings] == ["u"]
    found = link.call("get_triggers_for_resourceplan", request=ttypes.WMGetTriggersForResourePlanRequest("p"))
    assert [(each.triggerExpression, each.actionExpression) for each in found.triggers] == [("f", "KILL")]
    checked = link.call("validate_resource_plan", request=ttypes.WMValidateResourcePlanRequest("p"))
    assert (checked.errors, checked.warnings) == ([], [])

    assert link.call("get_active_resource_plan", request=ttypes.WMGetActiveResourcePlanRequest()).resourcePlan is None
    activate = ttypes.WMNullableResourcePlan(status=ttypes.WMResourcePlanStatus.ACTIVE)
    request = ttypes.WMAlterResourcePlanRequest("p", activate, isEnableAndActivate=True, isReplace=True)
    with pytest.raises(ttypes.MetaException, match="multiple flags are set"):
        link.call("alter_resource_plan", request=request)
    request.isReplace = None
    assert link.call("alter_resource_plan", request=request).fullResourcePlan.plan.name == "p"
    active = link.call("get_active_resource_plan", request=ttypes.WMGetActiveResourcePlanRequest()).resourcePlan
    assert active.plan.name == "p"
    # The method does not declare this exception.
    with pytest.raises(ttypes.MetaException, match="Resource plan must be disabled to edit it"):
        link.call("create_wm_pool", request=ttypes.WMCreatePoolRequest(ttypes.WMPool("p", "b", 0.5, 2)))
    names = link.call("get_all_resource_plans", request=ttypes.WMGetAllResourcePlanRequest()).resourcePlans
    assert [each.name for each in names] == ["p", "q"]

    off = ttypes.WMNullableResourcePlan(status=ttypes.WMResourcePlanStatus.DISABLED)
    link.call("alter_resource_plan", request=ttypes.WMAlterResourcePlanRequest("p", off, isForceDeactivate=True))
    link.call("drop_wm_mapping", request=ttypes.WMDropMappingRequest(mapping))
    linked.drop = True
    link.call("create_or_drop_wm_trigger_to_pool_mapping", request=linked)
    link.call("drop_wm_trigger", request=ttypes.WMDropTriggerRequest("p", "t"))
    link.call("drop_wm_pool", request=ttypes.WMDropPoolRequest("p", "a"))
    link.call("drop_resource_plan", request=ttypes.WMDropResourcePlanRequest("p"))
    with pytest.raises(ttypes.NoSuchObjectException, match="no resource plan named: p in default"):
        link.call("get_resource_plan", request=ttypes.WMGetResourcePlanRequest("p"))


def test_scheduled_queries(link: Link) -> None:
    key = ttypes.ScheduledQueryKey("s", "hive")
    query = ttypes.ScheduledQuery(key, True, "* * * * * ?", "u", "select 1", nextExecution=1)
    kinds = ttypes.ScheduledQueryMaintenanceRequestType

    def maintain(kind: int) -> None:
        link.call("scheduled_query_maintenance", request=ttypes.ScheduledQueryMaintenanceRequest(kind, query))

    maintain(kinds.CREATE)
    maintain(kinds.ALTER)
    assert link.call("get_scheduled_query", scheduleKey=key) == query
    poll = ttypes.ScheduledQueryPollRequest("hive")
    due = link.call("scheduled_query_poll", request=poll)
    assert (due.scheduleKey, due.query, due.user) == (key, "/* schedule: s */select 1", "u")
    assert link.call("scheduled_query_poll", request=poll) == ttypes.ScheduledQueryPollResponse()
    finished = ttypes.ScheduledQueryProgressInfo(due.executionId, ttypes.QueryState.FINISHED, "q")
    link.call("scheduled_query_progress", info=finished)
    with pytest.raises(ttypes.InvalidOperationException, match="Invalid state change: FINISHED=>FINISHED"):
        link.call("scheduled_query_progress", info=finished)
    maintain(kinds.DROP)
    with pytest.raises(ttypes.NoSuchObjectException, match="no scheduled query for: s@hive"):
        link.call("get_scheduled_query", scheduleKey=key)
