"""A policy as a TOML file: users, groups, roles, and grants to them. Everything else is denied."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from hms_cache.authorization.decisions import METASTORE, AccessCheck, Action, SecuredObject
from hms_cache.patterns.wildcards import Wildcard, WildcardPattern
from hms_cache.values import frozen

EVERYBODY = "*"
"""As a user: every principal."""

DEFAULT_DATABASE = "default"

ALL = "all"
"""As an action: every action except `service`."""

MAX_PRINCIPALS = 10_000
"""Maximum number of principals whose class is remembered; for others it is determined each time. Without
authentication, clients may invent any number of names."""

_IMPLY_READ = frozenset({Action.ALTER, Action.DROP, Action.WRITE, Action.UPDATE, Action.DELETE})
_IMPLIED_BY_WRITE = frozenset({Action.UPDATE, Action.DELETE})
_versions = itertools.count(1)

DIRECTORY_GROUPS, TOKEN_GROUPS = "directory_groups", "token_groups"
"""Keys of grants and roles, and the sources that know the members of these groups."""

Membership = tuple[str, str]
"""A source of groups, and the name of a group there. Groups of the same name in two sources are different groups."""

NO_MEMBERSHIPS: frozenset[Membership] = frozenset()


_SETTINGS_OF_SOURCES = {
    DIRECTORY_GROUPS: "authorization.directory_groups = true",
    TOKEN_GROUPS: "authentication.jwt_groups_claim",
}
_KEYS_OF_MEMBERS = ("users", "groups", *_SETTINGS_OF_SOURCES)


def of_token(groups: Iterable[str]) -> frozenset[Membership]:
    """The groups that a bearer token names; compared exactly."""
    return frozenset((TOKEN_GROUPS, name) for name in groups)


def of_directory(groups: Iterable[str]) -> frozenset[Membership]:
    """The groups of an LDAP directory, whose names are case-insensitive."""
    return frozenset((DIRECTORY_GROUPS, name.lower()) for name in groups)


class Members(NamedTuple):
    """The users and groups to whom something is granted."""

    users: frozenset[str]
    groups: frozenset[Membership] = NO_MEMBERSHIPS


class PolicyError(ValueError):
    """The text is not a valid policy; the message says where and why."""


class Names:
    """Names that a grant applies to: each is a name, or a pattern with `*` for any text."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        folded = [text.strip().lower() for text in texts]
        self.is_every = "*" in folded
        self._plain = frozenset(text for text in folded if "*" not in text)
        self._patterns = tuple(
            WildcardPattern(Wildcard.MANY if character == "*" else character for character in text)
            for text in folded
            if "*" in text and text != "*"
        )

    def cover(self, name: str | None) -> bool:
        """Whether the patterns match a name; None, the whole, is matched only by `*`.

        Names of the catalog are ASCII. No pattern matches others: the database's collation may treat them as equal to
        names that the policy does not grant.
        """
        if name is None:
            return self.is_every
        if self.is_every or name in self._plain:
            return name.isascii()
        return name.isascii() and any(pattern.matches(name) for pattern in self._patterns)


@frozen
class Grant:
    """A grant: to whom, which actions, on which objects."""

    members: Members
    actions: frozenset[Action]
    catalogs: Names
    databases: Names
    tables: Names

    def is_for(self, principal: str, groups: frozenset[Membership] = NO_MEMBERSHIPS) -> bool:
        """Whether the grant applies to the principal with these groups."""
        users = self.members.users
        return principal in users or EVERYBODY in users or not groups.isdisjoint(self.members.groups)

    def allows(self, action: Action, of: SecuredObject) -> bool:
        """Whether it grants the action on the object."""
        if action not in self.actions:
            return False
        if action is Action.SERVICE:
            return True
        return self.catalogs.cover(of.catalog) and self.databases.cover(of.database) and self.tables.cover(of.table)

    def shows(self, what: SecuredObject) -> bool:
        """Whether it grants anything on the object or on something in it.

        The default database, which every catalog has, is visible with its catalog: Spark creates one at its start if it
        finds none.
        """
        database = None if what.database == DEFAULT_DATABASE and what.table is None else what.database
        names = (self.catalogs, what.catalog), (self.databases, database), (self.tables, what.table)
        return self.actions != {Action.SERVICE} and all(name is None or of.cover(name) for of, name in names)


class GrantedDecisions:
    """See `Decisions`: the decisions about all principals with the same grants."""

    __slots__ = ("_grants", "policy", "tag")

    def __init__(self, policy: Policy, grants: tuple[Grant, ...], tag: bytes) -> None:
        self.policy = policy
        self._grants = grants
        self.tag = tag

    @property
    def has_any(self) -> bool:
        """Whether anything is granted."""
        return bool(self._grants)

    def allow(self, action: Action, of: SecuredObject) -> bool:
        """Whether at least one grant allows it."""
        return any(grant.allows(action, of) for grant in self._grants)

    def show(self, what: SecuredObject) -> bool:
        """Whether at least one grant shows it."""
        return any(grant.shows(what) for grant in self._grants)

    def may_grant(self, privilege: str | None, of: SecuredObject) -> bool:
        """Whether the principal may manage the metastore: grants in the metastore do not count here."""
        return self.allow(Action.MANAGE, METASTORE)

    def prepare(self, checks: Sequence[AccessCheck]) -> None:
        """Does nothing: no other system is asked."""


class Policy:
    """One version of the file. Its classes are created on demand, without a lock: operations of a dictionary are
    atomic.

    Two threads that meet a new class may both create it; `setdefault` keeps one of them, so tags are unique.
    """

    def __init__(self, grants: tuple[Grant, ...]) -> None:
        self.version = next(_versions)
        self.grants = grants
        self._groups = frozenset[Membership]().union(*(grant.members.groups for grant in grants))
        """The groups that occur in grants. Others, of which a principal may have thousands, are ignored."""

        self._by_principal: dict[tuple[str, frozenset[Membership]], GrantedDecisions] = {}
        self._classes: dict[tuple[int, ...], GrantedDecisions] = {}
        self._numbers = itertools.count(1)
        self._by_tag: dict[bytes, GrantedDecisions] = {}

    def decisions(self, principal: str, groups: frozenset[Membership] = NO_MEMBERSHIPS) -> GrantedDecisions:
        """The decisions of the principal's class."""
        groups &= self._groups
        found = self._by_principal.get((principal, groups))
        if found is None:
            places = tuple(place for place, grant in enumerate(self.grants) if grant.is_for(principal, groups))
            found = self._classes.get(places) or self._make(places)
            if len(self._by_principal) < MAX_PRINCIPALS:
                self._by_principal[principal, groups] = found
        return found

    def decisions_of(self, tag: bytes) -> GrantedDecisions | None:
        """The decisions with this tag in this version."""
        return self._by_tag.get(tag)

    def _make(self, places: tuple[int, ...]) -> GrantedDecisions:
        tag = self.version.to_bytes(8, "big") + next(self._numbers).to_bytes(4, "big")
        made = GrantedDecisions(self, tuple(self.grants[place] for place in places), tag)
        kept = self._classes.setdefault(places, made)
        self._by_tag[kept.tag] = kept
        return kept


def parse_policy(text: str, sources: frozenset[str] = frozenset()) -> Policy:
    """Parses the text of a policy file. Raises PolicyError: a misread policy would be worse than none.

    :param sources: DIRECTORY_GROUPS and TOKEN_GROUPS, if a system knows the members of such groups; otherwise the text
      must not name any.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"not TOML: {error}") from error
    _only(document, {"groups", "roles", "grants"}, "the file")
    groups = {name: _texts(users, f"groups.{name}") for name, users in _table(document, "groups").items()}
    read = partial(_members, groups=groups, sources=sources)
    roles = {name: read(role, where=f"roles.{name}") for name, role in _table(document, "roles").items()}
    grants = document.get("grants", [])
    if not isinstance(grants, list):
        raise PolicyError("grants: write each as [[grants]]")
    return Policy(tuple(_grant(grant, read, roles, f"grant {n}") for n, grant in enumerate(grants, start=1)))


def _grant(given: Any, read: Callable[..., Members], roles: Mapping[str, Members], where: str) -> Grant:
    if not isinstance(given, dict):
        raise PolicyError(f"{where}: write each as [[grants]]")
    _only(given, {*_KEYS_OF_MEMBERS, "roles", "actions", "catalogs", "databases", "tables"}, where)
    members = read({key: given[key] for key in _KEYS_OF_MEMBERS if key in given}, where=where)
    for role in _texts(given.get("roles", []), f"{where}, roles"):
        if role not in roles:
            raise PolicyError(f"{where}: there is no role {role}")
        members = Members(members.users | roles[role].users, members.groups | roles[role].groups)
    if not any(key in given for key in (*_KEYS_OF_MEMBERS, "roles")):
        raise PolicyError(f"{where}: needs users, groups or roles")
    actions = _actions(given.get("actions", []), where)
    if actions != {Action.SERVICE} and "databases" not in given:
        raise PolicyError(f'{where}: needs databases; ["*"] are all')
    return Grant(
        members,
        actions,
        Names(_texts(given.get("catalogs", ["hive"]), f"{where}, catalogs")),
        Names(_texts(given.get("databases", []), f"{where}, databases")),
        Names(_texts(given.get("tables", ["*"]), f"{where}, tables")),
    )


def _actions(given: Any, where: str) -> frozenset[Action]:
    found: set[Action] = set()
    for text in _texts(given, f"{where}, actions"):
        if text == ALL:
            found |= set(Action) - {Action.SERVICE}
            continue
        try:
            found.add(Action(text))
        except ValueError as error:
            known = ", ".join((*(action.value for action in Action), ALL))
            raise PolicyError(f"{where}: there is no action {text}; there are {known}") from error
    if not found:
        raise PolicyError(f"{where}: needs actions")
    if Action.WRITE in found:
        found |= _IMPLIED_BY_WRITE
    return frozenset(found | {Action.READ} if found & _IMPLY_READ else found)


def _members(given: Any, groups: Mapping[str, tuple[str, ...]], sources: frozenset[str], where: str) -> Members:
    if not isinstance(given, dict):
        raise PolicyError(f"{where}: must be a table with users and groups")
    _only(given, set(_KEYS_OF_MEMBERS), where)
    users = set(_texts(given.get("users", []), f"{where}, users"))
    for group in _texts(given.get("groups", []), f"{where}, groups"):
        if group not in groups:
            raise PolicyError(f"{where}: there is no group {group}")
        users |= set(groups[group])
    for source, setting in _SETTINGS_OF_SOURCES.items():
        if source in given and source not in sources:
            raise PolicyError(f"{where}: {source} needs {setting}")
    directory, token = (_texts(given.get(source, []), f"{where}, {source}") for source in _SETTINGS_OF_SOURCES)
    return Members(frozenset(users), of_directory(directory) | of_token(token))


def _table(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = document.get(key, {})
    if not isinstance(found, dict):
        raise PolicyError(f"{key}: must be a table")
    return found


def _texts(given: Any, where: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(text, str) and text for text in given):
        raise PolicyError(f"{where}: must be a list of texts")
    return tuple(given)


def _only(given: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(given) - known)
    if unknown:
        raise PolicyError(f"{where}: nothing is called {', '.join(unknown)} here; known are {', '.join(sorted(known))}")
