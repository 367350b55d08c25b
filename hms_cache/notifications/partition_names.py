"""Partition names (``ds=2024-01-01/h=3``) taken apart, as ``Warehouse.makeValsFromName`` of Hive does."""

from __future__ import annotations

import re

from hms_cache.notifications.scope import PartitionValues

_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")


def values_of_partition_name(name: str) -> PartitionValues | None:
    """The values in the order of the name; ``None`` if a part has no key."""
    values = []
    for part in name.split("/"):
        key, equals, value = part.partition("=")
        if not key or not equals:
            return None
        values.append(_ESCAPED.sub(lambda found: chr(int(found.group(1), 16)), value))
    return tuple(values)
