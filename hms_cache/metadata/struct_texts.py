"""The text of Thrift structs in Java, which occurs in error texts and logs of Hive."""

from __future__ import annotations

from typing import Any


def java_text(value: Any) -> str:
    """The result of `toString` of Hive's generated Java classes. Unset fields are omitted."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{java_text(key)}={java_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return "[" + ", ".join(java_text(item) for item in value) + "]"
    specification = getattr(value, "thrift_spec", None)
    if specification is None:
        return str(value)
    fields = [
        f"{entry[2]}:{java_text(getattr(value, entry[2]))}"
        for entry in specification
        if entry is not None and getattr(value, entry[2]) is not None
    ]
    return f"{type(value).__name__}({', '.join(fields)})"
