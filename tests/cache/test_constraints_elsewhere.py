"""Constraints that another kind of metastore adds to several tables in one request: one event, whose row names the
first of them (`DbNotificationListener.onAddNotNullConstraint` and similar methods, Hive 3.1 to 4.1)."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete

from hms_cache.cache.reads.assembly import CacheOptions
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.event_types import EventType
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.notifications.messages import MessageFormat
from hms_cache.store.engine.work_units import WriteTransaction, run_write
from hms_cache.store.schema import NOTIFICATION_LOG, NOTIFICATION_SEQUENCE
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.conftest import MakeServer
from tests.cache.world import CATALOG, create_database, encoded, table

NAMES = ("first", "second", "third")

KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "notNullConstraints": (ttypes.SQLNotNullConstraint, {"nn_name": "c"}),
    "defaultConstraints": (ttypes.SQLDefaultConstraint, {"dc_name": "c", "default_value": "1"}),
    "checkConstraints": (ttypes.SQLCheckConstraint, {"dc_name": "c", "check_expression": "a > 1"}),
    "uniqueConstraints": (ttypes.SQLUniqueConstraint, {"uk_name": "c", "key_seq": 1}),
    "primaryKeys": (ttypes.SQLPrimaryKey, {"pk_name": "c", "key_seq": 1}),
}


@pytest.mark.parametrize("first_is_held", [False, True])
@pytest.mark.parametrize("message_format", MessageFormat)
@pytest.mark.parametrize("kind", KINDS)
def test_each_table_shows_them(
    kind: str, message_format: MessageFormat, first_is_held: bool, servers: MakeServer
) -> None:
    here, elsewhere = servers(CacheOptions(peers="hive4")), servers()
    create_database(elsewhere.objects, "d")
    for name in NAMES:
        elsewhere.objects.writes.tables.create_table(table("d", name))
    requested = [TableName(CATALOG, "d", name) for name in (NAMES if first_is_held else NAMES[1:])]
    for one in requested:
        here.store.reads.constraints.get_table_constraints(one)

    struct, given = KINDS[kind]
    common = {"catName": CATALOG, "table_db": "d", "column_name": "a", "enable_cstr": True, **given}
    added = [struct(table_name=name, **{**common, _name_field(given): f"c_{name}"}) for name in NAMES]
    before = elsewhere.objects.reads.current_event_id()
    elsewhere.objects.writes.constraints.add_constraints(ttypes.SQLAllTableConstraints(**{kind: added}))

    def log_as_hive(transaction: WriteTransaction) -> None:
        """Replaces the events for each table."""
        transaction.connection.execute(delete(NOTIFICATION_LOG).where(NOTIFICATION_LOG.c.EVENT_ID > before))
        transaction.connection.execute(NOTIFICATION_SEQUENCE.update().values(NEXT_EVENT_ID=before + 1))
        row = MessageBuilder(message_format).build_add_constraints(table("d", NAMES[0]), added)
        assert row.event_type in list(EventType)
        transaction.append_event(row)

    run_write(elsewhere.database, log_as_hive)
    for one in requested:
        expected = encoded(lambda one=one: here.objects.reads.constraints.get_table_constraints(one))
        assert encoded(lambda one=one: here.store.reads.constraints.get_table_constraints(one)) == expected


def _name_field(given: dict[str, Any]) -> str:
    return next(field for field in given if field.endswith("_name"))
