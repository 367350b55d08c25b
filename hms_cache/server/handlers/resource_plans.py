"""Resource plans of workload management."""

from __future__ import annotations

from typing import Any

from hms_cache.server.calls import Call, HandlerTable
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    MetaException,
    WMAlterPoolResponse,
    WMAlterResourcePlanResponse,
    WMAlterTriggerResponse,
    WMCreateOrDropTriggerToPoolMappingResponse,
    WMCreateOrUpdateMappingResponse,
    WMCreatePoolResponse,
    WMCreateResourcePlanResponse,
    WMCreateTriggerResponse,
    WMDropMappingResponse,
    WMDropPoolResponse,
    WMDropResourcePlanResponse,
    WMDropTriggerResponse,
    WMGetActiveResourcePlanResponse,
    WMGetAllResourcePlanResponse,
    WMGetResourcePlanResponse,
    WMGetTriggersForResourePlanResponse,
    WMNullableResourcePlan,
    WMValidateResourcePlanResponse,
)

handlers = HandlerTable()


def _plan(arguments: Any) -> str | None:
    """The name of the plan that a request is about."""
    name: str | None = arguments.request.resourcePlanName
    return name


@handlers.write("create_resource_plan", about=lambda a: a.request.resourcePlan.name)
def create_resource_plan(call: Call, arguments: methods.create_resource_plan_args) -> WMCreateResourcePlanResponse:
    request = arguments.request
    call.stores.auxiliary.resource_plans.create(request.resourcePlan, request.copyFrom)
    return WMCreateResourcePlanResponse()


@handlers.read("get_resource_plan", about=_plan)
def get_resource_plan(call: Call, arguments: methods.get_resource_plan_args) -> WMGetResourcePlanResponse:
    request = arguments.request
    return WMGetResourcePlanResponse(call.stores.auxiliary.resource_plans.get(request.resourcePlanName, request.ns))


@handlers.read("get_active_resource_plan")
def get_active_resource_plan(
    call: Call, arguments: methods.get_active_resource_plan_args
) -> WMGetActiveResourcePlanResponse:
    return WMGetActiveResourcePlanResponse(call.stores.auxiliary.resource_plans.get_active(arguments.request.ns))


@handlers.read("get_all_resource_plans")
def get_all_resource_plans(call: Call, arguments: methods.get_all_resource_plans_args) -> WMGetAllResourcePlanResponse:
    return WMGetAllResourcePlanResponse(call.stores.auxiliary.resource_plans.get_all(arguments.request.ns))


@handlers.write("alter_resource_plan", about=_plan)
def alter_resource_plan(call: Call, arguments: methods.alter_resource_plan_args) -> WMAlterResourcePlanResponse:
    """Returns the whole plan if it became active, so that the client gets it as of that time."""
    request = arguments.request
    flags = (request.isEnableAndActivate, request.isReplace, request.isForceDeactivate)
    if sum(map(bool, flags)) > 1:
        raise MetaException("Invalid request; multiple flags are set")
    return WMAlterResourcePlanResponse(
        call.stores.auxiliary.resource_plans.alter(
            request.resourcePlanName,
            request.ns,
            request.resourcePlan or WMNullableResourcePlan(),
            can_activate_disabled=bool(request.isEnableAndActivate),
            can_deactivate=bool(request.isForceDeactivate),
            is_replace=bool(request.isReplace),
        )
    )


@handlers.read("validate_resource_plan", about=_plan)
def validate_resource_plan(
    call: Call, arguments: methods.validate_resource_plan_args
) -> WMValidateResourcePlanResponse:
    request = arguments.request
    return call.stores.auxiliary.resource_plans.validate(request.resourcePlanName, request.ns)


@handlers.write("drop_resource_plan", about=_plan)
def drop_resource_plan(call: Call, arguments: methods.drop_resource_plan_args) -> WMDropResourcePlanResponse:
    call.stores.auxiliary.resource_plans.drop(arguments.request.resourcePlanName, arguments.request.ns)
    return WMDropResourcePlanResponse()


@handlers.write("create_wm_trigger", about=lambda a: a.request.trigger.triggerName)
def create_wm_trigger(call: Call, arguments: methods.create_wm_trigger_args) -> WMCreateTriggerResponse:
    call.stores.auxiliary.plan_parts.create_trigger(arguments.request.trigger)
    return WMCreateTriggerResponse()


@handlers.write("alter_wm_trigger", about=lambda a: a.request.trigger.triggerName)
def alter_wm_trigger(call: Call, arguments: methods.alter_wm_trigger_args) -> WMAlterTriggerResponse:
    call.stores.auxiliary.plan_parts.alter_trigger(arguments.request.trigger)
    return WMAlterTriggerResponse()


@handlers.write("drop_wm_trigger", about=lambda a: a.request.triggerName)
def drop_wm_trigger(call: Call, arguments: methods.drop_wm_trigger_args) -> WMDropTriggerResponse:
    request = arguments.request
    call.stores.auxiliary.plan_parts.drop_trigger(request.resourcePlanName, request.triggerName, request.ns)
    return WMDropTriggerResponse()


@handlers.read("get_triggers_for_resourceplan", about=_plan)
def get_triggers_for_resourceplan(
    call: Call, arguments: methods.get_triggers_for_resourceplan_args
) -> WMGetTriggersForResourePlanResponse:
    request = arguments.request
    triggers = call.stores.auxiliary.resource_plans.get_triggers(request.resourcePlanName, request.ns)
    return WMGetTriggersForResourePlanResponse(triggers)


@handlers.write("create_wm_pool", about=lambda a: a.request.pool.poolPath)
def create_wm_pool(call: Call, arguments: methods.create_wm_pool_args) -> WMCreatePoolResponse:
    call.stores.auxiliary.plan_parts.create_pool(arguments.request.pool)
    return WMCreatePoolResponse()


@handlers.write("alter_wm_pool", about=lambda a: a.request.poolPath)
def alter_wm_pool(call: Call, arguments: methods.alter_wm_pool_args) -> WMAlterPoolResponse:
    call.stores.auxiliary.plan_parts.alter_pool(arguments.request.pool, arguments.request.poolPath)
    return WMAlterPoolResponse()


@handlers.write("drop_wm_pool", about=lambda a: a.request.poolPath)
def drop_wm_pool(call: Call, arguments: methods.drop_wm_pool_args) -> WMDropPoolResponse:
    request = arguments.request
    call.stores.auxiliary.plan_parts.drop_pool(request.resourcePlanName, request.poolPath, request.ns)
    return WMDropPoolResponse()


@handlers.write("create_or_update_wm_mapping", about=lambda a: a.request.mapping.entityName)
def create_or_update_wm_mapping(
    call: Call, arguments: methods.create_or_update_wm_mapping_args
) -> WMCreateOrUpdateMappingResponse:
    request = arguments.request
    call.stores.auxiliary.plan_parts.save_mapping(request.mapping, is_update=bool(request.update))
    return WMCreateOrUpdateMappingResponse()


@handlers.write("drop_wm_mapping", about=lambda a: a.request.mapping.entityName)
def drop_wm_mapping(call: Call, arguments: methods.drop_wm_mapping_args) -> WMDropMappingResponse:
    call.stores.auxiliary.plan_parts.drop_mapping(arguments.request.mapping)
    return WMDropMappingResponse()


@handlers.write("create_or_drop_wm_trigger_to_pool_mapping", about=lambda a: a.request.triggerName)
def create_or_drop_wm_trigger_to_pool_mapping(
    call: Call, arguments: methods.create_or_drop_wm_trigger_to_pool_mapping_args
) -> WMCreateOrDropTriggerToPoolMappingResponse:
    request = arguments.request
    call.stores.auxiliary.plan_parts.save_pool_trigger(
        request.resourcePlanName, request.triggerName, request.poolPath, request.ns, is_drop=bool(request.drop)
    )
    return WMCreateOrDropTriggerToPoolMappingResponse()
