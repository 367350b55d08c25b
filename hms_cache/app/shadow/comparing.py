"""Compares two answers, leaving out what may differ between two metastores with the same catalog."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from hms_cache.app.shadow.reads import has_order, returns_wrapper
from hms_cache.values import frozen

#: Set by the clock of the process that created the object, so two catalogs that were filled separately differ in them.
TIMES: Final = frozenset(
    {"createTime", "lastAccessTime", "lastDdlTime", "lastAnalyzed", "last_modified_time", "transient_lastDdlTime"}
)

#: Ids assigned by a database: the same object has other ids in a copy of the catalog.
IDS: Final = frozenset({"id", "tableId", "dbId"})

#: Equivalents of a field that is not set: releases differ in whether they write defaults.
_UNSET: Final = (None, "", 0, False, -1)

#: Maximum length of a value in the report.
_SHOWN: Final = 300


@frozen
class Answer:
    """A metastore's answer to a call, in plain values.

    ``kind``: `value`; `exception`, one that the method declares; `fault`, any other (unknown method, internal error).
    ``content``: the value; of an exception its class, of a fault its number.
    ``text``: the message of an exception or a fault. Messages are not compared.
    """

    kind: Literal["value", "exception", "fault"]
    content: Any
    text: str = ""


@frozen
class Difference:
    """A place where two answers differ."""

    path: str
    primary: str
    other: str


@frozen
class Rules:
    """What the comparison leaves out."""

    compare_times: bool = False
    compare_ids: bool = False

    def ignores(self, name: str) -> bool:
        """Whether the comparison leaves out this field or table parameter."""
        return (name in TIMES and not self.compare_times) or (name in IDS and not self.compare_ids)


def plain(value: Any, rules: Rules) -> Any:
    """Returns the value in plain types: Thrift structs become dicts of their set fields without ignored ones, sets
    become sorted lists, and keys of maps become such that JSON allows."""
    if hasattr(value, "thrift_spec"):
        named = ((field[2], getattr(value, field[2], None)) for field in value.thrift_spec if field is not None)
        fields = ((name, plain(item, rules)) for name, item in named if not rules.ignores(name))
        return {name: item for name, item in fields if not _is_unset(item)}
    if isinstance(value, Mapping):
        return {_key(key): plain(item, rules) for key, item in value.items() if not rules.ignores(str(key))}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item, rules) for item in value), key=_sort_key)
    if isinstance(value, (list, tuple)):
        return [plain(item, rules) for item in value]
    return value


def _key(key: Any) -> Any:
    """Returns a map's key for JSON, which allows no lists as keys. Thrift does: the locations of skewed values have
    such keys."""
    return json.dumps(key) if isinstance(key, list | tuple) else key


def _is_unset(item: Any) -> bool:
    return item in _UNSET or item in ({}, [])


def without_order(method: str, value: Any) -> Any:
    """Returns the value with its lists sorted where Hive defines no order: an answer that is a list, and the lists
    directly in a response object. Lists within objects (columns, partition values) keep their order."""
    if has_order(method):
        return value
    if isinstance(value, list):
        return sorted(value, key=_sort_key)
    if isinstance(value, dict) and returns_wrapper(method):
        return {name: _sorted(item) for name, item in value.items()}
    return value


def _sorted(item: Any) -> Any:
    if isinstance(item, list):
        return sorted(item, key=_sort_key)
    if isinstance(item, dict) and item and all(isinstance(value, list) for value in item.values()):
        return {name: sorted(value, key=_sort_key) for name, value in item.items()}
    return item


def _sort_key(item: Any) -> str:
    return json.dumps(item, sort_keys=True, default=repr)


def differences(method: str, primary: Answer, other: Answer) -> list[Difference]:
    """Returns all places where the answers differ; empty if they are equivalent."""
    if (primary.kind, other.kind) != ("value", "value"):
        if (primary.kind, primary.content) == (other.kind, other.content):
            return []
        return [Difference("", _text_of(primary), _text_of(other))]
    return list(_between("", without_order(method, primary.content), without_order(method, other.content)))


def _text_of(answer: Answer) -> str:
    return _short(answer.content) if answer.kind == "value" else _short(f"{answer.content}: {answer.text}")


def _between(path: str, ours: Any, theirs: Any) -> Iterator[Difference]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted(ours.keys() | theirs.keys(), key=str):
            yield from _between(f"{path}.{name}" if path else str(name), ours.get(name), theirs.get(name))
    elif isinstance(ours, list) and isinstance(theirs, list):
        yield from _between_lists(path, ours, theirs)
    elif ours != theirs and not (_is_unset(ours) and _is_unset(theirs)):
        yield Difference(path, _short(ours), _short(theirs))


def _between_lists(path: str, ours: list[Any], theirs: list[Any]) -> Iterator[Difference]:
    """Yields the differences of two lists. Equal items are removed first, and the rest is paired by name, so that a
    missing item does not make others differ."""
    common = Counter(map(_sort_key, ours)) & Counter(map(_sort_key, theirs))
    left, right = _without(ours, common), _without(theirs, common)
    if not left and not right and ours != theirs:
        yield Difference(path, f"order: {_short(ours)}", f"order: {_short(theirs)}")
    for item in left:
        label = _label(item)
        counterpart = next((other for other in right if isinstance(other, dict) and _label(other) == label), None)
        if counterpart is None:
            yield Difference(f"{path}[{label}]", _short(item), "absent")
        else:
            right.remove(counterpart)
            yield from _between(f"{path}[{label}]", item, counterpart)
    for item in right:
        yield Difference(f"{path}[{_label(item)}]", "absent", _short(item))


def _without(items: list[Any], taken: Counter[str]) -> list[Any]:
    left = Counter(taken)
    kept = []
    for item in items:
        key = _sort_key(item)
        if left[key]:
            left[key] -= 1
        else:
            kept.append(item)
    return kept


def _label(item: Any) -> str:
    """Returns what identifies an item in its list."""
    if isinstance(item, dict):
        for name in ("values", "tableName", "colName", "functionName", "name"):
            if name in item:
                return _short(item[name])
        return ""
    return _short(item)


def _short(value: Any) -> str:
    text = "absent" if value is None else value if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
