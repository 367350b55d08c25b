"""Each write method with typical requests: of the reads of single tables, only those of announced tables change, and
none if the write announces nothing."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hms_cache.lease.scopes import EVERYTHING, Scope, scope_of, table_number
from hms_cache.metadata.object_names import TableName
from hms_cache.notifications.messages import MessageFormat
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.work_units import WriteTransaction
from tests.cache.world import encoded
from tests.every_write.catalog import MADE, VIEW, Facts
from tests.every_write.requests import base_requests, write_methods
from tests.every_write.world import World

_OF_MORE_TABLES = ("get_table_constraints", "get_foreign_keys", "get_tables")
"""Reads that every write takes the lease from: constraints follow other tables."""

_ONE_TABLE = re.compile(r"(\w+)\((\w+)\.(\w+)\.(\w+)[,)]")


def table_of(read: str) -> TableName | None:
    """The only table that a read of `all_reads` concerns; none for a view, which is never cached."""
    found = _ONE_TABLE.match(read)
    if found is None or found[1] in _OF_MORE_TABLES or found[4] == VIEW:
        return None
    return TableName(*found.groups()[1:])


def requests_of(method: str, facts: Facts) -> Iterator[Any]:
    """Those that all tests of writes create, and renames of tables."""
    for arguments in base_requests(method, facts):
        yield arguments
        if method == "alter_table":
            renamed = copy.deepcopy(arguments)
            renamed.new_tbl.tableName = MADE
            yield renamed


def test_what_a_write_changes_it_announces(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    announced: list[Scope] = []
    write_events = WriteTransaction.write_events

    def note(self: WriteTransaction, time_s: int) -> None:
        if self.has_events:
            announced.append(scope_of(self.events))
        write_events(self, time_s)

    monkeypatch.setattr(WriteTransaction, "write_events", note)
    url = sqlite_database.url.render_as_string(hide_password=False)
    with closing(World(url, tmp_path, MessageFormat.JSON)) as world:
        tables = {name: table_of(name) for name in world.reads}
        assert len(set(tables.values())) >= 6

        def answers() -> dict[str, object]:
            return {name: encoded(lambda name=name: world.reads[name](world.writer.objects)) for name in tables}  # type: ignore[misc]

        before, missing, narrow, quiet = answers(), [], 0, set()
        for method in write_methods():
            for number, arguments in enumerate(requests_of(method, world.facts)):
                announced.clear()
                outcome = world.call(method, arguments)
                if EVERYTHING not in announced and announced:
                    numbers = frozenset().union(*(scope for scope in announced if scope is not EVERYTHING))
                    if numbers:
                        narrow += 1
                    else:
                        quiet.add(method)
                    after = answers()
                    missing += [
                        (method, number, name)
                        for name, table in tables.items()
                        if after[name] != before[name]
                        and (table is not None or not numbers)
                        and (table is None or table_number(table) not in numbers)
                    ]
                if outcome.changed or outcome.events:
                    world.set_back(outcome.changed)
        assert missing == []
        assert narrow > 50
        assert quiet >= {"open_txns", "commit_txn", "abort_txn", "abort_txns", "allocate_table_write_ids"}
