"""Whatever the log contains, reading it returns an event that names enough; it never raises (P8)."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.notifications import events as ev
from hms_cache.notifications.event_types import EventType
from hms_cache.notifications.events import NotificationRow
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.notifications.message_reader import read_event
from hms_cache.notifications.messages import MessageFormat, decode_message
from tests.notifications.samples import SAMPLES, Sample, T

names = st.sampled_from([None, "", "d", "t", " D "]) | st.text(max_size=5)
labels = st.sampled_from([None, "json-0.2", "gzip(json-2.0)", "gzip", "json-9", "", "x"])
types = st.sampled_from([*EventType, "UNKNOWN", ""])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted(
    {name for sample in SAMPLES for name in json.loads(sample.build(MessageBuilder(MessageFormat.JSON)).message)}
)


def names_enough(event: ev.Event) -> bool:
    """The scope of an event that could not be decoded must include what the row names."""
    scope = event.scope
    if not isinstance(event, ev.UndecodedEvent) or event.own_table is None:
        return True
    return scope.concerns_table(event.own_table)


@given(types, names, names, names, st.none() | st.text() | st.binary().map(lambda raw: raw.decode("latin-1")), labels)
def test_random_text(
    event_type: str,
    catalog: str | None,
    database: str | None,
    table: str | None,
    message: str | None,
    label: str | None,
) -> None:
    assert names_enough(read_event(NotificationRow(1, 1, event_type, catalog, database, table, message, label)))


@given(types, names, names, st.binary())
def test_random_bytes_in_a_gzip(event_type: str, database: str | None, table: str | None, raw: bytes) -> None:
    message = base64.b64encode(gzip.compress(raw)).decode()
    assert names_enough(read_event(NotificationRow(1, 1, event_type, None, database, table, message, "gzip(json-2.0)")))


@given(st.sampled_from(SAMPLES), st.data())
def test_truncated_gzip(sample: Sample, data: st.DataObject) -> None:
    row = sample.build(MessageBuilder())
    packed = base64.b64decode(row.message)
    # The message contains the time, so its length varies; the generated examples must not depend on it.
    cut = base64.b64encode(packed[: data.draw(st.integers(0, 1 << 16)) % len(packed)]).decode()
    event = read_event(NotificationRow(1, 1, *row._replace(message=cut)[:6]))
    assert isinstance(event, ev.UndecodedEvent)
    assert names_enough(event)


@given(st.sampled_from(SAMPLES), st.data())
def test_damaged_character(sample: Sample, data: st.DataObject) -> None:
    row = sample.build(MessageBuilder(MessageFormat.JSON))
    at = data.draw(st.integers(0, len(row.message) - 1))
    message = row.message[:at] + data.draw(st.characters()) + row.message[at + 1 :]
    assert names_enough(read_event(NotificationRow(1, 1, *row._replace(message=message)[:6])))


@given(st.sampled_from(SAMPLES), st.sampled_from(FIELDS), json_values)
def test_field_of_another_kind(sample: Sample, field: str, value: Any) -> None:
    row = sample.build(MessageBuilder())
    message = {**decode_message(row.message, row.message_format), field: value}
    damaged = row._replace(message=json.dumps(message), message_format="json-0.2")
    event = read_event(NotificationRow(1, 1, *damaged[:6]))
    assert names_enough(event)
    if row.table is not None and row.event_type != EventType.CREATE_FUNCTION:
        assert event.scope.concerns_table(T) or row.event_type == EventType.ALTER_TABLE


def _thrift_partition(*values: Any) -> str:
    return json.dumps({"1": {"lst": ["str", len(values), *values]}})


@pytest.mark.parametrize("value", [None, 5, 1.5, True, {}, [], {"a": "1"}])
@pytest.mark.parametrize(
    ("event_type", "message_of"),
    [
        ("DROP_PARTITION", lambda value: {"partitions": [{"a": "1"}, {"a": value}]}),
        ("ADD_PARTITION", lambda value: {"partitions": [{"a": value}]}),
        ("ADD_PARTITION", lambda value: {"partitions": [{}], "partitionListJson": [_thrift_partition(value, "2")]}),
        ("ADD_PARTITION", lambda _: {"partitions": [], "partitionListJson": [_thrift_partition("1", "2")]}),
        ("ALTER_PARTITIONS", lambda value: {"partitions": [{}], "partitionListJson": [_thrift_partition(value, "2")]}),
        ("INSERT", lambda value: {"ptnObjJson": _thrift_partition("1", value)}),
        ("INSERT", lambda _: {"ptnObjJson": _thrift_partition()}),
        ("UPDATE_PART_COL_STAT_EVENT", lambda value: {"partVals": ["1", value]}),
        ("DELETE_PART_COL_STAT_EVENT", lambda value: {"partValues": [value]}),
    ],
)
def test_value_that_is_no_text_names_no_partition(event_type: str, message_of: Any, value: Any) -> None:
    """Python's text of it (``None``, ``5``) would be the name of another partition, and that event would miss the one
    that changed."""
    message = json.dumps(message_of(value))
    event = read_event(NotificationRow(1, 1, event_type, "hive", "d", "t", message, "json-0.2"))
    assert event.scope.everything or T in event.scope.tables


@pytest.mark.parametrize("depth", [100_000])
def test_nesting_bomb(depth: int) -> None:
    for message in (
        "[" * depth,
        '{"a":' * depth,
        json.dumps({"tableObjJson": "[" * depth, "partitions": [{"a": "1", "b": "2"}]}),
    ):
        event = read_event(NotificationRow(1, 1, "DROP_PARTITION", "hive", "d", "t", message, "json-0.2"))
        assert event.scope.concerns_table(T)
