"""All settings of Hive's metastore, and how this server treats them.

The data file next to this module lists the names in `MetastoreConf` of Hive 3.1.3, 4.0.1 and 4.1.0, and additional ones
of `HiveConf` and of Cloudera's Hive 2, under both spellings.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal, cast

from hms_cache.values import frozen

Action = Literal["mapped", "harmless", "ignored", "insecure"]
"""mapped: a setting of this server corresponds to it. harmless: it has no effect that a client could notice. ignored:
it is not honoured. insecure: it is not honoured, although an operator who set it relies on its protection."""

#: Prefixes of the settings that Hive's metastore reads. A key with such a prefix that the file does not list is unknown
#: to Hive.
_PREFIXES = (
    "metastore.",
    "hive.metastore.",
    "hive.security.metastore.",
    "hive.compactor.",
    "javax.jdo.",
    "datanucleus.",
)


@frozen
class HiveKey:
    """A setting of Hive. ``note`` is the corresponding setting, or the reason why it is not honoured, with the
    remedy."""

    name: str
    older_name: str
    default: str
    """The default of Hive 4.0.1, or of 3.1.3 if 4.0.1 does not have the setting."""
    versions: tuple[str, ...]
    action: Action
    in_force: tuple[str, ...]
    """Hive's values that describe what this server does, whatever a site file contains; clients receive the first one.
    Empty if no value of Hive describes it."""
    note: str

    def agrees_with(self, value: str) -> bool:
        """Whether ``value`` in a site file requests what is in effect anyway."""
        return value.strip().lower() in (known.lower() for known in self.in_force)


@cache
def hive_keys() -> tuple[HiveKey, ...]:
    """Returns all settings of Hive, in the order of their names."""
    found = []
    text = resources.files("hms_cache.config").joinpath("hive_keys.tsv").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, older_name, default, versions, action, in_force, note = line.split("\t")
            known: tuple[str, ...] = () if in_force == "-" else tuple(in_force.split("|"))
            if in_force == "=":
                known = (default,)
            elif action == "insecure":
                known = (*known, default) if default not in known else known
            found.append(HiveKey(name, older_name, default, tuple(versions.split()), cast(Action, action), known, note))
    return tuple(found)


@cache
def keys_by_spelling() -> Mapping[str, HiveKey]:
    """Returns the settings by each of their names. If two settings share an older name, it belongs to the first one."""
    found: dict[str, HiveKey] = {key.name: key for key in hive_keys()}
    for key in hive_keys():
        found.setdefault(key.older_name, key)
    return found


def is_metastore_key(name: str) -> bool:
    """Whether Hive's metastore would read this key, according to the data file or to its prefix."""
    return name in keys_by_spelling() or name.startswith(_PREFIXES)
