"""Each limit of inputs: a setting, an error that names it where a client exceeds it, and a count."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from sqlalchemy import Connection
from thrift.Thrift import TException, TType

from hms_cache.authentication.bearer_tokens import BearerTokens
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.authentication.negotiation import Negotiation
from hms_cache.config.sections import LimitsSettings
from hms_cache.expressions import parse_filter
from hms_cache.expressions.errors import FilterError
from hms_cache.expressions.hive_tree import parse_expression
from hms_cache.expressions.kryo import KryoError, read_expression
from hms_cache.expressions.kryo_classes import dialects
from hms_cache.expressions.table_filter import bind_table_filter
from hms_cache.input_limits import refused_inputs
from hms_cache.metadata.names import NamePattern
from hms_cache.metrics import Metrics
from hms_cache.patterns.java_regex import JavaRegex
from hms_cache.server.handlers.table import METHODS_NOT_SERVED
from hms_cache.server.request_sizes import check_request_size
from hms_cache.server.session import Session
from hms_cache.store.avro_schemas import AvroSchemaError, columns_of_schema
from hms_cache.store.engine.events import EventRow
from hms_cache.store.engine.listing import listed
from hms_cache.store.engine.work_units import WriteTransaction
from hms_cache.store.locks.unlocking import heartbeat_txn_range
from hms_cache.store.properties import selection
from hms_cache.store.write_ids.seeding import check_seeded_id
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AbortCompactionRequest,
    AbortTxnsRequest,
    CreateTableRequest,
    CreationMetadata,
    GetValidWriteIdsRequest,
    HeartbeatTxnRangeRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LockComponent,
    LockRequest,
    MetaException,
    NotificationEventRequest,
    NotificationEventsCountRequest,
    PrincipalPrivilegeSet,
    PrivilegeBag,
    PrivilegeGrantInfo,
    ReplicationMetricList,
    ReplicationMetrics,
    SourceTable,
    Table,
)
from hms_cache.txn.id_lists import parse_ids
from hms_cache.wire import METHODS
from tests.expressions.kryo_writer import ascii_text, varint
from tests.expressions.test_hive_tree import expression_of
from tests.store.avro.schemas import field, record


def _parameters(count: int) -> str:
    return " and ".join(f'hive_filter_field_params__p{number} = "x"' for number in range(count))


def _graph() -> bytes:
    """A list of 30,000 nulls, which takes a megabyte."""
    outer = varint(1) + varint(0) + ascii_text("java.util.Arrays$ArrayList") + varint(1) + varint(1)
    inner = varint(1) + varint(0) + varint(1) + varint(30_000) + varint(0)
    return outer + varint(1) + varint(1) + ascii_text("java.lang.Object") + inner + bytes(40_000)


def _sasl() -> None:
    negotiation = Negotiation({"ECHO": cast(Any, object)})
    negotiation.feed(b"\x01" + (4).to_bytes(4, "big") + b"ECHO" + b"\x02" + (10).to_bytes(4, "big"))
    negotiation.next_response()


def _variables() -> None:
    session = Session("local")
    for number in range(3):
        session.set_variable(str(number), "x")


def _request(method: str, argument: str, request: Any) -> None:
    arguments = METHODS[method].args_class()
    setattr(arguments, argument, request)
    check_request_size(method, arguments)


def _granted() -> None:
    """Two privileges each."""
    one = HiveObjectPrivilege(grantInfo=PrivilegeGrantInfo(privilege="SELECT,INSERT"))
    _request("grant_privileges", "privileges", PrivilegeBag([one, one]))


def _granted_on_objects() -> None:
    """Two tables, a partition and a database; for columns, the table counts."""
    kinds = HiveObjectType
    objects = [
        HiveObjectRef(kinds.TABLE, "d", "t"),
        HiveObjectRef(kinds.TABLE, "d", "u"),
        HiveObjectRef(kinds.PARTITION, "d", "t", ["1"]),
        HiveObjectRef(kinds.DATABASE, "d"),
    ]
    columns = [HiveObjectRef(kinds.COLUMN, "d", "t", None, f"c{number}") for number in range(10)]
    grants = [HiveObjectPrivilege(one, grantInfo=PrivilegeGrantInfo("SELECT")) for one in (*columns, *objects)]
    _request("grant_privileges", "privileges", PrivilegeBag(grants[:-1]))
    _request("grant_privileges", "privileges", PrivilegeBag(grants))


NO_DATABASE = cast(Connection, None)
"""What is judged here is judged before anything is asked."""

_FIELDS = [f"f{number}" for number in range(11)]


def _two_events() -> None:
    transaction = WriteTransaction(NO_DATABASE, cast(Any, None))
    for _ in range(2):
        transaction.append_event(EventRow("ALTER_PARTITION", "hive", "d", "t", "x" * 11, "json-0.2"))


_METRICS = ReplicationMetricList([ReplicationMetrics()] * 3)

_LONG_TEXT = "'aaaaaa' + 'bbbbbb' == 'c'"

BEYOND: dict[str, tuple[int, Callable[[], object]]] = {
    "name_pattern_alternatives": (2, lambda: NamePattern("a*|b*|c*")),
    "name_pattern_characters": (5, lambda: NamePattern("abcdef*")),
    "regex_characters": (3, lambda: JavaRegex("abcd")),
    "regex_states": (5, lambda: JavaRegex("a{9}")),
    "regex_steps": (5, lambda: JavaRegex("(a|b)*c").matches("abababab")),
    "expression_bytes": (10, lambda: read_expression(bytes(11), id)),
    "expression_memory_bytes": (100_000, lambda: read_expression(_graph(), id)),
    "expression_nodes": (2, lambda: _unknown(expression_of("WHERE n IN (3, 33)"))),
    "table_filter_parameters": (2, lambda: bind_table_filter(parse_filter(_parameters(3)))),
    "listed_ids": (5, lambda: parse_ids("1-9", "ids")),
    "properties_expression_characters": (4, lambda: selection.parse_expression("a == 1")),
    "properties_text_characters": (10, lambda: selection.matches(selection.parse_expression(_LONG_TEXT), {})),
    "heartbeat_range_txns": (5, lambda: heartbeat_txn_range(NO_DATABASE, HeartbeatTxnRangeRequest(1, 6))),
    "lock_components": (2, lambda: _request("lock", "rqst", LockRequest([LockComponent()] * 3))),
    "request_transactions": (2, lambda: _request("abort_txns", "rqst", AbortTxnsRequest([1, 2, 3]))),
    "request_tables": (2, lambda: _request("get_valid_write_ids", "rqst", GetValidWriteIdsRequest(["d.t"] * 3))),
    "request_grants": (3, _granted),
    "request_grant_objects": (4, _granted_on_objects),
    "request_metrics": (2, lambda: _request("add_replication_metrics", "replicationMetricList", _METRICS)),
    "request_event_characters": (20, _two_events),
    "listed_rows": (2, lambda: listed([1, 2, 3], "locks")),
    "seeded_id": (5, lambda: check_seeded_id("txnId seed", 6)),
    "avro_type_characters": (30, lambda: columns_of_schema(json.dumps(record(*(field(n, "int") for n in _FIELDS))))),
    "sasl_message_bytes": (9, _sasl),
    "bearer_token_bytes": (10, lambda: BearerTokens(cast(Any, None), cast(Any, None)).check("x" * 11)),
    "session_variables": (2, _variables),
    "session_name_characters": (3, lambda: Session("local").set_user("anna", ())),
}


def _ways_to_sources(struct: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Names of the fields that lead to the sources of a materialized view."""
    for _, kind, name, detail, _ in filter(None, struct.thrift_spec):
        if kind == TType.STRUCT and detail[0] is CreationMetadata:
            yield (name,)
        elif kind == TType.STRUCT and detail[0] not in before:
            yield from ((name, *way) for way in _ways_to_sources(detail[0], (*before, struct)))


@pytest.mark.parametrize("is_named", [True, False], ids=["names", "tables"])
def test_tables_that_a_view_is_made_from_are_counted(put_in_force: Callable[..., None], is_named: bool) -> None:
    """By each method that has them: each is read before the view is stored, and authorized before that."""
    put_in_force(request_tables=2)
    metadata = CreationMetadata(dbName="d", tblName="v", tablesUsed={"d.a", "d.b"}, sourceTables=[])
    found = set()
    for method in METHODS.keys() - METHODS_NOT_SERVED:
        spec = METHODS[method]
        for *way, last in _ways_to_sources(spec.args_class):
            arguments = holder = spec.args_class()
            for name in way:
                of = next(field[3][0] for field in filter(None, holder.thrift_spec) if field[2] == name)
                setattr(holder, name, of())
                holder = getattr(holder, name)
            check_request_size(method, arguments)
            setattr(holder, last, metadata)
            metadata.tablesUsed, metadata.sourceTables = {"d.a", "d.b"}, []
            check_request_size(method, arguments)
            if is_named:
                metadata.tablesUsed = {"d.a", "d.b", "d.c"}
            else:
                metadata.sourceTables = [SourceTable(Table(tableName="c"))] * 3
            with pytest.raises(MetaException, match=rf"{method} has 3 elements, and may have 2"):
                check_request_size(method, arguments)
            found.add(method)
    assert len(found) >= 10


@pytest.mark.parametrize("kind", ["userPrivileges", "groupPrivileges", "rolePrivileges"])
def test_privileges_that_come_with_a_table_are_counted(put_in_force: Callable[..., None], kind: str) -> None:
    """Like those of a request that grants: they are rows of the same transaction."""
    put_in_force(request_grants=3)
    one = PrivilegeGrantInfo("SELECT")
    for method in METHODS.keys() - METHODS_NOT_SERVED:
        if not method.startswith("create_table"):
            continue
        made = Table(privileges=PrincipalPrivilegeSet(**{kind: {"u": [one, one], "v": [one]}}))
        names = {field[2] for field in filter(None, METHODS[method].args_class.thrift_spec)}
        given = {"tbl": made} if "tbl" in names else {"request": CreateTableRequest(made)}
        check_request_size(method, METHODS[method].args_class(**given))
        getattr(made.privileges, kind)["w"] = [one]
        with pytest.raises(MetaException, match=rf"{method} has 4 elements, and may have 3"):
            check_request_size(method, METHODS[method].args_class(**given))


def _unknown(expression: bytes) -> None:
    """A tree that is too large is no error: the client evaluates all partitions itself."""
    raise KryoError(str(parse_expression(expression).tree))


@pytest.mark.parametrize(
    ("method", "request_with_names"),
    [
        ("abort_Compactions", AbortCompactionRequest([1, 2, 3])),
        ("get_next_notification", NotificationEventRequest(0, tableNames=["t"] * 3)),
        ("get_next_notification", NotificationEventRequest(0, eventTypeList=["INSERT"] * 3)),
        ("get_next_notification", NotificationEventRequest(0, eventTypeSkipList=["INSERT"] * 3)),
        ("get_notification_events_count", NotificationEventsCountRequest(0, "d", tableNames=["t"] * 3)),
    ],
)
def test_what_events_and_compactions_are_named_by_is_counted(
    put_in_force: Callable[..., None], method: str, request_with_names: Any
) -> None:
    put_in_force(request_tables=2, request_transactions=2)
    with pytest.raises(MetaException, match=rf"{method} has 3 elements, and may have 2"):
        _request(method, "rqst", request_with_names)


def test_each_limit_has_an_attack() -> None:
    assert set(BEYOND) == set(LimitsSettings.model_fields)
    assert dialects()


@pytest.mark.parametrize("limit", BEYOND)
def test_what_is_beyond_is_refused_by_name_and_counted(put_in_force: Callable[..., None], limit: str) -> None:
    most, attack = BEYOND[limit]
    put_in_force(**{limit: most})
    before = refused_inputs()
    with pytest.raises((TException, ValueError, FilterError, AuthenticationError, AvroSchemaError)) as refused:
        attack()
    assert f"setting limits.{limit}" in str(refused.value)
    after = refused_inputs()
    assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == {limit: 1}
    shown = Metrics().text().decode()
    assert f'hms_cache_inputs_refused_total{{limit="{limit}"}} {after[limit]:.1f}' in shown
