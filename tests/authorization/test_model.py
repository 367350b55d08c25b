"""Random policies and calls of each method, compared with a second, simple implementation of the rules."""

from __future__ import annotations

import fnmatch
import json
import random
from pathlib import Path
from typing import Any

import pytest

from hms_cache.authorization.policy_file import PolicyFile
from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.server.authorization.guard import AccessDenied, Guard
from hms_cache.server.authorization.rules import RULES, WITHOUT_CATALOGS
from hms_cache.server.calls import Call
from hms_cache.server.session import Session
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.authorization.requests import Names, arguments_of

USERS = ("ann", "bob", "eve", "hs2")
ACTIONS = ("read", "create", "alter", "drop", "write", "update", "delete", "manage", "service", "all")
DATA = ("write", "update", "delete")
CATALOGS, DATABASES, TABLES = ("hive", "c2"), ("d1", "d2", "e", "default"), ("t1", "t2", "u")

Grants = list[dict[str, list[str]]]


class Reference:
    """The rules in the documentation, without classes, versions or patterns of our own."""

    def __init__(self, grants: Grants, groups: dict[str, list[str]]) -> None:
        self.grants, self.groups = grants, groups

    def of(self, user: str) -> Grants:
        names = {"*", user}
        mine = {group for group, users in self.groups.items() if user in users}
        return [g for g in self.grants if names & set(g.get("users", [])) or mine & set(g.get("groups", []))]

    def may(self, user: str, action: str, catalog: str | None, database: str | None, table: str | None) -> bool:
        return any(self._has(g, action) and self._covers(g, catalog, database, table) for g in self.of(user))

    def knows(self, user: str, catalog: str, database: str | None) -> bool:
        parts = [("catalogs", catalog)] + ([("databases", database)] if database not in (None, "default") else [])
        return any(g["actions"] != ["service"] and all(self._in(g, *part) for part in parts) for g in self.of(user))

    def _has(self, grant: dict[str, list[str]], action: str) -> bool:
        given = set(grant["actions"])
        if "all" in given:
            given |= set(ACTIONS) - {"service", "all"}
        if "write" in given:
            given |= set(DATA)
        return action in given or (action == "read" and bool(given & {"alter", "drop", *DATA}))

    def _covers(self, grant: dict[str, list[str]], *names: str | None) -> bool:
        return all(
            self._in(grant, key, name) for key, name in zip(("catalogs", "databases", "tables"), names, strict=True)
        )

    @staticmethod
    def _in(grant: dict[str, list[str]], key: str, name: str | None) -> bool:
        patterns = grant.get(key, ["hive"] if key == "catalogs" else ["*"] if key == "tables" else [])
        return "*" in patterns if name is None else any(fnmatch.fnmatchcase(name, one) for one in patterns)

    def allows(self, user: str, method: str, arguments: Any, one: tuple[str, str, str], owner: str) -> bool:
        service = any("service" in g["actions"] for g in self.of(user))
        is_own = method not in OF_OWNERS or owner == user or service
        return is_own and self.decides(user, method, arguments, one)

    def decides(self, user: str, method: str, arguments: Any, one: tuple[str, str, str]) -> bool:
        way, actions = RULES[method].kind.value, [action.value for action in RULES[method].actions]
        catalog, database, table = one
        if way == "open":
            return True
        if not self.of(user):
            return False
        if way in ("member", "filtered", "events"):
            return (
                way != "filtered" or not method.startswith("get_table_objects") or self.knows(user, catalog, database)
            )
        service = any("service" in g["actions"] for g in self.of(user))
        whole = any(service if a == "service" else self.may(user, a, None, None, None) for a in actions)
        if way == "transaction":
            request = arguments.rqst
            replays = request.replPolicy is not None or request.txn_type == t.TxnType.REPL_CREATED
            return service or (method == "abort_txn" and not replays)
        if way in ("own_grants", "grants", "metastore"):
            return whole
        if way == "lock":
            return any(self.may(user, a, *one) for a in ("read", "create", "alter", "drop", *DATA))
        if way == "shown":
            return self.knows(user, catalog, None if method == "get_catalog" else database)
        level = LEVELS.get(method, "table")
        if level == "metastore":
            return whole
        names = (catalog, database, table if level == "table" else None)
        if method.startswith("exchange_partition") and not self.may(user, "delete", *names):
            return False
        if method in REPLACING and not self.may(user, "alter", *names):
            return False
        if method in NAMING_SERDES and not self.may(user, "read", None, None, None):
            return False
        return any(self.may(user, a, *names) for a in actions)


REPLACING = ("add_package", "create_stored_procedure")
"""What is there of the same name becomes the new one."""

NAMING_SERDES = ("map_schema_version_to_serde",)
"""One of all serdes, which have no database and are those of tables, too."""

_OF_OWNERS = """
    abort_txn add_dynamic_partitions add_write_notification_log add_write_notification_log_in_batch
    allocate_table_write_ids check_lock commit_txn drop_database_req get_latest_txnid_in_conflict
    get_lock_materialization_rebuild get_lock_materialization_rebuild_req heartbeat
    heartbeat_lock_materialization_rebuild heartbeat_lock_materialization_rebuild_req heartbeat_txn_range lock
    rename_partition_req unlock
"""
OF_OWNERS = frozenset(_OF_OWNERS.split())
"""What names a transaction or a lock."""


class Owned:
    """Each transaction and lock belongs to one user, and there are no tables or databases."""

    def __init__(self, owner: str) -> None:
        self.transactions, self.owner = self, owner
        self.reads = self.tables = self.databases = self

    def get_table(self, name: TableName) -> Any:
        raise t.NoSuchObjectException("absent: it may be locked by who may create it")

    def get_database(self, name: DatabaseName) -> Any:
        raise t.NoSuchObjectException("absent")

    def users_of_txns(self, txn_ids: list[int]) -> dict[int, str]:
        return dict.fromkeys(txn_ids, self.owner)

    def users_of_range(self, first: int, last: int) -> set[str]:
        return {self.owner}

    def users_of_lock(self, lock_id: int) -> set[str]:
        return {self.owner}


_DATABASE_LEVEL = """
    add_package add_schema_version alter_database alter_database_req alter_function alter_ischema create_database
    create_database_req create_function create_ischema create_stored_procedure drop_database drop_database_req
    drop_function drop_ischema drop_package drop_schema_version drop_stored_procedure find_package get_all_packages
    get_all_stored_procedures get_ischema get_schema_all_versions get_schema_latest_version get_schema_version
    get_stored_procedure map_schema_version_to_serde set_schema_version_state
"""
LEVELS = dict.fromkeys(_DATABASE_LEVEL.split(), "database")
LEVELS |= dict.fromkeys(("add_serde", "get_serde", "abort_Compactions"), "metastore")


def random_policy(chance: random.Random) -> tuple[Grants, dict[str, list[str]]]:
    groups = {f"g{n}": chance.sample(USERS, chance.randint(1, 3)) for n in range(2)}
    grants: Grants = []
    for _ in range(chance.randint(0, 4)):
        grant = {"actions": chance.sample(ACTIONS, chance.randint(1, 3))}
        key = chance.choice(["users", "groups"])
        grant[key] = [chance.choice([*USERS, "*"]) if key == "users" else chance.choice(sorted(groups))]
        if chance.random() < 0.6:
            grant["catalogs"] = [chance.choice([*CATALOGS, "*"])]
        grant["databases"] = chance.sample([*DATABASES, "d*", "*", "*"], chance.randint(1, 2))
        if chance.random() < 0.4:
            grant["tables"] = chance.sample([*TABLES, "t*", "*1", "*"], chance.randint(1, 2))
        grants.append(grant)
    return grants, groups


def write(path: Path, grants: Grants, groups: dict[str, list[str]]) -> None:
    lines = ["[groups]", *(f"{name} = {json.dumps(users)}" for name, users in groups.items())]
    for grant in grants:
        lines += ["[[grants]]", *(f"{key} = {json.dumps(values)}" for key, values in grant.items())]
    path.write_text("\n".join(lines))


def ran(call: Call, arguments: Any) -> Any:
    raise _RanError


class _RanError(Exception):
    """The handler was reached."""


@pytest.mark.parametrize("method", sorted((*WITHOUT_CATALOGS, "lock")))
def test_a_right_in_another_catalog_is_none_on_what_has_no_catalog(tmp_path: Path, method: str) -> None:
    path = tmp_path / "policy.toml"
    for catalogs, allowed in (["c2"], False), (["c2", "hive"], True):
        write(path, [{"users": ["ann"], "actions": ["all"], "catalogs": catalogs, "databases": ["d1", "@*"]}], {})
        guard = Guard(PolicyFile(path))
        session = Session("test", user="ann")
        for seed in range(5):
            arguments = arguments_of(method, Names(random.Random(seed), ("c2", "d1", "t1")))
            with pytest.raises(_RanError if allowed else AccessDenied):
                guard.answer(Call(method, session, Owned("ann")), guard.decisions(session), ran, arguments)  # type: ignore[arg-type]


ROUNDS = [
    25,
    pytest.param(100, marks=pytest.mark.soak),
    pytest.param(400, marks=[pytest.mark.soak, pytest.mark.long]),
]
"""Their policies and calls are the same in each run."""


@pytest.mark.parametrize("rounds", ROUNDS)
def test_guard_and_reference_agree(tmp_path: Path, rounds: int) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("")
    policy = PolicyFile(path)
    guard = Guard(policy)
    sessions = {user: Session("test", user=user) for user in USERS}
    outcomes = {True: 0, False: 0}
    for seed in range(rounds):
        chance = random.Random(seed)
        grants, groups = random_policy(chance)
        write(path, grants, groups)
        policy.reload()
        reference = Reference(grants, groups)
        for method in sorted(RULES):
            one = chance.choice(CATALOGS), chance.choice(DATABASES), chance.choice(TABLES)
            if method in WITHOUT_CATALOGS or method == "lock":
                one = ("hive", *one[1:])
            arguments = arguments_of(method, Names(chance, one))
            user = chance.choice(USERS)
            session = sessions[user]  # with the decisions of an earlier policy
            owner = chance.choice(USERS)
            expected = reference.allows(user, method, arguments, one, owner)
            try:
                guard.answer(Call(method, session, Owned(owner)), guard.decisions(session), ran, arguments)  # type: ignore[arg-type]
                allowed = True
            except _RanError:
                allowed = True
            except (AccessDenied, t.UnknownDBException):
                allowed = False
            assert allowed == expected, f"{method} of {one} by {user}: {path.read_text()}"
            outcomes[allowed] += 1
    allowed_calls, refused_calls = outcomes[True], outcomes[False]
    print(f"{allowed_calls + refused_calls} calls of {len(RULES)} methods: {allowed_calls} allowed")
    assert min(outcomes.values()) > 20 * rounds
