"""Impersonation rules: Hadoop's `hadoop.proxyuser.NAME.users`, `.groups` and `.hosts`.

Facts: `DefaultImpersonationProvider` (hadoop-common 3.3). Whatever no rule allows is denied; `*` allows all.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable

from hms_cache.values import frozen

_PARTS = ("users", "groups", "hosts")

GroupsOf = Callable[[str], frozenset[str]]
"""Returns the groups of a user, none for an unknown one. May wait for another system. Raises GroupsUnknownError."""


class GroupsUnknownError(Exception):
    """The system of groups does not answer."""


@frozen
class _Rule:
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()


class ProxyUsers:
    """The rules of one server. Format: `NAME users=a,b groups=g hosts=10.0.0.0/8,h; NAME …`."""

    def __init__(self, rules: str, groups_of: GroupsOf) -> None:
        """Raises ValueError if the text is not a list of rules."""
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
        """The reason why `real_user`, connected from `address`, may not act for `user`; None if it may. May block on
        name servers and on the system of groups.

        :param principal: the name to use in the message.
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
        """Whether the user is in one of the rule's groups. Raises GroupsUnknownError."""
        return "*" in rule.groups or bool(rule.groups and rule.groups & self._groups_of(user))


def _matches(host: str, address: str) -> bool:
    """Whether the address matches `host`: `*`, a network, an address or a name."""
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
