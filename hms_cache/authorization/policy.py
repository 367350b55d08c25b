"""A policy as a TOML file says it: users, groups, roles, and what is granted to them. Nothing else is allowed."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from hms_cache.authorization.decisions import METASTORE, Action, Question, SecuredObject
from hms_cache.patterns.wildcards import Wildcard, WildcardPattern
from hms_cache.values import frozen

EVERYBODY = "*"
"""As a user: every principal."""

DEFAULT_DATABASE = "default"

ALL = "all"
"""As an action: every one but `service`."""

MAX_PRINCIPALS = 10_000
"""Principals whose class is remembered. Without authentication clients invent names; others are looked up again."""

_IMPLY_READ = frozenset({Action.ALTER, Action.DROP, Action.WRITE, Action.UPDATE, Action.DELETE})
_IMPLIED_BY_WRITE = frozenset({Action.UPDATE, Action.DELETE})
_versions = itertools.count(1)

DIRECTORY_GROUPS, TOKEN_GROUPS = "directory_groups", "token_groups"
"""Keys of grants and roles, and the sources that know who is in these groups."""

Membership = tuple[str, str]
"""A source of groups, and the name of one there. Groups of one name in two sources are two groups."""

NO_MEMBERSHIPS: frozenset[Membership] = frozenset()


_SETTINGS_OF_SOURCES = {
    DIRECTORY_GROUPS: "authorization.directory_groups = true",
    TOKEN_GROUPS: "authentication.jwt_groups_claim",
}
_KEYS_OF_MEMBERS = ("users", "groups", *_SETTINGS_OF_SOURCES)


def of_token(groups: Iterable[str]) -> frozenset[Membership]:
    """Groups that a bearer token names, compared exactly."""
    return frozenset((TOKEN_GROUPS, name) for name in groups)


def of_directory(groups: Iterable[str]) -> frozenset[Membership]:
    """Groups of an LDAP directory, whose names have no case."""
    return frozenset((DIRECTORY_GROUPS, name.lower()) for name in groups)


class Members(NamedTuple):
    """To whom something is granted."""

    users: frozenset[str]
    groups: frozenset[Membership] = NO_MEMBERSHIPS


class PolicyError(ValueError):
    """The text is no policy; the message says where and why."""


class Names:
    """Names that a grant is about: each a name, or a pattern with `*` for any text."""

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
        """Whether they cover a name; None, that of the whole, only as `*`.

        Names of the catalog are ASCII. Others are covered by nothing: a database's collation may take them for names
        that the policy does not grant.
        """
        if name is None:
            return self.is_every
        if self.is_every or name in self._plain:
            return name.isascii()
        return name.isascii() and any(pattern.matches(name) for pattern in self._patterns)


@frozen
class Grant:
    """To whom, what, and on what."""

    members: Members
    actions: frozenset[Action]
    catalogs: Names
    databases: Names
    tables: Names

    def is_for(self, principal: str, groups: frozenset[Membership] = NO_MEMBERSHIPS) -> bool:
        """Whether it is the principal's, who is in these groups."""
        users = self.members.users
        return principal in users or EVERYBODY in users or not groups.isdisjoint(self.members.groups)

    def allows(self, action: Action, of: SecuredObject) -> bool:
        """Whether it grants this."""
        if action not in self.actions:
            return False
        if action is Action.SERVICE:
            return True
        return self.catalogs.cover(of.catalog) and self.databases.cover(of.database) and self.tables.cover(of.table)

    def shows(self, what: SecuredObject) -> bool:
        """Whether something is granted in it, or it itself.

        The default database, which every catalog has, is shown with its catalog: Spark makes one at its start where it
        finds none.
        """
        database = None if what.database == DEFAULT_DATABASE and what.table is None else what.database
        names = (self.catalogs, what.catalog), (self.databases, database), (self.tables, what.table)
        return self.actions != {Action.SERVICE} and all(name is None or of.cover(name) for of, name in names)


class GrantedDecisions:
    """See `Decisions`: those of all principals who have the same grants."""

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
        """One grant that allows it is enough."""
        return any(grant.allows(action, of) for grant in self._grants)

    def show(self, what: SecuredObject) -> bool:
        """One grant that reaches into it is enough."""
        return any(grant.shows(what) for grant in self._grants)

    def may_grant(self, privilege: str | None, of: SecuredObject) -> bool:
        """Grants that the metastore keeps count for nothing here; whoever may manage it may change them."""
        return self.allow(Action.MANAGE, METASTORE)

    def prepare(self, questions: Sequence[Question]) -> None:
        """Nobody else is asked."""


class Policy:
    """One version of the file. Its classes are made as principals come; a dictionary's own steps need no lock.

    Two threads that meet a new class may both make it. `setdefault` keeps one, so that tags stay unique.
    """

    def __init__(self, grants: tuple[Grant, ...]) -> None:
        self.version = next(_versions)
        self.grants = grants
        self._groups = frozenset[Membership]().union(*(grant.members.groups for grant in grants))
        """Those that something is granted to: others, of which a principal may have thousands, make no difference."""

        self._by_principal: dict[tuple[str, frozenset[Membership]], GrantedDecisions] = {}
        self._classes: dict[tuple[int, ...], GrantedDecisions] = {}
        self._numbers = itertools.count(1)
        self._by_tag: dict[bytes, GrantedDecisions] = {}

    def decisions(self, principal: str, groups: frozenset[Membership] = NO_MEMBERSHIPS) -> GrantedDecisions:
        """Those of the principal's class."""
        groups &= self._groups
        found = self._by_principal.get((principal, groups))
        if found is None:
            places = tuple(place for place, grant in enumerate(self.grants) if grant.is_for(principal, groups))
            found = self._classes.get(places) or self._make(places)
            if len(self._by_principal) < MAX_PRINCIPALS:
                self._by_principal[principal, groups] = found
        return found

    def decisions_of(self, tag: bytes) -> GrantedDecisions | None:
        """Those of a tag of this version."""
        return self._by_tag.get(tag)

    def _make(self, places: tuple[int, ...]) -> GrantedDecisions:
        tag = self.version.to_bytes(8, "big") + next(self._numbers).to_bytes(4, "big")
        made = GrantedDecisions(self, tuple(self.grants[place] for place in places), tag)
        kept = self._classes.setdefault(places, made)
        self._by_tag[kept.tag] = kept
        return kept


def parse_policy(text: str, sources: frozenset[str] = frozenset()) -> Policy:
    """The policy of a file's text. Raises PolicyError: a policy that is misread is worse than none.

    `sources`: DIRECTORY_GROUPS, TOKEN_GROUPS, if somebody knows who is in such groups; else the text must name none.
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
