"""Resource plans: creation, copies, status and replacement. Facts: `ObjectStore`, `HMSHandler` (Hive 4.0.1).

Differs where Hive's behaviour is accidental: a plan created without a namespace belongs to ``default``, where later
calls look for it (Hive stores NULL and cannot find the plan).
"""

from __future__ import annotations

import time

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from hms_cache.metadata.names import normalize_identifier
from hms_cache.store.engine.bulk_writes import in_ids
from hms_cache.store.engine.context import PartOfStore, require_table
from hms_cache.store.engine.database import features_of
from hms_cache.store.engine.work_units import WriteTransaction, run_read, run_write
from hms_cache.store.schema import WM_MAPPING, WM_POOL, WM_POOL_TO_TRIGGER, WM_RESOURCEPLAN, WM_TRIGGER
from hms_cache.store.workload.rows import (
    ACTIVE,
    DISABLED,
    ENABLED,
    PLANS,
    POOLS,
    TRIGGERS,
    PlanContent,
    PlanRow,
    full_plan_struct,
    namespace_of,
    plan_struct,
    read_content,
    read_plans,
    require_plan,
    require_pool,
    trigger_struct,
)
from hms_cache.store.workload.validation import validate
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    WMFullResourcePlan,
    WMNullableResourcePlan,
    WMResourcePlan,
    WMResourcePlanStatus,
    WMTrigger,
    WMValidateResourcePlanResponse,
)

DEFAULT_POOL_PATH = "default"


class ResourcePlans(PartOfStore):
    """Reads and writes of plans as a whole. Thread-safe; each method is one transaction."""

    def create(self, plan: WMResourcePlan, copy_from: str | None) -> None:
        """Creates a disabled plan: a copy of another, or one with a pool ``default`` that has all resources.

        The pool's size is the plan's parallelism or `workload.default_pool_size`; if that is 0 or below, no pool is
        created.

        :raises InvalidObjectException: no name, or a parallelism that is not positive.
        :raises AlreadyExistsException: the namespace has a plan with this name.
        :raises NoSuchObjectException: the plan to copy does not exist.
        """
        name = normalize_identifier(plan.name or "")
        if not name:
            raise InvalidObjectException("Resource name cannot be empty.")
        if copy_from is None and plan.queryParallelism is not None and plan.queryParallelism <= 0:
            raise InvalidObjectException("Query parallelism should be positive.")
        namespace = namespace_of(plan.ns)
        pool_size = self._context.settings.workload.default_pool_size
        if pool_size > 0 and plan.queryParallelism is not None:
            pool_size = plan.queryParallelism

        def work(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            plan_id = transaction.id("MWMResourcePlan")
            # Locked, since its parts are read by several statements.
            source = None if copy_from is None else require_plan(connection, copy_from, namespace, lock=True)
            if read_plans(connection, namespace, name=name):
                raise AlreadyExistsException(f"Resource plan already exists: {name}")
            values = {
                "RP_ID": plan_id,
                "NAME": name,
                "NS": namespace,
                "QUERY_PARALLELISM": plan.queryParallelism if source is None else source.parallelism,
                "STATUS": DISABLED,
            }
            row = features_of(connection).writable(WM_RESOURCEPLAN, values)
            try:
                connection.execute(insert(WM_RESOURCEPLAN).values(row))
            except IntegrityError as error:
                raise AlreadyExistsException(f"Resource plan already exists: {name}") from error
            if source is not None:
                _copy_content(transaction, source, plan_id)
            elif pool_size > 0:
                _insert_default_pool(transaction, plan_id, pool_size)

        require_table(self._database, WM_RESOURCEPLAN)
        run_write(self._database, work)

    def get(self, name: str, namespace: str | None) -> WMFullResourcePlan:
        """A plan with its parts. :raises NoSuchObjectException: it does not exist."""

        def read(connection: Connection) -> WMFullResourcePlan:
            return _full(connection, require_plan(connection, name, namespace))

        require_table(self._database, WM_RESOURCEPLAN)
        return run_read(self._database, read)

    def get_all(self, namespace: str | None) -> list[WMResourcePlan]:
        """The plans of the namespace by name, without their parts."""

        def read(connection: Connection) -> list[WMResourcePlan]:
            plans = read_plans(connection, namespace_of(namespace))
            ids = [plan.default_pool_id for plan in plans if plan.default_pool_id is not None]
            rows = connection.execute(
                select(POOLS.POOL_ID, POOLS.PATH).where(in_ids(POOLS.POOL_ID)), {"ids": ids}
            ).all()
            paths: dict[int | None, str] = {row.POOL_ID: row.PATH for row in rows}
            return [plan_struct(plan, paths.get(plan.default_pool_id)) for plan in plans]

        require_table(self._database, WM_RESOURCEPLAN)
        return run_read(self._database, read)

    def get_active(self, namespace: str | None) -> WMFullResourcePlan | None:
        """The active plan of the namespace, or None."""

        def read(connection: Connection) -> WMFullResourcePlan | None:
            found = read_plans(connection, namespace_of(namespace), status=ACTIVE)
            return _full(connection, found[0]) if found else None

        require_table(self._database, WM_RESOURCEPLAN)
        return run_read(self._database, read)

    def get_triggers(self, name: str, namespace: str | None) -> list[WMTrigger]:
        """The triggers of a plan by name. :raises NoSuchObjectException: no such plan."""

        def read(connection: Connection) -> list[WMTrigger]:
            plan = require_plan(connection, name, namespace)
            rows = connection.execute(select(*TRIGGERS).where(TRIGGERS.RP_ID == plan.plan_id).order_by(TRIGGERS.NAME))
            return [trigger_struct(plan, row) for row in rows]

        require_table(self._database, WM_RESOURCEPLAN)
        return run_read(self._database, read)

    def validate(self, name: str, namespace: str | None) -> WMValidateResourcePlanResponse:
        """The errors of a plan. :raises NoSuchObjectException: it does not exist."""

        def read(connection: Connection) -> WMValidateResourcePlanResponse:
            found = read_plans(connection, namespace_of(namespace), name=normalize_identifier(name))
            if not found:
                raise NoSuchObjectException(
                    f"Cannot find resourcePlan: {normalize_identifier(name)} in {namespace_of(namespace)}"
                )
            return validate(found[0], read_content(connection, found[0].plan_id))

        require_table(self._database, WM_RESOURCEPLAN)
        return run_read(self._database, read)

    def alter(
        self,
        name: str | None,
        namespace: str | None,
        changes: WMNullableResourcePlan,
        *,
        can_activate_disabled: bool = False,
        can_deactivate: bool = False,
        is_replace: bool = False,
    ) -> WMFullResourcePlan | None:
        """Changes fields of a disabled plan, changes a plan's status, or replaces another plan.

        :param name: None: the active plan.
        :param can_activate_disabled: permits the change from disabled to active.
        :param can_deactivate: permits to disable the active plan without a replacement.
        :param is_replace: `name` gets the name and status of the plan that `changes` names, or of the active one; that
          one is disabled and renamed ``<name>_old_<time>``.
        :return: the whole plan if it has become active.
        :raises InvalidOperationException: the change is not allowed in this status, or the plan is invalid.
        :raises NoSuchObjectException: no such plan, no such default pool.
        :raises AlreadyExistsException: the new name exists.
        """
        namespace = namespace_of(namespace)
        name = None if name is None else normalize_identifier(name)

        def work(transaction: WriteTransaction) -> WMFullResourcePlan | None:
            connection = transaction.connection
            # Locks all plans of the namespace, since an activation depends on the others.
            plans = read_plans(connection, namespace, lock=True)
            try:
                if is_replace:
                    return _replace(connection, plans, name, namespace, changes, self._suffix())
                plan = _chosen(plans, name, namespace)
                _check_changes(plan, changes, name)
                _change_fields(connection, plan, changes)
                status = _status_name(changes)
                if status is None:
                    return None
                return _switch_status(connection, plans, plan, status, can_activate_disabled, can_deactivate)
            except IntegrityError as error:
                raise AlreadyExistsException(f"Resource plan name should be unique: {changes.name}") from error

        if is_replace and name is None:
            raise InvalidOperationException("Cannot replace without specifying the source plan")
        require_table(self._database, WM_RESOURCEPLAN)
        return run_write(self._database, work)

    def drop(self, name: str, namespace: str | None) -> None:
        """Drops a plan with its parts.

        :raises NoSuchObjectException: it does not exist.
        :raises MetaException: it is active.
        """

        def work(transaction: WriteTransaction) -> None:
            connection = transaction.connection
            plan = require_plan(connection, name, namespace, lock=True)
            if plan.status == ACTIVE:
                raise MetaException("Cannot drop an active resource plan")
            mine = select(POOLS.POOL_ID).where(POOLS.RP_ID == plan.plan_id)
            connection.execute(update(WM_RESOURCEPLAN).where(PLANS.RP_ID == plan.plan_id).values(DEFAULT_POOL_ID=None))
            connection.execute(delete(WM_POOL_TO_TRIGGER).where(WM_POOL_TO_TRIGGER.c.POOL_ID.in_(mine)))
            for table in (WM_TRIGGER, WM_MAPPING, WM_POOL, WM_RESOURCEPLAN):
                connection.execute(delete(table).where(table.c.RP_ID == plan.plan_id))

        require_table(self._database, WM_RESOURCEPLAN)
        run_write(self._database, work)

    def _suffix(self) -> str:
        """Suffix with the local time that marks replaced plans, as in Hive."""
        return time.strftime("_old_%Y_%m_%d_%H_%M_%S", time.localtime(self._context.clock.epoch_s()))


def _full(connection: Connection, plan: PlanRow) -> WMFullResourcePlan:
    return full_plan_struct(plan, read_content(connection, plan.plan_id))


def _insert_default_pool(transaction: WriteTransaction, plan_id: int, size: int) -> None:
    pool_id = transaction.id("MWMPool")
    transaction.connection.execute(
        insert(WM_POOL).values(
            POOL_ID=pool_id, RP_ID=plan_id, PATH=DEFAULT_POOL_PATH, ALLOC_FRACTION=1.0, QUERY_PARALLELISM=size
        )
    )
    _set_default_pool(transaction.connection, plan_id, pool_id)


def _set_default_pool(connection: Connection, plan_id: int, pool_id: int | None) -> None:
    connection.execute(update(WM_RESOURCEPLAN).where(PLANS.RP_ID == plan_id).values(DEFAULT_POOL_ID=pool_id))


def _copy_content(transaction: WriteTransaction, source: PlanRow, plan_id: int) -> None:
    connection = transaction.connection
    content: PlanContent = read_content(connection, source.plan_id)
    pool_ids = dict(
        zip((row.POOL_ID for row in content.pools), transaction.ids("MWMPool", len(content.pools)), strict=True)
    )
    trigger_ids = dict(
        zip(
            (row.TRIGGER_ID for row in content.triggers),
            transaction.ids("MWMTrigger", len(content.triggers)),
            strict=True,
        )
    )
    mapping_ids = transaction.ids("MWMMapping", len(content.mappings))
    pools = [{**row._mapping, "POOL_ID": pool_ids[row.POOL_ID], "RP_ID": plan_id} for row in content.pools]
    triggers = [
        {**row._mapping, "TRIGGER_ID": trigger_ids[row.TRIGGER_ID], "RP_ID": plan_id} for row in content.triggers
    ]
    mappings = [
        {**row._mapping, "MAPPING_ID": new_id, "RP_ID": plan_id, "POOL_ID": pool_ids.get(row.POOL_ID)}
        for row, new_id in zip(content.mappings, mapping_ids, strict=True)
    ]
    links = [{"POOL_ID": pool_ids[pool], "TRIGGER_ID": trigger_ids[trigger]} for pool, trigger in content.pool_triggers]
    for table, rows in ((WM_POOL, pools), (WM_TRIGGER, triggers), (WM_MAPPING, mappings), (WM_POOL_TO_TRIGGER, links)):
        if rows:
            connection.execute(insert(table), rows)
    if source.default_pool_id is not None:
        _set_default_pool(connection, plan_id, pool_ids[source.default_pool_id])


def _chosen(plans: list[PlanRow], name: str | None, namespace: str) -> PlanRow:
    """The plan with this name; None: the active one."""
    for plan in plans:
        if plan.name == name if name is not None else plan.status == ACTIVE:
            return plan
    if name is None:
        raise NoSuchObjectException(f"There is no active resource plan in {namespace}")
    raise NoSuchObjectException(f"There is no resource plan named: {name} in {namespace}")


def _check_changes(plan: PlanRow, changes: WMNullableResourcePlan, name: str | None) -> None:
    if changes.status is None and name is not None and plan.status != DISABLED:
        raise InvalidOperationException("Resource plan must be disabled to edit it.")
    if changes.ns is not None and changes.ns != plan.namespace:
        raise InvalidOperationException(f"Cannot change ns; from {plan.namespace} to {changes.ns}")
    changes_name = changes.name is not None and changes.name != name
    if changes.isSetQueryParallelism is not None or changes.isSetDefaultPoolPath is not None or changes_name:
        if changes.status is not None:
            raise InvalidOperationException("Cannot change values during status switch.")
        if plan.status != DISABLED:
            raise InvalidOperationException("Resource plan must be disabled to edit it.")


def _change_fields(connection: Connection, plan: PlanRow, changes: WMNullableResourcePlan) -> None:
    """The ``isSet…`` flags tell whether a value is given, which may be null."""
    values: dict[str, object] = {}
    if changes.name is not None:
        new_name = normalize_identifier(changes.name)
        if not new_name:
            raise InvalidOperationException("Cannot rename to empty value.")
        if new_name != plan.name:
            values["NAME"] = plan.name = new_name
    if changes.isSetQueryParallelism:
        if changes.queryParallelism is not None and changes.queryParallelism <= 0:
            raise InvalidOperationException("queryParallelism should be positive.")
        values["QUERY_PARALLELISM"] = plan.parallelism = changes.queryParallelism
    if changes.isSetDefaultPoolPath:
        plan.default_pool_id = None
        if changes.defaultPoolPath is not None:
            plan.default_pool_id = require_pool(connection, plan, changes.defaultPoolPath).POOL_ID
        values["DEFAULT_POOL_ID"] = plan.default_pool_id
    if values:
        connection.execute(update(WM_RESOURCEPLAN).where(PLANS.RP_ID == plan.plan_id).values(values))


def _switch_status(
    connection: Connection,
    plans: list[PlanRow],
    plan: PlanRow,
    status: str,
    can_activate_disabled: bool,
    can_deactivate: bool,
) -> WMFullResourcePlan | None:
    if status == plan.status:
        return None
    if plan.status == ACTIVE and not can_deactivate:
        raise InvalidOperationException(
            f"Resource plan {plan.name} is active; activate another plan first, or disable workload management."
        )
    if plan.status == DISABLED:
        if status == ACTIVE and not can_activate_disabled:
            raise InvalidOperationException(
                f"Resource plan {plan.name} is disabled and should be enabled before activation "
                "(or in the same command)"
            )
        errors = validate(plan, read_content(connection, plan.plan_id)).errors
        if errors:
            raise InvalidOperationException(f"ResourcePlan: {plan.name} is invalid: [{', '.join(errors)}]")
    if status == ACTIVE:
        for other in plans:
            if other.status == ACTIVE:
                _set_status(connection, other, ENABLED)
    _set_status(connection, plan, status)
    return _full(connection, plan) if status == ACTIVE else None


def _set_status(connection: Connection, plan: PlanRow, status: str) -> None:
    plan.status = status
    connection.execute(update(WM_RESOURCEPLAN).where(PLANS.RP_ID == plan.plan_id).values(STATUS=status))


def _replace(
    connection: Connection,
    plans: list[PlanRow],
    name: str | None,
    namespace: str,
    changes: WMNullableResourcePlan,
    suffix: str,
) -> WMFullResourcePlan | None:
    if changes.queryParallelism is not None or changes.defaultPoolPath is not None:
        raise InvalidOperationException("Cannot change values during replace.")
    replaces_active = changes.status == WMResourcePlanStatus.ACTIVE
    if replaces_active == (changes.name is not None):
        shown = (str(changes.name or "null"), _status_name(changes) or "null")
        raise InvalidOperationException(f"Must specify a name, or the active plan; received {', '.join(shown)}")
    replaced = _chosen(plans, None if changes.name is None else normalize_identifier(changes.name), namespace)
    plan = _chosen(plans, name, namespace)
    if replaced.plan_id == plan.plan_id:
        raise InvalidOperationException("A plan cannot replace itself")
    in_use = {each.name for each in plans}
    new_name, attempt, kept_name = replaced.name, 0, f"{replaced.name}{suffix}"
    while kept_name in in_use:
        attempt += 1
        kept_name = f"{replaced.name}{suffix}_{attempt}"
    for row, row_name, status in ((replaced, kept_name, DISABLED), (plan, new_name, replaced.status)):
        row.name, row.status = row_name, status
        statement = update(WM_RESOURCEPLAN).where(PLANS.RP_ID == row.plan_id)
        connection.execute(statement.values(NAME=row_name, STATUS=status))
    return _full(connection, plan) if plan.status == ACTIVE else None


def _status_name(changes: WMNullableResourcePlan) -> str | None:
    """An unknown number counts as no status, as in Java."""
    found: str | None = None if changes.status is None else WMResourcePlanStatus._VALUES_TO_NAMES.get(changes.status)
    return found
