"""What the server sends to the database for a selection is proportional to what the client sent, whatever its form."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import make_url

from hms_cache.metadata.object_names import TableName
from hms_cache.store.contract.partitions import (
    ByFilter,
    ByNames,
    ByPartialValues,
    ByValues,
    PartitionQuery,
    PartitionSelection,
)
from hms_cache.store.engine.database import Database
from tests.databases import closing
from tests.server.counting_relay import CountingRelay
from tests.store.partitions.catalog import PartitionCatalog, partition

T = TableName("hive", "d", "t")
LONG = "x" * 60_000
HOURS = ", ".join(str(hour) for hour in range(50))

SELECTIONS: dict[str, PartitionSelection] = {
    "a long value and many others": ByFilter(f'dt = "{LONG}" and hr in ({HOURS})'),
    "many long values": ByFilter(" or ".join(f'(dt = "{"y" * 5_000}{number}" and hr = 1)' for number in range(40))),
    "one long value": ByFilter(f'dt = "{LONG}"'),
    "part of the keys": ByPartialValues((LONG, "")),
    "all keys": ByValues((LONG, "1")),
    "names": ByNames(tuple(f"dt={'n' * 740}{number}/hr=1" for number in range(200))),
    "names of quotation marks": ByNames(tuple(f"dt={'%27' * 300}{number}/hr=1" for number in range(200))),
    "names that need to be escaped": ByNames(tuple("dt=" + "'" * 9_900 + f"{number}/hr=1" for number in range(200))),
}


def characters(selection: PartitionSelection) -> int:
    match selection:
        case ByFilter(text):
            return len(text)
        case ByNames(names):
            return sum(map(len, names))
        case ByPartialValues(values) | ByValues(values):
            return sum(map(len, values))
    raise AssertionError(selection)


@pytest.mark.parametrize("how", SELECTIONS)
def test_it_is_bounded(initialized_database_url: str, tmp_path: Path, how: str) -> None:
    real = make_url(initialized_database_url)
    if real.get_backend_name() == "sqlite":
        pytest.skip("nothing is sent")
    relay = CountingRelay(str(real.host), int(real.port or 0))
    url = real.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
    try:
        with closing(Database(url)) as database:
            catalog = PartitionCatalog(database, tmp_path, files="leave")
            catalog.create_table()
            catalog.writes.add_partitions(T, [partition("a", "1"), partition("b", "2")])
            relay.begin()
            assert catalog.reads.get_partitions(PartitionQuery(T, SELECTIONS[how])).partitions == []
            sent = relay.sent_bytes
    finally:
        relay.close()
    # The database's escapes of quotation marks, and a few statements.
    assert sent <= 5 * characters(SELECTIONS[how]) + 100_000, f"{sent:,} bytes"
