"""Grants that are logged: decisions and answers are cached, and none is wrong, on any server of a set."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url, select, text

from hms_cache.authorization.decisions import NO_GROUPS, Action, SecuredObject
from hms_cache.authorization.external import ExternalAuthorizer
from hms_cache.cache.reads.reasons import Reason
from hms_cache.notifications.event_types import GRANTS_CHANGED
from hms_cache.store.schema import NOTIFICATION_LOG
from hms_cache.store.security.rights import GrantedRights
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.conftest import ServerLookup
from tests.server.conftest import Link, Running, Serve, database, table
from tests.server.counting_relay import CountingRelay
from tests.server.test_authorization import outcome

SETTINGS: dict[str, Any] = {
    "authorization.provider": "sql",
    "authorization.sql_grants": "logged",
    "authorization.service_users": ["hs2"],
    "catalog.users_in_admin_role": ["root"],
    "security.accept_insecure": True,
    "events.poll_interval_s": 3600,  # a read loads what it returns
    "warehouse.files": "leave",
}
USERS, ROLES = ("ann", "bob", "eve"), ("readers", "writers")
DATABASES, TABLES = ("d0", "d1"), ("t0", "t1", "t2")
USER, ROLE = t.PrincipalType.USER, t.PrincipalType.ROLE


class Set:
    """Two servers on one database, with connections of all users to both."""

    def __init__(self, serve: Serve, url: str | None, **settings: Any) -> None:
        given = SETTINGS | ({"database.url": url} if url else {}) | settings
        self.servers: list[Running] = [serve(**given), serve(**given)]
        self.links = {
            (user, number): self._link(server, user)
            for number, server in enumerate(self.servers)
            for user in (*USERS, "root")
        }

    @staticmethod
    def _link(server: Running, user: str) -> Link:
        link = server.link()
        link.call("set_ugi", user_name=user, group_names=[])
        return link

    def hits(self) -> int:
        found = (server.service.metrics.cache.reads.values().get(("reply", Reason.HIT), 0) for server in self.servers)
        return int(sum(found))

    def allows(self, user: str, action: Action | None, *names: str) -> bool:
        """From what the database contains now, read again."""
        authorizer = self.servers[0].service._authorizer
        assert isinstance(authorizer, ExternalAuthorizer)
        judge = authorizer._source_of(user, NO_GROUPS)
        of = SecuredObject("hive", *names)
        return judge.show(of) if action is None else judge.allow(action, of)


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("mariadb", marks=[pytest.mark.mariadb, pytest.mark.soak, pytest.mark.long]),
        pytest.param("postgresql", marks=[pytest.mark.postgresql, pytest.mark.soak, pytest.mark.long]),
    ]
)
def url(request: pytest.FixtureRequest, database_servers: ServerLookup) -> Iterator[str]:
    databases = database_servers(request.param)
    made = databases.initialized_database()
    yield made
    databases.give_back(made)


def bag(word: str, to: str, kind: int, *, of: tuple[str, ...], column: str | None = None) -> t.PrivilegeBag:
    levels = (t.HiveObjectType.GLOBAL, t.HiveObjectType.DATABASE, t.HiveObjectType.TABLE)
    level = t.HiveObjectType.COLUMN if column else levels[len(of)]
    names = (*of, None, None)[:2]
    reference = t.HiveObjectRef(level, names[0], names[1], [], column)
    return t.PrivilegeBag(
        [t.HiveObjectPrivilege(reference, to, kind, t.PrivilegeGrantInfo(word, 0, "root", USER, False), "SQL")]
    )


class Changes:
    """Random changes that affect decisions, by an administrator, each on one of the servers; some are refused."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def one(self, root: Link) -> None:
        draw = self._draw
        name, db = draw.choice(TABLES), draw.choice(DATABASES)
        to, kind = draw.choice([*((user, USER) for user in USERS), *((role, ROLE) for role in ROLES)])
        word = draw.choice(("SELECT", "INSERT", "DELETE", "ALL"))
        of = draw.choice([(db, name)] * 4 + [(db,), ()])
        column = "a" if len(of) == 2 and draw.random() < 0.2 else None
        match draw.randrange(13):
            case 0 | 1 | 2:
                outcome(root, "grant_privileges", privileges=bag(word, to, kind, of=of, column=column))
            case 3 | 4 | 5 | 6:
                outcome(root, "revoke_privileges", privileges=bag(word, to, kind, of=of, column=column))
            case 7:
                given = {"role_name": draw.choice(ROLES), "principal_name": to, "principal_type": kind}
                outcome(root, "grant_role", **given, grantor="root", grantorType=USER, grant_option=False)
            case 8:
                given = {"role_name": draw.choice(ROLES), "principal_name": to, "principal_type": kind}
                outcome(root, "revoke_role", **given)
            case 9:
                role = draw.choice(ROLES)
                if draw.random() < 0.5:
                    outcome(root, "drop_role", role_name=role)
                outcome(root, "create_role", role=t.Role(role, 0, "root"))
            case 10:
                outcome(root, "drop_table", dbname=db, name=name, deleteData=False)
            case 11:
                made = table(db, name)
                made.owner, made.ownerType = draw.choice((*USERS, "root")), USER
                outcome(root, "create_table", tbl=made)
            case _:
                changed = outcome(root, "get_table", dbname=db, tbl_name=name)
                if isinstance(changed, t.Table):
                    changed.owner = draw.choice((*USERS, changed.owner))
                    changed.tableName = draw.choice((name, name, draw.choice(TABLES)))
                    changed.parameters = {**changed.parameters, "n": str(draw.random())}
                    outcome(root, "alter_table", dbname=db, tbl_name=name, new_tbl=changed)


def prepare(made: Set, databases: tuple[str, ...] = DATABASES) -> None:
    root = made.links["root", 0]
    for name in databases:
        one = database(name)
        one.ownerName, one.ownerType = "ann", USER
        root.call("create_database", database=one)
        for each in TABLES:
            new = table(name, each)
            new.owner, new.ownerType = "bob", USER
            root.call("create_table", tbl=new)
    for role in ROLES:
        root.call("create_role", role=t.Role(role, 0, "root"))


def turns_of(url: str, embedded: int, mariadb: int, postgresql: int) -> int:
    """The examples are the same in each run, and the database kind has no influence: the long soak has the most."""
    return {"sqlite": embedded, "postgresql": postgresql}.get(make_url(url).get_backend_name(), mariadb)


def test_no_decision_is_wrong(serve: Serve, url: str) -> None:
    """After each change, users send requests to both servers; the oracle reads the database."""
    made = Set(serve, url)
    prepare(made)
    draw = random.Random(7)
    changes = Changes(draw)
    seen = {True: 0, False: 0}
    for turn in range(turns_of(url, 25, 150, 400)):
        changes.one(made.links["root", draw.randrange(2)])
        there = {db: set(made.links["root", 0].call("get_all_tables", db_name=db)) for db in DATABASES}
        user, number, db = draw.choice(USERS), draw.randrange(2), draw.choice(DATABASES)
        link = made.links[user, number]
        name = draw.choice(TABLES)
        expected = name in there[db] and made.allows(user, Action.READ, db, name)
        listed = [one for one in sorted(there[db]) if made.allows(user, Action.READ, db, one)]
        shown = [one for one in ("d0", "d1", "default") if made.allows(user, None, one)]
        for _ in range(3):  # the second and third may be answered by their bytes
            found = isinstance(outcome(link, "get_table", dbname=db, tbl_name=name), t.Table)
            assert found == expected, (turn, user, number, db, name)
            assert link.call("get_all_tables", db_name=db) == listed, (turn, user, number)
            assert link.call("get_all_databases") == shown, (turn, user, number)
        may_drop = made.allows(user, Action.DROP, db, name)
        assert ("may not drop" in str(outcome(link, "drop_table", dbname=db, name="", deleteData=False))) or may_drop
        seen[expected] += 1
    assert min(seen.values()) > 2 and made.hits() > 30


def test_a_change_counts_for_every_call_that_begins_after_it(serve: Serve, url: str) -> None:
    """Grants and revocations on one server, while readers on both request what they may or may not see."""
    made = Set(serve, url)
    prepare(made, ("d0",))
    state = [0, 0]  # changes that began, changes that are acknowledged; odd: eve may read
    wrong: list[str] = []
    sure = {True: 0, False: 0}
    stop = threading.Event()

    def read(number: int) -> None:
        link = made._link(made.servers[number], "eve")
        while not stop.is_set():
            acknowledged = state[1]
            found = isinstance(outcome(link, "get_table", dbname="d0", tbl_name="t0"), t.Table)
            if state[0] == acknowledged:
                sure[found] += 1
                if found != bool(acknowledged % 2):
                    wrong.append(f"server {number} after {acknowledged} changes: {found}")

    readers = [threading.Thread(target=read, args=(number,)) for number in (0, 1, 1)]
    for reader in readers:
        reader.start()
    try:
        for turn in range(turns_of(url, 8, 80, 200)):
            root = made.links["root", turn % 2]
            method = "revoke_privileges" if turn % 2 else "grant_privileges"
            state[0] += 1
            root.call(method, privileges=bag("SELECT", "eve", USER, of=("d0", "t0")))
            state[1] += 1
            before = sum(sure.values())
            while sum(sure.values()) < before + 8 and not wrong and all(reader.is_alive() for reader in readers):
                made.links["ann", 0].call("get_all_databases")
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert not wrong, wrong[:3]
    assert min(sure.values()) >= 8


def resets(made: Set) -> list[int]:
    return [server.service._caching.cache.shared.resets for server in made.servers if server.service._caching]


def test_changes_are_logged_once_and_named_to_nobody(serve: Serve) -> None:
    made = Set(serve, None)
    prepare(made, ("d0",))
    root, eve = made.links["root", 0], made.links["eve", 1]
    resets_before = resets(made)
    root.call("grant_privileges", privileges=bag("SELECT", "eve", USER, of=("d0", "t0")))
    log = eve.call("get_next_notification", rqst=t.NotificationEventRequest(0)).events
    last = log[-1]
    assert (last.eventType, last.message, last.dbName, last.tableName) == ("HIDDEN", "{}", None, None)
    service = made._link(made.servers[1], "hs2")
    shown = service.call("get_next_notification", rqst=t.NotificationEventRequest(0)).events
    assert [one.eventType for one in shown].count(GRANTS_CHANGED) == 1 + len(ROLES) + 1, "the first admin's, too"
    refused = bag("SELECT", "eve", USER, of=("d0", "t0"))
    assert outcome(root, "grant_privileges", privileges=refused)[0] is t.MetaException
    assert len(service.call("get_next_notification", rqst=t.NotificationEventRequest(0)).events) == len(shown)
    assert resets(made) == resets_before


def test_without_the_setting_nothing_is_logged(serve: Serve, tmp_path: Path) -> None:
    made = Set(serve, None, **{"authorization.sql_grants": "read"})
    prepare(made, ("d0",))
    made.links["root", 0].call("grant_privileges", privileges=bag("SELECT", "eve", USER, of=("d0", "t0")))
    engine = create_engine(str(made.servers[0].service._settings.database.url))
    with engine.connect() as connection:
        types = connection.execute(select(NOTIFICATION_LOG.c.EVENT_TYPE)).scalars().all()
    engine.dispose()
    assert GRANTS_CHANGED not in types and "CREATE_TABLE" in types


def test_what_was_decided_is_kept_and_another_metastore_counts_after_the_age(serve: Serve) -> None:
    made = Set(serve, None)
    prepare(made, ("d0",))
    root, ann = made.links["root", 0], made.links["bob", 1]
    requested: list[Any] = []
    original = GrantedRights.rights

    def counted(self: Any, user: str, *more: Any) -> Any:
        requested.append(user)
        return original(self, user, *more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(GrantedRights, "rights", counted)
        for _ in range(20):
            assert ann.call("get_table", dbname="d0", tbl_name="t0").tableName == "t0"
            ann.call("get_partition_names", db_name="d0", tbl_name="t0", max_parts=-1)
        assert requested == ["bob"]
        # An alter that keeps owner and name changes no right, and one that changes them does.
        changed = ann.call("get_table", dbname="d0", tbl_name="t0")
        changed.parameters["comment"] = "x"
        root.call("alter_table", dbname="d0", tbl_name="t0", new_tbl=changed)
        del requested[:]
        assert ann.call("get_table", dbname="d0", tbl_name="t0").parameters["comment"] == "x" and requested == []
        changed.owner = "eve"
        root.call("alter_table", dbname="d0", tbl_name="t0", new_tbl=changed)
        assert outcome(ann, "get_table", dbname="d0", tbl_name="t0")[0] is t.NoSuchObjectException
    assert made.links["eve", 1].call("get_table", dbname="d0", tbl_name="t0").owner == "eve"
    engine = create_engine(str(made.servers[0].service._settings.database.url))
    with engine.begin() as connection:
        connection.execute(text("UPDATE TBLS SET OWNER = 'bob' WHERE TBL_NAME = 't0'"))
    engine.dispose()
    authorizer = made.servers[1].service._authorizer
    assert isinstance(authorizer, ExternalAuthorizer)
    epoch = authorizer.policy
    assert isinstance(outcome(made.links["eve", 1], "get_table", dbname="d0", tbl_name="t0"), t.Table)
    epoch.ends_at_s = 0  # type: ignore[attr-defined]  # its age is over
    assert outcome(made.links["eve", 1], "get_table", dbname="d0", tbl_name="t0")[0] is t.NoSuchObjectException
    assert isinstance(outcome(ann, "get_table", dbname="d0", tbl_name="t0"), t.Table)


def test_a_paused_poller_has_each_call_read_the_grants(serve: Serve) -> None:
    made = Set(serve, None)
    prepare(made, ("d0",))
    root, eve = made.links["root", 0], made.links["eve", 1]
    assert outcome(eve, "get_table", dbname="d0", tbl_name="t0")[0] is t.NoSuchObjectException
    caching = made.servers[1].service._caching
    assert caching is not None
    caching.poller.pause()
    for _ in range(2):
        root.call("grant_privileges", privileges=bag("SELECT", "eve", USER, of=("d0", "t0")))
        assert isinstance(outcome(eve, "get_table", dbname="d0", tbl_name="t0"), t.Table)
        root.call("revoke_privileges", privileges=bag("SELECT", "eve", USER, of=("d0", "t0")))
        assert outcome(eve, "get_table", dbname="d0", tbl_name="t0")[0] is t.NoSuchObjectException
    caching.poller.resume()


@pytest.mark.soak
@pytest.mark.parametrize("grants", ["read", "logged"])
@pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=getattr(pytest.mark, one)) for one in ("mariadb", "postgresql")]
)
def test_statements_of_a_hot_call(serve: Serve, database_servers: ServerLookup, kind: str, grants: str) -> None:
    databases = database_servers(kind)
    given = databases.initialized_database()
    real = make_url(given)
    relay = CountingRelay(str(real.host), int(real.port or 0))
    try:
        near = real.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
        server = serve(**SETTINGS | {"database.url": near, "authorization.sql_grants": grants})
        root = Set._link(server, "root")
        root.call("create_database", database=database("d0"))
        made = table("d0", "t0")
        made.owner, made.ownerType = "eve", USER
        root.call("create_table", tbl=made)
        eve = Set._link(server, "eve")
        for _ in range(5):
            eve.call("get_table", dbname="d0", tbl_name="t0")
        counts = []
        for _ in range(9):
            relay.begin()
            eve.call("get_table", dbname="d0", tbl_name="t0")
            counts.append(len(relay.questions()))
        print(kind, grants, sorted(counts))
        assert (min(counts) == 1) == (grants == "logged"), counts
    finally:
        relay.close()
