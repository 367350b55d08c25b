"""Sets the grantor of new grants to the user who sends the request, whatever name the request contains.

Grants that differ only in the grantor are stored separately. With invented names, a user could repeat a grant without
limit, and make it look like an administrator's. Administrators, and services that grant for users, may name anyone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hms_cache.authorization.decisions import METASTORE, Action, Decisions
from hms_cache.thrift_gen.hive_metastore.ttypes import PrincipalType, PrivilegeBag, PrivilegeGrantInfo, Table


def claim(arguments: Any, user: str, decisions: Decisions) -> None:
    """Makes the user the grantor of what the request grants. Raises UndecidedError."""
    others = [one for one in _granted(arguments) if (one.grantor, one.grantorType) != (user, PrincipalType.USER)]
    if not others or any(decisions.allow(action, METASTORE) for action in (Action.MANAGE, Action.SERVICE)):
        return
    for one in others:
        one.grantor, one.grantorType = user, PrincipalType.USER


def _granted(arguments: Any) -> Iterator[PrivilegeGrantInfo]:
    """Yields the grants in a request that grants privileges, or in one that creates a table with grants."""
    for request in (arguments, getattr(arguments, "request", None)):
        bag = getattr(request, "privileges", None)
        if isinstance(bag, PrivilegeBag):
            yield from (one.grantInfo for one in bag.privileges or () if one.grantInfo is not None)
        for table in (getattr(request, "tbl", None), getattr(request, "table", None)):
            found = table.privileges if isinstance(table, Table) else None
            if found is not None:
                for grants in (found.userPrivileges, found.groupPrivileges, found.rolePrivileges):
                    for infos in (grants or {}).values():
                        yield from infos
