"""A plan of jobs, read from a TOML file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from hms_cache.client.authentication.texts import text_of_hive_keys
from hms_cache.config.quantities import parse_duration_s
from hms_cache.errors import ConfigurationError
from hms_cache.jobs.frame import Job, Option
from hms_cache.jobs.registry import JOBS
from hms_cache.values import frozen

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PLAN_KEYS = {"name", "metastore", "auth", "database", "command", "master", "conf", "lease_wait", "job"}
_STEP_KEYS = {"name", "job", "needs", "time_limit", "lease", "lease_wait", "command", "master", "conf", "options"}


@frozen
class Step:
    """One job of a plan, with its options."""

    name: str
    job: Job
    options: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    """Steps that must have succeeded."""

    time_limit_s: float | None = None
    lease: bool = True
    """Whether it takes a lease on its tables and its output."""

    lease_wait_s: float = 0
    command: tuple[str, ...] = ()
    """Command line before ``jobs step FILE``; empty: this Python."""

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@frozen
class Plan:
    """Steps in order."""

    name: str
    steps: tuple[Step, ...]


def read_plan(path: Path, environment: Mapping[str, str] = os.environ) -> Plan:
    """Reads the plan in a file. ``${NAME}`` in a text is replaced by the environment variable.

    Raises ConfigurationError with all problems.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    problems: list[str] = []
    content = _expanded(content, environment, problems)
    problems += [f"no such key: {key}" for key in sorted(content.keys() - _PLAN_KEYS)]
    entries = content.get("job")
    if not isinstance(entries, list) or not entries:
        raise ConfigurationError([f"{path}: {one}" for one in [*problems, "it has no [[job]]"]])
    steps: list[Step] = []
    for number, entry in enumerate(entries, 1):
        found: list[str] = []
        step = _step(entry, content, [one.name for one in steps], found)
        problems += [f"job {number}: {one}" for one in found]
        if step is not None:
            steps.append(step)
    if problems:
        raise ConfigurationError([f"{path}: {one}" for one in problems])
    return Plan(str(content.get("name") or path.stem), tuple(steps))


def _step(
    entry: Mapping[str, Any], plan: Mapping[str, Any], earlier: Sequence[str], problems: list[str]
) -> Step | None:
    problems += [f"no such key: {key}" for key in sorted(entry.keys() - _STEP_KEYS)]
    job = JOBS.get(str(entry.get("job")))
    if job is None:
        problems.append(f"job = {entry.get('job')!r} is not one of {', '.join(sorted(JOBS))}")
        return None
    name = str(entry.get("name") or job.name)
    if name in earlier:
        problems.append(f"the name {name} is taken; give it another")
    needs = tuple(map(str, _list(entry.get("needs"), "needs", problems)))
    problems += [f"it needs {one}, which is not an earlier job" for one in needs if one not in earlier]
    names = {option.name for option in job.options}
    shared: dict[str, Any] = {
        key: plan[key] for key in ("metastore", "auth", "database") if key in plan and key in names
    }
    given = entry.get("options", {})
    # One source of the catalog is enough if the job accepts either.
    if {"metastore", "database"} & given.keys() and not any(
        option.required for option in job.options if option.name in ("metastore", "database")
    ):
        shared = {}
    if "server" in names and "server" not in given and "metastore" in plan:
        shared["server"] = [plan["metastore"]]
    options = _options(job, {**shared, **given}, problems)
    conf = {str(key): str(value) for key, value in {**plan.get("conf", {}), **entry.get("conf", {})}.items()}
    if not job.needs_spark and "auth" in names and not options.get("auth") and (auth := auth_of_conf(conf)):
        options["auth"] = auth  # no session will tell the job what Spark's own client would do
    return Step(
        name,
        job,
        options,
        needs,
        _duration(entry.get("time_limit"), "time_limit", problems),
        bool(entry.get("lease", True)),
        _duration(entry.get("lease_wait", plan.get("lease_wait")), "lease_wait", problems) or 0,
        tuple(map(str, _list(entry.get("command", plan.get("command")), "command", problems))),
        entry.get("master", plan.get("master")),
        conf,
    )


def auth_of_conf(conf: Mapping[str, str]) -> str:
    """How Spark's own client would authenticate by these settings, as a text; empty: not at all."""
    return text_of_hive_keys(lambda key: conf.get(f"spark.hadoop.{key}") or conf.get(key))


def _options(job: Job, given: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    known = {option.name: option for option in job.options}
    problems += [f"{job.name} has no option {name}" for name in sorted(given.keys() - known.keys())]
    for name, option in known.items():
        if name in given:
            problem = _problem(option, given[name])
            if problem:
                problems.append(f"{name} = {given[name]!r}: {problem}")
        elif option.required:
            problems.append(f"{job.name} needs the option {name}")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def _problem(option: Option, value: Any) -> str:
    if option.multiple:
        is_list = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return "" if is_list else "it must be a list of texts"
    kinds = (int, float) if option.kind is float else (option.kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and option.kind is not bool):
        return f"it must be of type {option.kind.__name__}"
    if option.choices and value not in option.choices:
        return f"it must be one of {', '.join(option.choices)}"
    if isinstance(value, int) and option.minimum is not None and value < option.minimum:
        return f"it must be at least {option.minimum}"
    return ""


def _duration(value: Any, key: str, problems: list[str]) -> float | None:
    if value is None:
        return None
    try:
        seconds = parse_duration_s(str(value), "s")
    except ValueError as error:
        problems.append(f"{key}: {error}")
        return None
    if seconds <= 0:
        problems.append(f"{key} must be above 0")
    return seconds


def _list(value: Any, key: str, problems: list[str]) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        problems.append(f"{key} must be a list")
        return []
    return value


def _expanded(value: Any, environment: Mapping[str, str], problems: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _expanded(one, environment, problems) for key, one in value.items()}
    if isinstance(value, list):
        return [_expanded(one, environment, problems) for one in value]
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        if match[1] not in environment:
            problems.append(f"the environment has no {match[1]}")
        return environment.get(match[1], "")

    return _VARIABLE.sub(variable, value)


def chosen(plan: Plan, names: Sequence[str]) -> Plan:
    """The plan with only these steps, without steps that they need; all steps if none are named.

    Raises ConfigurationError for an unknown name.
    """
    if not names:
        return plan
    unknown = sorted(set(names) - {step.name for step in plan.steps})
    if unknown:
        raise ConfigurationError(f"plan {plan.name} has no {', '.join(unknown)}")
    kept = [step for step in plan.steps if step.name in names]
    steps = (replace(step, needs=tuple(one for one in step.needs if one in names)) for step in kept)
    return Plan(plan.name, tuple(steps))
