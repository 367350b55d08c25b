"""Reads of partitions that return grants: only those of the user who asks are returned.

Such a read may name any user and any groups, and the answer contains their privileges and roles. Those of other users
are for principals who may manage the metastore, as in `list_privileges` and `list_roles`. Clients of Hive and Spark
name their own user, with the groups that they claim to belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from hms_cache.authorization.decisions import METASTORE, Action, Decisions

_POSITIONAL = (None, "user_name", "group_names")
GRANTEES: Mapping[str, tuple[str | None, str, str]] = MappingProxyType(
    {
        "get_partition_with_auth": _POSITIONAL,
        "get_partitions_ps_with_auth": _POSITIONAL,
        "get_partitions_ps_with_auth_req": ("req", "userName", "groupNames"),
        "get_partitions_with_auth": _POSITIONAL,
        "get_partitions_with_specs": ("request", "user", "groupNames"),
    }
)
"""By method: the request, and the fields that hold the user and the groups."""


def shows_only_own(method: str, arguments: Any, user: str, decisions: Decisions) -> bool:
    """Removes the grantees whose grants the user may not see from the request. Raises UndecidedError.

    Returns whether the answer differs from what the named grantee would get for the same request.
    """
    fields = GRANTEES.get(method)
    if fields is None:
        return False
    holder, user_field, groups_field = fields
    request = arguments if holder is None else getattr(arguments, holder)
    name, groups = getattr(request, user_field, None), getattr(request, groups_field, None)
    if name is None or (name == user and not groups):
        return False
    if name != user and decisions.allow(Action.MANAGE, METASTORE):
        return False
    setattr(request, user_field, name if name == user else None)
    setattr(request, groups_field, None)
    return bool(name != user)
