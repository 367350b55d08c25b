"""Fields of answers that may differ from Java's, each with its value in this case, and the reason.

An exemption applies to a field in a state, not to a method: the rest of the answer is compared unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thrift.protocol.TBase import TBase

from hms_cache.store.rows.parameters import DDL_TIME, accurate_columns, without_claims_about_columns
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatisticsObj

_SERDE_FORMAT = {"serialization.format": "1"}
_TARGET_LAST_ID = "repl.target.last.id"

FEWER_EVENTS = "The log of Java has fewer events here: the tests' listener leaves kinds out."


@dataclass(frozen=True)
class Field:
    """A field that may differ: in which structs (none: in all), in which state, and why."""

    name: str
    why: str
    applies: Callable[[Any, Any], bool]
    """(Java's value, ours)"""
    structs: tuple[str, ...] = ()


MADE_UP_NAME = re.compile(r"((?:pk|fk|uk|nn|dc)_)\d+_\d{13}_\d+")


def _are_without_claims(java: Any, ours: Any) -> bool:
    """Except for the time of the change, which always differs."""
    if not java or not ours or not accurate_columns(java):
        return False
    return bool({**ours, DDL_TIME: None} == {**without_claims_about_columns(java), DDL_TIME: None})


def _are_made_up(java: Any, ours: Any) -> bool:
    found = [MADE_UP_NAME.fullmatch(str(one)) for one in (java, ours)]
    return None not in found and len({match.group(1) for match in found if match}) == 1


FIELDS = (
    Field(
        "isStatsCompliant",
        "Java says of tables alone whether their statistics hold for the reader's list, ours of the rest, too.",
        lambda java, ours: java is None and ours is not None,
        (
            "GetTableResult",
            "Partition",
            "PartitionSpec",
            "ColumnStatistics",
            "TableStatsResult",
            "PartitionsStatsResult",
            "AggrStats",
        ),
    ),
    Field(
        "parameters",
        "Java answers without this parameter for transactional tables, though it stores it.",
        lambda java, ours: not java and ours == _SERDE_FORMAT,
        ("SerDeInfo",),
    ),
    Field(
        "writeId",
        "Java forgets the write id with which a partition is added until the partition is altered.",
        lambda java, ours: java == -1 and ours > 0,
        ("Partition",),
    ),
    Field(
        "parameters",
        "Java keeps the claim that statistics of columns are exact when it deletes them, as an exchange does.",
        _are_without_claims,
        ("Partition",),
    ),
    *(
        Field(name, "The names of constraints without one are made of a hash and the time.", _are_made_up)
        for name in ("pk_name", "fk_name", "uk_name", "nn_name", "dc_name")
    ),
    Field(
        "numDVs",
        "Java merges numbers of distinct values without their bit vectors unless it is told to fetch them: the greater"
        " one is kept. Ours merges the vectors, and finds more.",
        lambda java, ours: java is not None and ours is not None and ours > java,
    ),
)


def reconcile(java: Any, ours: Any, reasons: Counter[str]) -> None:
    """Replaces our values by Java's where one of `FIELDS` gives a reason for the difference, and counts the reasons."""
    if isinstance(java, TBase) and type(java) is type(ours):
        for name in type(java).__slots__:
            expected, found = getattr(java, name), getattr(ours, name)
            if expected != found:
                field = _exempted(type(java).__name__, name, expected, found)
                if field is None:
                    reconcile(expected, found, reasons)
                else:
                    setattr(ours, name, expected)
                    reasons[field.why] += 1
    elif isinstance(java, dict) and isinstance(ours, dict):
        if java.keys() == ours.keys() and java.get(_TARGET_LAST_ID) != ours.get(_TARGET_LAST_ID):
            reasons[FEWER_EVENTS] += 1
            ours[_TARGET_LAST_ID] = java[_TARGET_LAST_ID]
        for key in java.keys() & ours.keys():
            reconcile(java[key], ours[key], reasons)
    elif isinstance(java, list) and isinstance(ours, list) and len(java) == len(ours):
        if java and all(isinstance(one, ColumnStatisticsObj) for one in (*java, *ours)):
            for statistics in (java, ours):  # they come in no order
                statistics.sort(key=lambda one: str(one.colName))
        for expected, found in zip(java, ours, strict=True):
            reconcile(expected, found, reasons)


def _exempted(struct: str, name: str, java: Any, ours: Any) -> Field | None:
    return next(
        (
            field
            for field in FIELDS
            if field.name == name and (not field.structs or struct in field.structs) and field.applies(java, ours)
        ),
        None,
    )
