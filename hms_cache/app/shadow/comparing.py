"""Two answers compared, without what may differ between two metastores that tell the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from hms_cache.app.shadow.reads import has_order, returns_wrapper
from hms_cache.values import frozen

#: Set by the clock of whoever made the object; two catalogs that were filled separately differ in them.
TIMES: Final = frozenset(
    {"createTime", "lastAccessTime", "lastDdlTime", "lastAnalyzed", "last_modified_time", "transient_lastDdlTime"}
)

#: Ids that a database hands out: the same object has others in a copy of the catalog.
IDS: Final = frozenset({"id", "tableId", "dbId"})

#: How a field that is not set may be spelled: releases differ in whether they write defaults.
_UNSET: Final = (None, "", 0, False, -1)

#: Values are shown up to this length.
_SHOWN: Final = 300


@frozen
class Answer:
    """What a metastore said to a call, in plain values.

    ``kind``: `value`; `exception`, one that the method declares; `fault`, any other (unknown method, internal error).
    ``content``: the value; of the other two the class, or for a fault its number.
    ``text``: the message of an exception or a fault. Wording is not compared.
    """

    kind: Literal["value", "exception", "fault"]
    content: Any
    text: str = ""


@frozen
class Difference:
    """A place where two answers are not the same."""

    path: str
    primary: str
    other: str


@frozen
class Rules:
    """What is left out of the comparison."""

    compare_times: bool = False
    compare_ids: bool = False

    def ignores(self, name: str) -> bool:
        """Whether this field or table parameter is left out."""
        return (name in TIMES and not self.compare_times) or (name in IDS and not self.compare_ids)


def plain(value: Any, rules: Rules) -> Any:
    """Thrift structs as dicts of what they set, without ignored fields; sets as sorted lists; keys as JSON has them."""
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
    """Lists are keys in Thrift, where skewed values have locations, and none in JSON."""
    return json.dumps(key) if isinstance(key, list | tuple) else key


def _is_unset(item: Any) -> bool:
    return item in _UNSET or item in ({}, [])


def without_order(method: str, value: Any) -> Any:
    """The value with its lists sorted where Hive has no order: an answer that is a list, and the lists that a response
    object wraps. Lists within objects (columns, partition values) keep theirs."""
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
    """All places where the answers differ, none when they tell the same."""
    if (primary.kind, other.kind) != ("value", "value"):
        if (primary.kind, primary.content) == (other.kind, other.content):
            return []
        return [Difference("", _said(primary), _said(other))]
    return list(_between("", without_order(method, primary.content), without_order(method, other.content)))


def _said(answer: Answer) -> str:
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
    """Equal items are set aside, the rest is paired by name: one that is missing makes no other differ."""
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
    """What tells an object of a list from its neighbours."""
    if isinstance(item, dict):
        for name in ("values", "tableName", "colName", "functionName", "name"):
            if name in item:
                return _short(item[name])
        return ""
    return _short(item)


def _short(value: Any) -> str:
    text = "absent" if value is None else value if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
