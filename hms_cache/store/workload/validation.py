"""Checks whether a resource plan can be run. Facts: `ObjectStore.getResourcePlanErrors` (Hive 4.0.1)."""

from __future__ import annotations

from dataclasses import dataclass

from hms_cache.store.workload.rows import PlanContent, PlanRow
from hms_cache.thrift_gen.hive_metastore.ttypes import WMPoolSchedulingPolicy, WMValidateResourcePlanResponse

_TOLERANCE = 0.00001
"""Tolerance for fractions: floating-point numbers written as decimals."""


@dataclass(slots=True)
class _Level:
    """A pool, or the root (path ``""``), with what its children need."""

    is_there: bool = False
    has_children: bool = False
    fractions: float = 0.0


def parent_path(path: str) -> str | None:
    """Path of the parent pool; None at the top."""
    parent, dot, _ = path.rpartition(".")
    return parent if dot else None


def is_scheduling_policy(text: str | None) -> bool:
    """Whether it names a policy. Without one, or with ``default``, a pool is fair."""
    return text is None or text.strip().upper() in {"DEFAULT", *WMPoolSchedulingPolicy._NAMES_TO_VALUES}


def validate(plan: PlanRow, content: PlanContent) -> WMValidateResourcePlanResponse:
    """Errors, which prevent a plan from being enabled, and warnings. Expressions of triggers are not checked."""
    errors: list[str] = []
    warnings: list[str] = []
    if plan.parallelism is not None and plan.parallelism < 1:
        errors.append(f"Query parallelism should for resource plan be positive. Got: {plan.parallelism}")
    levels: dict[str, _Level] = {"": _Level(is_there=True)}
    total = 0
    for pool in content.pools:
        levels.setdefault(pool.PATH, _Level()).is_there = True
        parent = levels.setdefault(parent_path(pool.PATH) or "", _Level())
        parent.has_children = True
        parent.fractions += pool.ALLOC_FRACTION or 0.0
        if pool.QUERY_PARALLELISM is None or pool.QUERY_PARALLELISM < 1:
            errors.append(f"Invalid query parallelism for pool: {pool.PATH}")
        else:
            total += pool.QUERY_PARALLELISM
        if not is_scheduling_policy(pool.SCHEDULING_POLICY):
            errors.append(f"Invalid scheduling policy {pool.SCHEDULING_POLICY} for pool: {pool.PATH}")
    if plan.parallelism is not None and plan.parallelism != total:
        sums = f"Sum of all pools' query parallelism: {total}"
        if plan.parallelism < total:
            errors.append(f"{sums} exceeds resource plan query parallelism: {plan.parallelism}")
        else:
            warnings.append(f"{sums} is less than resource plan query parallelism: {plan.parallelism}")
    for path, level in sorted(levels.items()):
        errors.extend(_errors_of(path, level))
    return WMValidateResourcePlanResponse(errors=errors, warnings=warnings)


def _errors_of(path: str, level: _Level) -> list[str]:
    if path == "":
        if not level.has_children:
            return ["Root has no children"]
        if abs(1.0 - level.fractions) > _TOLERANCE:
            return [f"Sum of root children pools' alloc fraction should be 1.0 got: {level.fractions} for pool: "]
        return []
    errors = []
    if not level.is_there:
        errors.append(f"Pool does not exists but has children: {path}")
    if level.has_children and level.fractions - 1.0 > _TOLERANCE:
        errors.append(
            f"Sum of children pools' alloc fraction should be less than 1 got: {level.fractions} for pool: {path}"
        )
    return errors
