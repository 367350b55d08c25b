"""Partition names: `key=value/key2=value2`, escaped so that a name is also a relative path.

The rules are those of Hive's `FileUtils` and `Warehouse` (4.0.1, checked against the jar): they determine
PARTITIONS.PART_NAME, so they must agree with every other writer in each character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hms_cache.metadata.partition_name_codec import (
    PartitionValues,
    components_of,
    unescape_path_name,
    values_of_partition_name,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import InvalidObjectException, MetaException

DEFAULT_PARTITION_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The text in a name for a missing or empty value (Hive's default of `hive.exec.default.partition.name`)."""

_ESCAPED = "".join(chr(code) for code in range(0x20)) + "\"#%'*/:=?[\\]^{\x7f"
_NEEDS_ESCAPE = re.compile("[" + re.escape(_ESCAPED) + "]")
_ESCAPES = {ord(character): f"%{ord(character):02X}" for character in _ESCAPED}
_PLAIN_TEXT = f"[^{re.escape(_ESCAPED)}]*"
_is_value = re.compile(f"(?!$){_PLAIN_TEXT}(?:(?:{'|'.join(_ESCAPES.values())}){_PLAIN_TEXT})*").fullmatch
"""A value in a name: not empty, with the necessary escapes and no others."""


def escape_path_name(text: str | None) -> str:
    """Escapes a part of a name for a path: control characters and those with a meaning in paths become `%XX`.

    None and the empty text become the default partition value. Source: `FileUtils.escapePathName`.
    """
    if not text:
        return DEFAULT_PARTITION_VALUE
    if _NEEDS_ESCAPE.search(text) is None:
        return text
    return text.translate(_ESCAPES)


def make_partition_name(keys: Sequence[str], values: Sequence[str | None]) -> str:
    """The name of the partition with these values in a table with these keys (lower-cased).

    Raises MetaException if their numbers differ, or if there are none. Source: `Warehouse.makePartName`.
    """
    if len(keys) != len(values) or not keys:
        raise MetaException(
            "Invalid partition key & values; keys [" + "".join(f"{key}, " for key in keys) + "], values ["
            "" + "".join(f"{value}, " for value in values) + "]"
        )
    return "/".join(
        f"{escape_path_name(key.lower())}={escape_path_name(value)}" for key, value in zip(keys, values, strict=True)
    )


class PartitionNaming:
    """Names of one table's partitions: escapes the keys only once, for bulk writes."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = list(keys)
        self._prefixes = [escape_path_name(key.lower()) + "=" for key in keys]

    def name(self, values: Sequence[str | None]) -> str:
        """Like `make_partition_name`."""
        if len(values) != len(self._prefixes) or not values:
            return make_partition_name(self._keys, values)
        return "/".join(
            [prefix + escape_path_name(value) for prefix, value in zip(self._prefixes, values, strict=True)]
        )

    def makes(self, name: str) -> bool:
        """Whether a name is the one that `name` makes from the values in it.

        Other programs that write to the database may have escaped a value differently, and a key may have had another
        name: then the partition cannot be found by a name made from its values.
        """
        parts = name.split("/")
        if len(parts) != len(self._prefixes):
            return False
        for prefix, part in zip(self._prefixes, parts, strict=True):
            if not part.startswith(prefix) or _is_value(part, len(prefix)) is None:
                return False
        return True


def values_as_named(values: Iterable[str]) -> PartitionValues:
    """The values as in the partition's name, by which partitions are identified.

    An empty value may be stored as such, but is `DEFAULT_PARTITION_VALUE` in the name.
    """
    return tuple(value or DEFAULT_PARTITION_VALUE for value in values)


def values_of_name(name: str) -> list[str]:
    """The values in a name, in its order.

    Raises MetaException for a component without a key. Source: `Warehouse.makeValsFromName`.
    """
    values = values_of_partition_name(name)
    if values is None:
        component = next(one for one in components_of(name) if one.find("=") < 1)
        raise MetaException(f"Unexpected component {component}")
    return list(values)


def parse_partition_name(name: str) -> dict[str, str]:
    """Keys and values in a name, in its order; components that are not `key=value` are skipped.

    The last `=` separates key and value, as in `Warehouse.makeSpecFromName` (well-formed names have only one).
    """
    specification: dict[str, str] = {}
    for component in name.split("/"):
        # The last "=" that is followed by a value: "a==" is the key "a" with the value "=".
        end = component.rfind("=", 0, -1)
        if end > 0:
            specification[unescape_path_name(component[:end])] = unescape_path_name(component[end + 1 :])
    return specification


def values_for_keys(name: str, keys: Sequence[str]) -> list[str]:
    """The values of a name in the order of the table's keys, in whatever order the name has them.

    Raises InvalidObjectException for a missing key. Source: `HMSHandler.getPartValsFromName`.
    """
    specification = parse_partition_name(name)
    values = []
    for key in keys:
        value = specification.get(key)
        if value is None:
            raise InvalidObjectException(f"incomplete partition name - missing {key}")
        values.append(value)
    return values


def name_with_keys_in_order(name: str, keys: Sequence[str]) -> str:
    """The name with its keys in the table's order, for calls in which Hive finds a partition by its values.

    A name that has this order already, or lacks a key, is not changed: another program may have stored it.
    """
    named = [unescape_path_name(part.partition("=")[0]) for part in name.split("/")]
    if named == list(keys) or sorted(named) != sorted(keys):
        return name
    return make_partition_name(keys, values_for_keys(name, keys))
