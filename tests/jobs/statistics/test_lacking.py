"""Which partitions lack statistics, requested in calls of a limited size."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from hms_cache.client import MetastoreClient
from hms_cache.jobs.statistics import missing_statistics
from hms_cache.jobs.statistics.missing_statistics import _lacking
from hms_cache.metadata.object_names import TableName
from tests.conftest import ServerStarter
from tests.jobs.catalogs import Catalog


@pytest.mark.parametrize(("of_a_call", "calls"), [(50_000, 1), (4, 3), (1, 5)])
def test_a_wide_table_takes_several_calls(
    start_server: ServerStarter, monkeypatch: pytest.MonkeyPatch, of_a_call: int, calls: int
) -> None:
    """With thousands of columns, the statistics of five hundred partitions exceed a worker's memory and a Thrift
    message."""
    server = start_server("sqlite")
    names = [f"day={number}" for number in range(5)]
    with closing(Catalog(server.uri)) as catalog:
        catalog.database("sales")
        catalog.table("sales", "wide", keys=["day"])
        catalog.partitions("sales", "wide", [(str(number),) for number in range(5)])
        for name in names[1:4]:
            catalog.statistics("sales", "wide", name)
    monkeypatch.setattr(missing_statistics, "STATISTICS_OF_A_CALL", of_a_call)
    requested: list[str] = []
    with MetastoreClient(server.uri) as client:
        call = client.call

        def counted(method: str, *arguments: Any) -> Any:
            requested.append(method)
            return call(method, *arguments)

        monkeypatch.setattr(client, "call", counted)
        wide = TableName("hive", "sales", "wide")
        assert _lacking(client, wide, ["id", "name"], names, "hive") == [names[0], names[4]]
        assert _lacking(client, TableName("hive", "sales", "none"), ["id"], names, "hive") == []
    assert requested[:-1] == ["get_partitions_statistics_req"] * calls
