"""Every setting of Hive's metastore, and what this server does about it.

The data file beside this module lists the names that `MetastoreConf` has in Hive 3.1.3 and 4.0.1, and what `HiveConf`
has beside them, under both spellings.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal, cast

from hms_cache.values import frozen

Action = Literal["mapped", "harmless", "ignored", "insecure"]
"""mapped: a setting of ours stands for it. harmless: it says nothing that a client of this server could notice.
ignored: it is not honoured. insecure: not honoured, and whoever set it relies on it for protection."""

#: Prefixes of what Hive's metastore reads; a key of these that the file does not list is none that Hive knows.
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
    """A setting of Hive's. ``note`` is the setting it is mapped to, or why it is not honoured and what to do."""

    name: str
    older_name: str
    default: str
    """Hive 4.0.1's, or that of 3.1.3 for what 4.0.1 no longer has."""
    versions: tuple[str, ...]
    action: Action
    in_force: tuple[str, ...]
    """What this server does, in Hive's words, whatever a site file says: the first is what clients are told. Empty
    where no value of Hive's describes it."""
    note: str

    def agrees_with(self, value: str) -> bool:
        """Whether a site file that says ``value`` asks for what is in force."""
        return value.strip().lower() in (known.lower() for known in self.in_force)


@cache
def hive_keys() -> tuple[HiveKey, ...]:
    """All of them, by name."""
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
    """The same under each name; where two share an older name, the first has it."""
    found: dict[str, HiveKey] = {key.name: key for key in hive_keys()}
    for key in hive_keys():
        found.setdefault(key.older_name, key)
    return found


def is_metastore_key(name: str) -> bool:
    """Whether Hive's metastore would read it, by the file or by its prefix."""
    return name in keys_by_spelling() or name.startswith(_PREFIXES)
