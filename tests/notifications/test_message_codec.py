"""The reader decodes what the builder writes; and its behavior for rows of other kinds."""

from __future__ import annotations

import base64
import gzip
import json
import random
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hms_cache.metadata.object_names import DatabaseName, TableName
from hms_cache.notifications import events as ev
from hms_cache.notifications import message_reader
from hms_cache.notifications.event_types import GRANTS_CHANGED, EventType
from hms_cache.notifications.events import EventRow, NotificationRow, scope_of_row
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.notifications.message_reader import read_event
from hms_cache.notifications.messages import MessageError, MessageFormat, decode_message, encode_message
from hms_cache.notifications.scope import EVERYTHING, Scope, scope_of_tables
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.manual_clock import ManualClock
from tests.notifications import samples
from tests.notifications.samples import OWN_SAMPLES, SAMPLES, Sample, partition, table

FORMATS = list(MessageFormat)


def stored(row: EventRow, event_id: int = 1) -> NotificationRow:
    return NotificationRow(event_id, 1_700_000_000, *row[:6])


def plain(row: EventRow) -> dict[str, Any]:
    return decode_message(row.message, row.message_format)


def rewritten(row: EventRow, **fields: Any) -> NotificationRow:
    """The row with some fields of its message replaced, as plain JSON."""
    message = json.dumps({**plain(row), **fields})
    return stored(row._replace(message=message, message_format="json-0.2"))


@pytest.mark.parametrize("message_format", FORMATS)
@pytest.mark.parametrize("sample", SAMPLES + OWN_SAMPLES, ids=lambda sample: sample.name)
def test_reader_understands_what_the_builder_wrote(sample: Sample, message_format: MessageFormat) -> None:
    row = sample.build(MessageBuilder(message_format))
    assert row.message_format == message_format.value
    assert row.message.isascii()  # the column is latin1 if Hive's script created it
    event = read_event(stored(row, 42))
    assert type(event) is sample.event_class
    assert event.event_id == 42
    assert event.scope == sample.scope
    for name, value in sample.details.items():
        assert getattr(event, name) == value, name


def test_every_type_has_a_reader() -> None:
    known = message_reader._READERS.keys() | message_reader._READERS_OF_ROW.keys()
    assert known == {*EventType, GRANTS_CHANGED}


def test_messages_say_who_wrote_them_and_when() -> None:
    clock = ManualClock(epoch_s=1_700_000_123.9)
    builder = MessageBuilder(
        MessageFormat.JSON, server="thrift://h:9083", service_principal="hive/_HOST@R", clock=clock
    )
    for sample in SAMPLES:
        message = json.loads(sample.build(builder).message)
        assert message["server"] == "thrift://h:9083"
        assert message["servicePrincipal"] == "hive/_HOST@R"
        assert message["timestamp"] == 1_700_000_123


def test_equal_writes_give_equal_messages() -> None:
    builder = MessageBuilder(clock=ManualClock())
    assert builder.build_create_table(table()) == builder.build_create_table(table())


OBJECTS: list[tuple[str, Callable[[MessageBuilder], EventRow], Callable[[Any], Any], Any]] = [
    (
        "create database",
        lambda b: b.build_create_database(samples.database()),
        lambda e: e.database(),
        samples.database(),
    ),
    ("drop database", lambda b: b.build_drop_database(samples.database()), lambda e: e.database(), samples.database()),
    (
        "alter database",
        lambda b: b.build_alter_database(samples.database(), samples.database(description="x")),
        lambda e: [e.before(), e.after()],
        [samples.database(), samples.database(description="x")],
    ),
    ("create table", lambda b: b.build_create_table(table()), lambda e: e.table(), table()),
    (
        "alter table",
        lambda b: b.build_alter_table(table(), table("t2")),
        lambda e: [e.before(), e.after()],
        [table(), table("t2")],
    ),
    (
        "add partitions",
        lambda b: next(b.build_add_partitions(table(), [partition("1", "x")])),
        lambda e: [e.table(), *e.partition_objects()],
        [table(), partition("1", "x")],
    ),
    (
        "alter partition",
        lambda b: next(b.build_alter_partition_each(table(), [(partition("1", "x"), partition("2", "x"))])),
        lambda e: [e.before(), e.after()],
        [partition("1", "x"), partition("2", "x")],
    ),
    (
        "alter partitions",
        lambda b: next(b.build_alter_partitions(table(), [partition("1", "x")])),
        lambda e: e.partition_objects(),
        [partition("1", "x")],
    ),
    (
        "insert",
        lambda b: b.build_insert(table(), partition("1", "x")),
        lambda e: e.partition(),
        partition("1", "x"),
    ),
    ("insert, whole", lambda b: b.build_insert(table()), lambda e: e.partition(), None),
    (
        "reload",
        lambda b: b.build_reload(table(), partition("1", "x")),
        lambda e: e.partition(),
        partition("1", "x"),
    ),
    (
        "create function",
        lambda b: b.build_create_function(samples.function()),
        lambda e: e.function(),
        samples.function(),
    ),
    (
        "foreign key",
        lambda b: b.build_add_constraints(table(), [samples.foreign_key()]),
        lambda e: e.constraints(),
        [samples.foreign_key()],
    ),
    (
        "primary key",
        lambda b: b.build_add_constraints(table(), [samples.primary_key()]),
        lambda e: e.constraints(),
        [samples.primary_key()],
    ),
    (
        "table statistics",
        lambda b: b.build_update_table_column_statistics(table(), samples.statistics()),
        lambda e: e.statistics(),
        samples.statistics(),
    ),
    (
        "partition statistics",
        lambda b: next(
            b.build_update_partition_column_statistics_each(table(), [(["1", "x"], samples.statistics(False), None)])
        ),
        lambda e: e.statistics(),
        samples.statistics(False),
    ),
    (
        "alter catalog",
        lambda b: b.build_alter_catalog(ttypes.Catalog("c", "1"), ttypes.Catalog("c", "2")),
        lambda e: [e.before(), e.after()],
        [ttypes.Catalog("c", "1"), ttypes.Catalog("c", "2")],
    ),
]


@pytest.mark.parametrize(
    ("build", "get", "expected"), [case[1:] for case in OBJECTS], ids=[case[0] for case in OBJECTS]
)
def test_embedded_objects_come_back_whole(
    build: Callable[[MessageBuilder], EventRow], get: Callable[[Any], Any], expected: Any
) -> None:
    assert get(read_event(stored(build(MessageBuilder())))) == expected


# ---- formats --------------------------------------------------------------------------------------------------------


def test_label_of_the_row_decides() -> None:
    plain_row = MessageBuilder(MessageFormat.JSON).build_drop_table(table())
    zipped = base64.b64encode(gzip.compress(plain_row.message.encode())).decode()
    for message, label in [(plain_row.message, "json-0.2"), (zipped, "gzip(json-2.0)"), (zipped, "gzip")]:
        row = stored(plain_row._replace(message=message, message_format=label))
        assert type(read_event(row)) is ev.TableDropped, label
    assert type(read_event(stored(plain_row)._replace(message_format=None))) is ev.TableDropped
    for message, label in [(zipped, "json-0.2"), (plain_row.message, "gzip(json-2.0)"), (zipped, "protobuf-1")]:
        row = stored(plain_row._replace(message=message, message_format=label))
        assert type(read_event(row)) is ev.UndecodedEvent, label


def test_messages_of_all_lengths_are_what_any_gzip_reads() -> None:
    """The window is as large as the message; another window would find no more repetitions."""
    draw = random.Random(5)
    lengths = [*range(130), *(2**power + more for power in range(7, 18) for more in (-1, 0, 1))]
    for length in lengths:
        repeated = "".join(f'{{"location":"/d/p={number}"}},' for number in range(length // 20 + 1))[:length]
        strange = "".join(draw.choices('ab"\\{}\u00e4\u20ac\U0001f600', k=length))
        for text in (repeated, strange):
            packed = base64.b64decode(encode_message(text, MessageFormat.GZIP_JSON))
            assert gzip.decompress(packed).decode() == text, length
            assert packed[4:8] == bytes(4), "the time would make equal messages differ"
            assert len(packed) <= len(gzip.compress(text.encode(), 1, mtime=0)) * 1.05 + 1, length


def test_unescaped_control_characters_are_read() -> None:
    row = MessageBuilder(MessageFormat.JSON).build_drop_function(samples.function())
    text = row.message.replace('"f"', '"f\x01\tg"')
    event = read_event(stored(row._replace(message=text)))
    assert isinstance(event, ev.FunctionDropped)
    assert event.function_name == "f\x01\tg"


def test_message_that_inflates_past_the_limit_is_refused() -> None:
    packed = encode_message('{"a":"' + "x" * 100_000 + '"}', MessageFormat.GZIP_JSON)
    assert len(packed) < 1_000
    assert decode_message(packed, "gzip(json-2.0)", 200_000)["a"] == "x" * 100_000
    with pytest.raises(MessageError, match="more than 50000 bytes"):
        decode_message(packed, "gzip(json-2.0)", 50_000)


# ---- other writers --------------------------------------------------------------------------------------------------


def test_fields_of_newer_and_older_writers() -> None:
    builder = MessageBuilder()
    event = read_event(rewritten(builder.build_alter_table(table(), table()), writeId=None, brandNew={"a": [1]}))
    assert isinstance(event, ev.TableAltered)
    assert event.write_id is None
    # Hive 3.1: no dbJson in DROP_DATABASE, a transaction id alone in COMMIT_TXN.
    message = plain(builder.build_drop_database(samples.database()))
    del message["dbJson"]
    old = read_event(NotificationRow(1, 1, "DROP_DATABASE", "hive", "d", None, json.dumps(message), "json-0.2"))
    assert isinstance(old, ev.DatabaseDropped)
    assert old.database() is None
    commit = read_event(NotificationRow(1, 1, "COMMIT_TXN", None, None, None, '{"txnid":"17"}', "json-0.2"))
    assert commit.scope == Scope(transactions=frozenset([17]))


def test_commit_that_names_its_tables() -> None:
    row = MessageBuilder().build_commit_transaction(3)
    named = read_event(rewritten(row, databases=["D", "d2"], tables=["t", "t2"]))
    assert named.scope.tables == {TableName("hive", "d", "t"), TableName("hive", "d2", "t2")}
    # Databases without tables (Hive after HIVE-28976) name no table.
    assert read_event(rewritten(row, databases=["d"], writeIds=[1])).scope.tables == frozenset()


def test_values_follow_the_table_s_keys_not_the_map_s_order() -> None:
    row = next(MessageBuilder().build_drop_partitions(table(), [("1", "x")]))
    event = read_event(rewritten(row, partitions=[{"a": "x", "p": "1"}]))
    assert event.scope.partitions == {samples.T: frozenset([("1", "x")])}


@pytest.mark.parametrize(
    "partitions", [[{"p": "1", "b": "x"}], [{"p": "1"}, {"p": "2", "a": "x"}], None, [["1", "x"]], [None]]
)
def test_partitions_that_do_not_fit_the_keys_mean_the_whole_table(partitions: Any) -> None:
    row = next(MessageBuilder().build_drop_partitions(table(), [("1", "x")]))
    assert read_event(rewritten(row, partitions=partitions)).scope == samples.ONE_TABLE


def test_partition_event_without_a_readable_table_means_the_whole_table() -> None:
    row = next(MessageBuilder().build_drop_partitions(table(), [("1", "x")]))
    for table_json in (None, "{", '{"1":{"str":"t"}}'):
        assert read_event(rewritten(row, tableObjJson=table_json)).scope == samples.ONE_TABLE
    altered = next(MessageBuilder().build_alter_partition_each(table(), [(partition("1", "x"), partition("1", "x"))]))
    assert read_event(rewritten(altered, partitionObjAfterJson="{")).scope == samples.ONE_TABLE


def test_listed_objects_and_maps_that_do_not_fit_together() -> None:
    """The maps have precedence, then the whole table."""
    row = next(MessageBuilder().build_add_partitions(table(), [partition("1", "x"), partition("2", "y")]))
    both = {samples.T: frozenset([("1", "x"), ("2", "y")])}
    for listed in ([], None, ["{"], ["{", "{}"], ['{"2":{"str":"d"}}', '{"1":{"lst":7}}']):
        assert read_event(rewritten(row, partitionListJson=listed)).scope.partitions == both
    assert read_event(rewritten(row, partitions=None)).scope == samples.ONE_TABLE
    assert read_event(rewritten(row, partitionListJson=[], tableObjJson="{")).scope == samples.ONE_TABLE


def test_event_about_no_partition_concerns_none() -> None:
    row = next(MessageBuilder().build_drop_partitions(table(), [("1", "x")]))
    assert read_event(rewritten(row, partitions=[])).scope.partitions == {samples.T: frozenset()}


def test_names_are_normalized() -> None:
    builder = MessageBuilder()
    upper = read_event(stored(builder.build_drop_table(table("Tab", "DB", catName=None))))
    assert upper.scope.tables == {TableName("hive", "db", "tab")}
    function = ttypes.Function(functionName="F ", dbName="D", catName="Spark")
    created = read_event(stored(builder.build_create_function(function)))
    assert {tuple(name) for name in created.scope.functions} == {("spark", "d", "f")}


def test_range_of_opened_transactions_is_not_spelled_out() -> None:
    row = MessageBuilder().build_open_transactions(1, 1)
    assert read_event(rewritten(row, txnIds=[4, 5])).scope.transactions == {4, 5}
    assert read_event(rewritten(row, fromTxnId=0, toTxnId=1 << 62)).scope == Scope(all_transactions=True)
    assert read_event(rewritten(row, fromTxnId=9, toTxnId=2)).scope == Scope(all_transactions=True)


# ---- what cannot be decoded -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event_type", "catalog", "database", "table_column", "expected"),
    [
        ("CREATE_TABLE", "hive", "d", "t", scope_of_tables([samples.T], foreign_keys=True)),
        ("NEVER_HEARD_OF", "hive", "d", "t", scope_of_tables([samples.T], foreign_keys=True)),
        (
            "NEVER_HEARD_OF",
            None,
            "d",
            None,
            Scope(whole_databases=frozenset([DatabaseName("hive", "d")]), foreign_keys=True),
        ),
        ("NEVER_HEARD_OF", None, None, None, EVERYTHING),
        ("ALTER_TABLE", "hive", "d", "t", EVERYTHING),  # the old name is in the message only
        ("ADD_FOREIGNKEY", "hive", "d", "t", EVERYTHING),  # so is the child
        ("COMMIT_TXN", None, None, None, EVERYTHING),
        ("ALLOC_WRITE_ID_EVENT", None, "d", "t", scope_of_tables([samples.T], foreign_keys=True)),
    ],
)
def test_damaged_message_names_what_it_may_concern(
    event_type: str, catalog: str | None, database: str | None, table_column: str | None, expected: Scope
) -> None:
    row = NotificationRow(5, 1, event_type, catalog, database, table_column, "no message", "json-0.2")
    event = read_event(row)
    assert isinstance(event, ev.UndecodedEvent)
    assert event.scope == expected
    assert event.reason
    assert event.scope.concerns_table(samples.T)


def test_types_without_readers_of_messages() -> None:
    for event_type in message_reader._READERS_OF_ROW:
        event = read_event(NotificationRow(5, 1, event_type, "hive", "d", "t", None, None))
        assert not isinstance(event, ev.UndecodedEvent)
    batch = read_event(NotificationRow(5, 1, "BATCH_ACID_WRITE_EVENT", "hive", "d", "t", "{}", "json-0.2"))
    assert batch.scope == scope_of_row(batch.header)


def test_widening_ends_at_everything() -> None:
    narrow = read_event(stored(next(MessageBuilder().build_drop_partitions(table(), [("1", "x")])))).scope
    database_wide = narrow.widened_to_databases()
    assert database_wide.whole_databases == {DatabaseName("hive", "d")}
    assert Scope(transactions=frozenset([1])).widened_to_databases() is EVERYTHING
    assert EVERYTHING.widened_to_databases() is EVERYTHING


# ---- size -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message_format", FORMATS)
def test_long_lists_are_spread_over_events_in_order(message_format: MessageFormat) -> None:
    builder = MessageBuilder(message_format, max_message_bytes=20_000)
    partitions = [partition(str(number), f"é{number}") for number in range(100)]
    expected = [(str(number), f"é{number}") for number in range(100)]
    for rows in (
        list(builder.build_add_partitions(table(), partitions)),
        list(builder.build_alter_partitions(table(), partitions)),
        list(MessageBuilder(message_format, max_message_bytes=3_500).build_drop_partitions(table(), expected)),
    ):
        assert len(rows) > 1
        seen: list[tuple[str, ...]] = []
        for row in rows:
            assert len(row.message.encode()) <= 20_000
            assert len(json.dumps(plain(row), ensure_ascii=False).encode()) <= 20_000
            event = read_event(stored(row))
            assert isinstance(event, ev.PartitionsEvent)
            assert event.partitions
            seen.extend(event.partitions)
        assert seen == expected
    assert len(list(MessageBuilder(message_format).build_add_partitions(table(), partitions))) == 1
    assert list(builder.build_add_partitions(table(), [])) == []


def test_altered_partitions_of_one_event_share_their_write_id() -> None:
    partitions = [partition("1", "x", write_id=4), partition("2", "x"), partition("3", "x", write_id=4)]
    events = [read_event(stored(row)) for row in MessageBuilder().build_alter_partitions(table(), partitions)]
    assert all(isinstance(event, ev.PartitionsAltered) for event in events)
    seen = {event.write_id: event.partitions for event in events if isinstance(event, ev.PartitionsAltered)}
    assert seen == {4: (("1", "x"), ("3", "x")), -1: (("2", "x"),)}


@pytest.mark.parametrize("name", ["repl.source.for", "repl.last.id", "hive.repl.ckpt.key", '"repl.incompatible"'])
def test_what_replication_keeps_in_a_database_is_told_to_no_replica(name: str) -> None:
    """`AlterDatabaseEvent.filterOutReplProps` of Hive 4: `REPL LOAD` would apply them."""
    mine = {name: "1", "bootstrap.dump.state.1f": "ACTIVE"}
    before, after = samples.database(), samples.database()
    before.parameters, after.parameters = {"k": "1", **mine}, {"k": "2", "replica": "3", **mine}
    event = read_event(stored(MessageBuilder().build_alter_database(before, after)))
    assert isinstance(event, ev.DatabaseAltered)
    assert event.before().parameters == {"k": "1"}
    assert event.after().parameters == {"k": "2", "replica": "3"}
    assert after.parameters == {"k": "2", "replica": "3", **mine}
    created = read_event(stored(MessageBuilder().build_create_database(before)))
    assert isinstance(created, ev.DatabaseCreated)
    assert created.database().parameters == before.parameters


def test_object_larger_than_the_limit_is_written_whole() -> None:
    builder = MessageBuilder(max_message_bytes=1_000)
    rows = list(builder.build_add_partitions(table(), [partition("1", "x"), partition("2", "y")]))
    assert [read_event(stored(row)).scope.partitions[samples.T] for row in rows] == [{("1", "x")}, {("2", "y")}]


def test_constraints_of_one_event_are_of_one_kind_and_one_parent() -> None:
    builder = MessageBuilder()
    with pytest.raises(ValueError, match="one kind"):
        builder.build_add_constraints(table(), [])
    with pytest.raises(ValueError, match="one kind"):
        builder.build_add_constraints(table(), [samples.primary_key(), samples.foreign_key()])
    with pytest.raises(ValueError, match="one parent"):
        builder.build_add_constraints(table("other"), [samples.foreign_key()])


WIDE, MANY = 2_000, 500


def test_events_of_many_partitions_are_made_one_by_one() -> None:
    """Each contains a table of any width: all of them together may exceed the memory."""
    wide, changed = table(), partition("1", "x")
    changed.sd.cols = wide.sd.cols = [ttypes.FieldSchema(f"column{number}", "int", None) for number in range(WIDE)]
    statistics = ttypes.ColumnStatistics(ttypes.ColumnStatisticsDesc(False, "d", "t"), [])
    builder = MessageBuilder(MessageFormat.JSON)
    builds: tuple[Callable[[], Iterator[EventRow]], ...] = (
        lambda: builder.build_add_partitions(wide, [changed] * MANY),
        lambda: builder.build_alter_partitions(wide, [changed] * MANY),
        lambda: builder.build_alter_partition_each(wide, [(changed, changed)] * MANY),
        lambda: builder.build_update_partition_column_statistics_each(wide, [(["1"], statistics, None)] * MANY),
    )
    for build in builds:
        tracemalloc.start()
        try:
            assert len(next(iter(build())).message) > 20 * WIDE
            _, max_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert max_bytes < 100_000_000
