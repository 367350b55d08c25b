"""What each test would do again with the same result, and takes longer than most tests: done once in a process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection

from hms_cache.store.engine import inspection
from hms_cache.store.engine.inspection import TableShape


@contextmanager
def done_once() -> Iterator[None]:
    """Until the end, embedded schemas are inspected once each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspection, "_inspect_sqlite", _by_definitions(inspection._inspect_sqlite))
        yield


def _by_definitions(inspect: Callable[[Connection], dict[str, TableShape]]) -> Any:
    """An inspection of SQLite takes 70 ms, and most tests open a database. It finds the same where the text of all
    definitions, which is all that SQLite knows of them, is the same."""
    found: dict[tuple[Any, ...], bytes] = {}

    def inspect_once(connection: Connection) -> dict[str, TableShape]:
        statement = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2, 3"
        definitions = tuple(map(tuple, connection.exec_driver_sql(statement)))
        if definitions not in found:
            found[definitions] = pickle.dumps(inspect(connection))
        answer: dict[str, TableShape] = pickle.loads(found[definitions])  # each its own, to change
        return answer

    return inspect_once
