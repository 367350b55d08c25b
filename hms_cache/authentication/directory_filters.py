"""Filters for users of a directory: lists of users and groups, searches, and a query, as in Hive's settings.

Facts: `LdapSearch`, `QueryFactory` and the filters of package `ldap` (Hive 4.0, 4.1). Hive compares only the first part
of a distinguished name; here whole names are compared, because `uid=ann` of another branch is another user. Text from
the user is escaped in filters (RFC 4515).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.values import frozen

USER, USER_DN = "{0}", "{1}"
"""Placeholders in search filters: the user's name, and its distinguished name."""

_NOT_LET_IN = "the user is not let in by this server's filters"
_FOUND = (0, 4, 32)
"""Result codes of a successful search: success, size limit exceeded (there are more), no such object (RFC 4511)."""

_IN_PART = (4, 11)
"""Result codes of an incomplete search: size limit, administrative limit exceeded."""


class PartlyAnsweredError(AuthenticationError):
    """The directory answers, but only with a part of the entries for a user; it may answer completely about others."""

    def __init__(self, text: str) -> None:
        super().__init__(text, "unavailable")


@frozen
class FilterOptions:
    """Conditions for a user. Without any, every user who can bind is accepted."""

    users: frozenset[str] = frozenset()
    """Names in lower case; empty: any."""
    groups: frozenset[str] = frozenset()
    """Names in lower case, of which one is sufficient; empty: any."""
    group_bases: tuple[str, ...] = ()
    """Bases of the search for groups."""
    group_class: str = "groupOfNames"
    group_key: str = "member"
    """Attribute of groups with their members: distinguished names, or names."""
    group_name_attribute: str = "uid"
    """Attribute of groups with their name, used with `user_key`."""
    user_key: str = ""
    """Attribute of users with their groups, such as memberOf; if set, it is used instead of `group_key`."""
    base: str = ""
    """Base of the search for users and for entries of the query."""
    query: str = ""
    """A filter that must find the user, or an entry with the user as `group_key`."""
    user_search: str = ""
    """A filter with USER that must find the user below `base`."""
    group_search: str = ""
    """A filter with USER or USER_DN that must find an entry below `group_search_base`."""
    group_search_base: str = ""

    @property
    def queries_groups(self) -> bool:
        """Whether the directory is searched."""
        return bool(self.groups or self.query or self.user_search or self.group_search)


class DirectoryFilter:
    """Checks users over a connection that may search: the user's own, or an account's."""

    def __init__(self, options: FilterOptions) -> None:
        self._options = options

    def check(self, connection: Any, user: str, user_dn: str) -> None:
        """Raises AuthenticationError if the user is refused or the directory does not answer."""
        options = self._options
        if options.users and user.lower() not in options.users:
            raise AuthenticationError(_NOT_LET_IN)
        if options.groups and not self._is_member(connection, user, user_dn):
            raise AuthenticationError(_NOT_LET_IN)
        if options.query and not self._is_found(connection, user, user_dn):
            raise AuthenticationError(_NOT_LET_IN)
        if options.user_search:
            of_user = filled(options.user_search, user, user_dn)
            if not (is_below(user_dn, options.base) and search(connection, user_dn, of_user, scope="BASE")):
                raise AuthenticationError(_NOT_LET_IN)
        if options.group_search:
            of_groups = filled(options.group_search, user, user_dn)
            if not search(connection, options.group_search_base, of_groups, limit=1):
                raise AuthenticationError(_NOT_LET_IN)

    def groups_of(self, connection: Any, user: str, user_dn: str) -> frozenset[str]:
        """Names, in lower case, of the user's groups below `group_bases`. Raises AuthenticationError."""
        options = self._options
        if options.user_key:
            found = [
                name
                for name in values(connection, user_dn, options.user_key)
                if any(is_below(name, base) for base in options.group_bases)
            ]
        else:
            found = self._groups_with(connection, user, user_dn)
        return frozenset(first_value(name).lower() for name in found)

    def _groups_with(self, connection: Any, user: str, user_dn: str) -> list[str]:
        options = self._options
        member = _any(options.group_key, (user_dn, user))
        return [
            name
            for base in options.group_bases
            for name in search(connection, base, f"(&{_class(options.group_class)}{member})")
        ]

    def _is_member(self, connection: Any, user: str, user_dn: str) -> bool:
        options = self._options
        if options.user_key:
            groups = [name for group in sorted(options.groups) for name in self._groups_named(connection, group)]
            return bool(groups) and bool(
                search(connection, user_dn, _any(options.user_key, groups), limit=1, scope="BASE")
            )
        found = self._groups_with(connection, user, user_dn)
        return any(first_value(name).lower() in options.groups for name in found)

    def _groups_named(self, connection: Any, group: str) -> list[str]:
        """Distinguished names of a group. A name that two groups share matches none, as in Hive."""
        options = self._options
        ldap_filter = f"(&{_class(options.group_class)}{_any(options.group_name_attribute, (group,))})"
        found = [name for base in options.group_bases for name in search(connection, base, ldap_filter, limit=2)]
        return found if len(found) == 1 else []

    def _is_found(self, connection: Any, user: str, user_dn: str) -> bool:
        options = self._options
        if is_below(user_dn, options.base) and search(connection, user_dn, options.query, scope="BASE"):
            return True
        member = _any(options.group_key, (user_dn, user))
        return bool(search(connection, options.base, f"(&{options.query}{member})", limit=1))


def search(connection: Any, base: str, text: str, *, limit: int = 0, scope: str = "SUBTREE") -> list[str]:
    """Distinguished names of the entries found, at most `limit` unless it is 0. Raises AuthenticationError."""
    connection.search(base, text, search_scope=scope, size_limit=limit)
    return [str(one["dn"]) for one in _entries(connection, limit)]


def values(connection: Any, name: str, attribute: str) -> list[str]:
    """Values of an attribute of the entry with this distinguished name. Raises AuthenticationError."""
    connection.search(name, "(objectClass=*)", search_scope="BASE", attributes=[attribute])
    found = [one["raw_attributes"].get(attribute, ()) for one in _entries(connection, 0)]
    return [value.decode("utf-8", "replace") for of_entry in found for value in of_entry]


def _entries(connection: Any, limit: int) -> list[Any]:
    """Results of the last search. Raises AuthenticationError if it failed or was incomplete."""
    code = connection.result["result"]
    if code not in _FOUND or (code == 4 and not limit):
        description = connection.result.get("description")
        if code in _IN_PART:
            raise PartlyAnsweredError(f"the directory of users answers a part of a search only: {description}")
        raise AuthenticationError(f"the directory of users does not answer a search: {description}", "unavailable")
    return [one for one in connection.response or () if one.get("type") == "searchResEntry"]


def filled(text: str, user: str, user_dn: str) -> str:
    """A search filter with its placeholders replaced, in one pass: replacements are not expanded again."""
    from ldap3.utils.conv import escape_filter_chars

    parts = []
    while text:
        places = [(text.index(mark), mark) for mark in (USER, USER_DN) if mark in text]
        if not places:
            break
        place, mark = min(places)
        parts += [text[:place], escape_filter_chars(user if mark == USER else user_dn)]
        text = text[place + len(mark) :]
    return "".join((*parts, text))


def equality(attribute: str, value: str) -> str:
    """A filter for one value of an attribute."""
    from ldap3.utils.conv import escape_filter_chars

    return f"({attribute}={escape_filter_chars(value)})"


def _any(attribute: str, values: Sequence[str]) -> str:
    return f"(|{''.join(equality(attribute, value) for value in values)})"


def _class(name: str) -> str:
    return equality("objectClass", name)


def first_value(name: str) -> str:
    """`analysts` of `cn=analysts,ou=groups,dc=example,dc=com`."""
    return parts_of(name)[0][1]


def is_below(name: str, base: str) -> bool:
    """Whether a distinguished name is the base or below it."""
    inner, outer = ([(key, value.lower()) for key, value in parts_of(one)] for one in (name, base))
    return len(inner) >= len(outer) > 0 and inner[-len(outer) :] == outer


def parts_of(name: str) -> list[tuple[str, str]]:
    """Attribute in lower case and unescaped value of each part of a distinguished name (RFC 4514)."""
    texts = [bytearray()]
    place = 0
    while place < len(name):
        character = name[place]
        place += 1
        if character == ",":
            texts.append(bytearray())
        elif character != "\\":
            texts[-1] += character.encode("utf-8", "surrogatepass")
        elif _is_hex(name[place : place + 2]):
            texts[-1].append(int(name[place : place + 2], 16))
            place += 2
        else:
            texts[-1] += name[place : place + 1].encode("utf-8", "surrogatepass")
            place += 1
    found = []
    for text in texts:
        key, _, value = text.decode("utf-8", "replace").partition("=")
        found.append((key.strip().lower(), value.strip()))
    return found


def _is_hex(text: str) -> bool:
    return len(text) == 2 and all(character in "0123456789abcdefABCDEF" for character in text)
