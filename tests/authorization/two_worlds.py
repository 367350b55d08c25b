"""Compares two metastores that differ in the name of one database, which a user must not learn, with the same calls.

In one, the database is called `secret`, in the other `secreu`. The user's calls name `secret`, which exists only in the
first. If an answer differs, the user learns something. If the databases differ at the end, something was changed.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy import create_engine, inspect, text
from thrift.protocol.TBase import TBase

from hms_cache.authorization.decisions import AccessCheck, Action, SecuredObject
from hms_cache.server.authorization.guard import AccessDenied, Guard
from hms_cache.server.calls import Call
from hms_cache.server.handlers.table import all_handlers
from hms_cache.server.session import Session
from hms_cache.server.stores import Stores
from hms_cache.store.engine.database import Database
from hms_cache.store.installation.init import init_schema
from hms_cache.wire import METHODS
from tests.cache.world import Server

SECRET, OTHER = "secret", "secreu"
ROOT, MALLORY = "root", "mallory"
_HANDLERS = all_handlers()
_NAMES = re.compile(r"(?<![A-Za-z0-9_])d(?![A-Za-z0-9_])", re.IGNORECASE)
"""The database of most scenarios, wherever a text names it."""

_CHANGING = (
    # Tables that were moved out of it before, by an authorized user.
    (re.compile(rf"/({SECRET}|{OTHER})\.db"), "/HIDDEN.db"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\b(pk|fk|uk|nn|dc|cc)_-?\d+_\d{13}_\d+"), r"\1_NAME"),
    (re.compile(r"\b1[5-9]\d{8}(\d{3}(\d{3,7})?)?\b"), "TIME"),
    (re.compile(r"\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?"), "TIME"),
)


class Rights:
    """All decisions about one user, who may do anything with each database except those two, or simply anything."""

    keeps_answers = is_external = waits_for_members = False
    has_any = True
    tag = b"-" * 12

    def __init__(self, user: str) -> None:
        self._is_root = user == ROOT
        self.policy: object = self

    def prepare(self, questions: Sequence[AccessCheck]) -> None:
        """No decision is made."""

    def allow(self, action: Action, of: SecuredObject) -> bool:
        """On the whole metastore, and on catalogs, nothing."""
        return self._is_root or (of.database is not None and of.database not in (SECRET, OTHER))

    def show(self, what: SecuredObject) -> bool:
        """Catalogs are no secret."""
        return self._is_root or what.database not in (SECRET, OTHER)

    def may_grant(self, privilege: str | None, of: SecuredObject) -> bool:
        """Who may do everything with it."""
        return self.allow(Action.MANAGE, of)


class FewRights(Rights):
    """All decisions about one user, who may do these things with each table and database, or simply anything."""

    def __init__(self, user: str, actions: frozenset[Action]) -> None:
        super().__init__(user)
        self._actions = actions

    def allow(self, action: Action, of: SecuredObject) -> bool:
        """On the whole metastore, nothing."""
        return self._is_root or (action in self._actions and of.catalog is not None)

    def show(self, what: SecuredObject) -> bool:
        """Nothing is hidden."""
        return True


class Authority:
    """See `Authorizer`."""

    keeps_answers = is_external = waits_for_members = False
    policy: object = None

    def __init__(self, rights: Callable[[str], Rights]) -> None:
        self._rights = rights

    def forget(self) -> None:
        """Nothing is kept."""

    def decisions(self, principal: str, groups: frozenset[str] = frozenset()) -> Rights:
        """By name."""
        return self._rights(principal)

    proven_decisions = decisions


class World:
    """One metastore, without sockets."""

    warehouse_uri = "file:///nowhere/warehouse"

    def __init__(self, directory: Path, hidden: str, rights: Callable[[str], Rights] = Rights) -> None:
        directory.mkdir(parents=True)
        self.hidden = hidden
        self._rights = rights
        url = f"sqlite:///{directory / 'metastore.db'}"
        with closing(Database(url)) as database:
            init_schema(database)
        self.server = Server(url, Path("/nowhere/warehouse"))
        self._engine = create_engine(url)
        site = SimpleNamespace(config_value=lambda name: None, counters=dict)
        server = self.server
        self._stores = Stores(
            server.objects.reads,
            server.objects.writes,
            server.transactions.store,
            server.log,
            site,
            server.auxiliary,
        )
        self._guard = Guard(Authority(rights))  # type: ignore[arg-type]
        self._sessions: dict[str, Session] = {}
        self.kept: dict[str, Any] = {}
        self.begin_anew()

    def begin_anew(self) -> None:
        """New connections."""
        self._sessions = {user: Session("127.0.0.1", user=user) for user in (ROOT, MALLORY)}

    def call(self, user: str, method: str, *arguments: Any) -> Any:
        """The answer, or the exception that the client gets. Arguments are the callee's own."""
        struct = METHODS[method].args_class(*copy.deepcopy(arguments))
        session = self._sessions[user]
        call = Call(method, session, self._stores)
        try:
            return self._guard.answer(call, self._rights(user), _HANDLERS[method].function, struct)
        except AccessDenied as denied:
            return denied.error
        except Exception as error:
            return error

    def rows(self) -> dict[str, list[str]]:
        """The contents of the database, by table, with both names as one and without times."""
        found = {}
        with self._engine.connect() as connection:
            for name in inspect(connection).get_table_names():
                rows = connection.execute(text(f'SELECT * FROM "{name}"')).all()
                found[name] = sorted(steady(repr(tuple(row))).replace(OTHER, SECRET) for row in rows)
        return found

    def naming(self, name: str) -> list[str]:
        """Rows about a database of this name, by their columns."""
        found = []
        with self._engine.connect() as connection:
            inspector = inspect(connection)
            for table in inspector.get_table_names():
                columns = [one["name"] for one in inspector.get_columns(table)]
                of_database = [one for one in columns if one.endswith(("DATABASE", "DB_NAME", "_DB", "DB"))]
                of_database += ["NAME"] if table == "DBS" else []
                if of_database:
                    where = " OR ".join(f'lower("{one}") = :name' for one in of_database)
                    rows = connection.execute(text(f'SELECT * FROM "{table}" WHERE {where}'), {"name": name}).all()
                    found += [f"{table}: {row}" for row in rows if table != "NOTIFICATION_LOG"]
        return found

    def close(self) -> None:
        """Closes it."""
        self._engine.dispose()
        self.server.database.close()


def steady(told: str) -> str:
    """A text without times and random numbers."""
    for pattern, mark in _CHANGING:
        told = pattern.sub(mark, told)
    return told


def shown(answer: Any) -> str:
    """What a client sees of a reply."""
    if isinstance(answer, Exception):
        return steady(f"{type(answer).__name__}: {getattr(answer, 'message', None) or answer}")
    return steady(repr(_plain(answer)))


def _plain(value: Any) -> Any:
    if isinstance(value, TBase):
        return {name: _plain(getattr(value, name)) for name in type(value).__slots__}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, map(_plain, value)))
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return value


def named(value: Any, name: str) -> Any:
    """A copy in which each text names another database than `d`."""
    return _changed(value, lambda told: _NAMES.sub(name, told))


def misnamed(arguments: tuple[Any, ...], spellings: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Copies in which one text, each in turn, names the secret database; and one in which all do."""
    count = 0

    def counting(told: str) -> str:
        nonlocal count
        count += bool(_NAMES.search(told))
        return told

    _changed(arguments, counting)
    for spelling in spellings:
        for wanted in range(count):
            place = -1

            def one(told: str, wanted: int = wanted, spelling: str = spelling) -> str:
                nonlocal place
                if _NAMES.search(told):
                    place += 1
                    if place == wanted:
                        return _NAMES.sub(spelling, told)
                return told

            yield tuple(_changed(arguments, one))
        if count > 1:
            yield tuple(named(arguments, spelling))


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_changed(one, change) for one in value)  # a tuple is a key of a map
    if isinstance(value, set):
        return {_changed(one, change) for one in value}
    if isinstance(value, dict):
        return {_changed(key, change): _changed(one, change) for key, one in value.items()}
    if isinstance(value, TBase):
        made = copy.copy(value)
        for name in type(value).__slots__:
            setattr(made, name, _changed(getattr(value, name), change))
        return made
    return value
