"""Who may act for others: Hadoop's `hadoop.proxyuser.NAME.users`, `.groups` and `.hosts`.

Facts: `DefaultImpersonationProvider` (hadoop-common 3.3). What is not said is not allowed; `*` allows all.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable

from hms_cache.values import frozen

_PARTS = ("users", "groups", "hosts")

GroupsOf = Callable[[str], frozenset[str]]
"""The groups of a user; may wait for another system. None are known of a user who is not. Raises GroupsUnknownError."""


class GroupsUnknownError(Exception):
    """Whoever knows the groups of users does not answer."""


@frozen
class _Rule:
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()


class ProxyUsers:
    """The rules of one server. Written `NAME users=a,b groups=g hosts=10.0.0.0/8,h; NAME …`."""

    def __init__(self, rules: str, groups_of: GroupsOf) -> None:
        """Raises ValueError for a text that is no list of rules."""
        self._groups_of = groups_of
        self._rules: dict[str, _Rule] = {}
        for text in filter(None, map(str.strip, rules.split(";"))):
            name, *parts = text.split()
            found: dict[str, frozenset[str]] = {}
            for part in parts:
                key, equals, values = part.partition("=")
                if key not in _PARTS or not equals or key in found:
                    raise ValueError(f"not a rule for proxy users: {text!r}; an example: trino users=* hosts=10.0.0.7")
                found[key] = frozenset(filter(None, values.split(",")))
            for host in found.get("hosts", ()):
                if "/" in host:
                    ipaddress.ip_network(host, strict=False)
            if name in self._rules:
                raise ValueError(f"two rules for the proxy user {name}")
            self._rules[name] = _Rule(**found)

    def refusal(self, real_user: str, user: str, address: str, principal: str = "") -> str | None:
        """Why `real_user`, connected from `address`, may not act for `user`; None: it may. May block on
        name servers and on whoever knows the groups. `principal`: the name to tell.
        """
        rule = self._rules.get(real_user, _Rule())
        refusal = f"User: {principal or real_user} is not allowed to impersonate {user}"
        try:
            if not ("*" in rule.users or user in rule.users or self._has_group(rule, user)):
                return refusal
        except GroupsUnknownError:
            return f"{refusal}: its groups are not known now; retry"
        if not any(_matches(host, address) for host in rule.hosts):
            return f"Unauthorized connection for super-user: {principal or real_user} from IP {address}"
        return None

    def _has_group(self, rule: _Rule, user: str) -> bool:
        """Raises GroupsUnknownError."""
        return "*" in rule.groups or bool(rule.groups and rule.groups & self._groups_of(user))


def _matches(host: str, address: str) -> bool:
    """`host`: `*`, a network, an address or a name."""
    if host in ("*", address):
        return True
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if "/" in host:
        return found in ipaddress.ip_network(host, strict=False)
    try:
        return any(entry[4][0] == address for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    except OSError:
        return False
