"""Only its owner and services can use a transaction or a lock, by any method that names its id."""

from __future__ import annotations

from typing import Any

import pytest
from thrift.Thrift import TType

from hms_cache.server.authorization.ownership import names_owned
from hms_cache.server.authorization.rules import RULES, RuleKind
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from hms_cache.wire import METHODS
from tests.server.conftest import Link, Serve, table
from tests.server.test_authorization import POLICY, ROOT, World, outcome

DIRTY = POLICY.replace('users = ["eve"]', 'users = ["eve", "mallory"]')


@pytest.fixture
def world(serve: Serve, tmp_path: Any) -> World:
    made = World(serve, tmp_path / "policy.toml")
    made.allow(DIRTY)
    return made


def lock_request(txn_id: int = 0, user: str = "eve", table: str = "pub") -> t.LockRequest:
    part = t.LockComponent(t.LockType.SHARED_READ, t.LockLevel.TABLE, "open", table)
    return t.LockRequest([part], txn_id, user, "host")


def open_one(link: Link, user: str) -> int:
    request = t.OpenTxnRequest(num_txns=1, user=user, hostname="h")
    return int(link.call("open_txns", rqst=request).txn_ids[0])


def calls_with(txn_id: int, lock_id: int) -> dict[str, dict[str, Any]]:
    at = {"dbName": "open", "tableName": "pub"}
    notice = t.WriteNotificationLogRequest(
        txn_id, 1, "open", "pub", t.InsertEventRequestData(filesAdded=[], replace=False)
    )
    return {
        "heartbeat": {"ids": t.HeartbeatRequest(txnid=txn_id)},
        "heartbeat_txn_range": {"txns": t.HeartbeatTxnRangeRequest(1, txn_id)},
        "lock": {"rqst": lock_request(txn_id)},
        "unlock": {"rqst": t.UnlockRequest(lock_id)},
        "check_lock": {"rqst": t.CheckLockRequest(lock_id)},
        "heartbeat of a lock": {"ids": t.HeartbeatRequest(lockid=lock_id)},
        "allocate_table_write_ids": {"rqst": t.AllocateTableWriteIdsRequest("open", "pub", [txn_id])},
        "add_dynamic_partitions": {"rqst": t.AddDynamicPartitions(txn_id, 1, "open", "pub", [])},
        "add_write_notification_log": {"rqst": notice},
        "add_write_notification_log_in_batch": {
            "rqst": t.WriteNotificationLogBatchRequest("hive", "open", "pub", [notice])
        },
        "get_lock_materialization_rebuild": {**at, "txnId": txn_id},
        "get_latest_txnid_in_conflict": {"txnId": txn_id},
        "abort_txn": {"rqst": t.AbortTxnRequest(txn_id)},
        "commit_txn": {"rqst": t.CommitTxnRequest(txn_id)},
    }


def test_of_others_nothing_can_be_touched(world: World) -> None:
    eve, mallory = world.link("eve"), world.link("mallory")
    own = open_one(eve, "eve")
    held = eve.call("lock", rqst=lock_request())
    for name, arguments in calls_with(own, held.lockid).items():
        method = name.split()[0]
        found = outcome(mallory, method, **arguments)
        text = f"No such transaction txnid:{1 if method == 'heartbeat_txn_range' else own}"
        if method in ("unlock", "check_lock") or "lock" in name.split()[1:]:
            text = f"No such lock lockid:{held.lockid}"
        assert isinstance(found, tuple) and text in found[1], (name, found)
    # And missing ones get the same text.
    assert outcome(mallory, "commit_txn", rqst=t.CommitTxnRequest(own)) == (
        t.NoSuchTxnException,
        f"No such transaction txnid:{own}",
    )
    absent = outcome(mallory, "commit_txn", rqst=t.CommitTxnRequest(own + 7))
    assert absent == (t.NoSuchTxnException, f"No such transaction txnid:{own + 7}")
    eve.call("heartbeat", ids=t.HeartbeatRequest(txnid=own))
    eve.call("heartbeat", ids=t.HeartbeatRequest(lockid=held.lockid))
    eve.call("unlock", rqst=t.UnlockRequest(held.lockid))
    eve.call("commit_txn", rqst=t.CommitTxnRequest(own))


def test_a_request_cannot_give_another_name(world: World) -> None:
    mallory, eve = world.link("mallory"), world.link("eve")
    theirs = open_one(mallory, "eve")
    lock = mallory.call("lock", rqst=lock_request(user="eve"))
    assert "No such" in outcome(eve, "abort_txn", rqst=t.AbortTxnRequest(theirs))[1]
    assert "No such" in outcome(eve, "unlock", rqst=t.UnlockRequest(lock.lockid))[1]
    mallory.call("abort_txn", rqst=t.AbortTxnRequest(theirs))


def test_nobody_drops_softly_in_anothers_transaction(world: World) -> None:
    """Its id is a property there."""
    world.allow(DIRTY.replace('actions = ["write"]', 'actions = ["write", "drop"]'))
    root, mallory = world.root, world.link("mallory")
    theirs = open_one(world.link("eve"), "eve")
    made = table("open", "acid", transactional="true")
    made.tableType, made.partitionKeys = "MANAGED_TABLE", [t.FieldSchema("p", "string")]
    made.sd.inputFormat, made.sd.outputFormat = (
        f"org.apache.hadoop.hive.ql.io.orc.Orc{way}Format" for way in ("Input", "Output")
    )
    root.call("create_table", tbl=made)
    root.call("add_partition", new_part=t.Partition(["1"], "open", "acid", 0, 0, made.sd))

    def calls(text: str) -> dict[str, dict[str, Any]]:
        context = t.EnvironmentContext({"txnId": text})
        at, values = {"db_name": "open", "tbl_name": "acid", "deleteData": False}, {"part_vals": ["1"]}
        parts = t.DropPartitionsRequest("open", "acid", t.RequestPartsSpec(names=["p=1"]), deleteData=False)
        parts.environmentContext = context
        of_table = {"dbname": "open", "name": "acid", "deleteData": False, "environment_context": context}
        return {
            "drop_partition_with_environment_context": {**at, **values, "environment_context": context},
            "drop_partitions_req": {"req": parts},
            "drop_table_with_environment_context": of_table,
        }

    for method, arguments in calls(str(theirs)).items():
        found = outcome(mallory, method, **arguments)
        assert isinstance(found, tuple) and f"No such transaction txnid:{theirs}" in found[1], (method, found)
    for method, arguments in calls("x").items():
        assert "txnId of the environment context is no number: x" in outcome(mallory, method, **arguments)[1]
    assert root.call("show_compact", rqst=t.ShowCompactRequest()).compacts == []
    own = open_one(mallory, "mallory")
    mallory.call("drop_table_with_environment_context", **calls(str(own))["drop_table_with_environment_context"])
    [queued] = root.call("show_compact", rqst=t.ShowCompactRequest()).compacts
    assert (queued.tablename, queued.txnId) == ("acid", own)


@pytest.mark.parametrize("method", ["compact", "compact2"])
def test_a_compaction_is_run_as_nobody_else(world: World, method: str) -> None:
    """A worker runs it as the user in the queue, on files at a location that the table's owner chose."""

    def queued(table: str, link: Link, runas: str | None) -> str | None:
        request = t.CompactionRequest("open", table, type=t.CompactionType.MAJOR, runas=runas)
        link.call(method, rqst=request)
        shown = world.link("root").call("show_compact", rqst=t.ShowCompactRequest()).compacts
        [found] = [one for one in shown if one.tablename == table]
        return found.runAs

    policy = DIRTY.replace('actions = ["service"]', 'actions = ["service", "alter"]\ndatabases = ["*"]')
    world.allow(policy.replace('actions = ["write"]', 'actions = ["write", "alter"]'))
    for number, (user, given, kept) in enumerate(
        [("eve", "hdfs", "eve"), ("eve", "eve", "eve"), ("eve", None, None), ("hs2", "hdfs", "hdfs")]
    ):
        made = table("open", f"compacted{number}")
        world.link("root").call("create_table", tbl=made)
        assert queued(made.tableName, world.link(user), given) == kept, (user, given)


def test_a_scheduled_query_is_run_as_nobody_else(world: World) -> None:
    """HiveServer2 runs it as the query's user; the right to create one must not let a user become another."""
    world.allow(DIRTY + '[[grants]]\nusers = ["max"]\nactions = ["manage"]\ncatalogs = ["*"]\ndatabases = ["*"]\n')
    maker, service = world.link("max"), world.link("hs2")
    kinds = t.ScheduledQueryMaintenanceRequestType
    key = t.ScheduledQueryKey("nightly", "hive")

    def run_as(link: Link, kind: int, user: str | None) -> str | None:
        query = t.ScheduledQuery(key, True, "0 0 3 * * ? *", user, "drop table open.pub")
        request = t.ScheduledQueryMaintenanceRequest(kind, query)
        link.call("scheduled_query_maintenance", request=request)
        found: str | None = maker.call("get_scheduled_query", scheduleKey=key).user
        return found

    for link, given, kept in ((maker, "root", "max"), (maker, None, "max"), (service, "eve", "eve")):
        assert run_as(link, kinds.CREATE, given) == kept
        assert run_as(link, kinds.ALTER, given) == kept
        request = t.ScheduledQueryMaintenanceRequest(kinds.DROP, t.ScheduledQuery(key))
        link.call("scheduled_query_maintenance", request=request)
    assert run_as(service, kinds.CREATE, "eve") == "eve"
    assert run_as(maker, kinds.ALTER, "eve") == "max", "what eve did not ask for is not run as eve"


@pytest.mark.parametrize("method", ["open_txns", "commit_txn", "abort_txn"])
def test_transactions_of_replication_are_for_services(world: World, method: str) -> None:
    """They live for days without a heartbeat, and delay compactions of all tables meanwhile."""
    mallory = world.link("mallory")
    own = open_one(mallory, "mallory")
    requests = {
        "open_txns": t.OpenTxnRequest(1, "mallory", "h", txn_type=t.TxnType.REPL_CREATED),
        "commit_txn": t.CommitTxnRequest(own, txn_type=t.TxnType.REPL_CREATED),
        "abort_txn": t.AbortTxnRequest(own, txn_type=t.TxnType.REPL_CREATED),
    }
    found = outcome(mallory, method, rqst=requests[method])
    assert isinstance(found, tuple) and "Permission denied" in found[1]
    mallory.call("commit_txn", rqst=t.CommitTxnRequest(own))


def test_services_act_for_users(world: World) -> None:
    world.allow(DIRTY.replace('actions = ["service"]', 'actions = ["service", "read"]\ndatabases = ["*"]'))
    service, eve = world.link("hs2"), world.link("eve")
    opened = open_one(service, "eve")
    lock = service.call("lock", rqst=lock_request(opened))
    eve.call("heartbeat", ids=t.HeartbeatRequest(txnid=opened, lockid=lock.lockid))
    own = open_one(eve, "eve")
    service.call("abort_txn", rqst=t.AbortTxnRequest(own))
    service.call("commit_txn", rqst=t.CommitTxnRequest(opened))
    world.allow(ROOT)
    assert "Permission denied" in outcome(eve, "abort_txn", rqst=t.AbortTxnRequest(own))[1]


def test_every_request_with_an_id_is_looked_at() -> None:
    """By the fields of the protocol: any integer named after a transaction or lock, except in services' methods."""
    unseen = []
    for method, rule in RULES.items():
        if rule.kind is RuleKind.METASTORE:
            continue
        made = METHODS[method].args_class()
        structs = [made]
        for field in filter(None, made.thrift_spec):
            if field[1] == TType.STRUCT and field[3][0] is not t.Table:
                setattr(made, field[2], field[3][0]())
                structs.append(getattr(made, field[2]))
        for inner in list(structs[1:]):
            for field in filter(None, inner.thrift_spec):
                if field[1] == TType.LIST and field[3][0] == TType.STRUCT and field[2] != "srcTxnToWriteIdList":
                    setattr(inner, field[2], [field[3][1][0]()])
                    structs += getattr(inner, field[2])
        for struct in structs:
            for field in filter(None, struct.thrift_spec):
                name = field[2].lower().replace("_", "")
                if not name.startswith(("txnid", "lockid")) or field[1] not in (TType.I64, TType.LIST):
                    continue
                setattr(struct, field[2], [5] if field[1] == TType.LIST else 5)
                if not names_owned(method, made):
                    unseen.append((method, field[2]))
                setattr(struct, field[2], None)
    assert unseen == []
