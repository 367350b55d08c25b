"""Contract of `update_table_parameters`."""

from __future__ import annotations

import pytest

from hms_cache.metadata.object_names import TableName
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, StoreUnderTest


def update(name: str, expected: tuple[str, str | None] | None = None, **parameters: str) -> ttypes.TableParamsUpdate:
    key, value = expected or (None, None)
    return ttypes.TableParamsUpdate(CATALOG, "D", name, parameters, key, value)


def parameters(catalog: StoreUnderTest, name: str) -> dict[str, str]:
    found = catalog.store.reads.tables.get_table(TableName(CATALOG, "d", name)).parameters
    return {key: value for key, value in found.items() if key in ("a", "b", "c")}


def test_parameters_of_several_tables_change_together(catalog: StoreUnderTest) -> None:
    for name in ("t", "u"):
        catalog.create_table(name=name, parameters={"a": "1", "b": "2"})
    before = catalog.store.reads.tables.get_table(TableName(CATALOG, "d", "t"))
    events = len(catalog.notifications())
    catalog.store.writes.tables.update_table_parameters(
        [update("u", ("a", "1"), a="9"), update("T", ("c", None), b="3", c="4")]
    )
    assert (parameters(catalog, "t"), parameters(catalog, "u")) == (
        {"a": "1", "b": "3", "c": "4"},
        {"a": "9", "b": "2"},
    )
    after = catalog.store.reads.tables.get_table(TableName(CATALOG, "d", "t"))
    assert after.parameters["transient_lastDdlTime"] == before.parameters["transient_lastDdlTime"]
    assert (after.sd, after.id) == (before.sd, before.id)
    written = catalog.notifications()[events:]
    assert [(row.event_type, row.table) for row in written] == [("ALTER_TABLE", "t"), ("ALTER_TABLE", "u")]
    catalog.store.writes.tables.update_table_parameters([])
    assert len(catalog.notifications()) == events + 2


@pytest.mark.parametrize(
    ("refused", "kind", "text"),
    [
        (
            update("u", ("a", "7"), a="8"),
            ttypes.MetaException,
            "The table has been modified. The parameter value for key",
        ),
        (update("u", ("b", "1"), a="8", b="2"), ttypes.MetaException, "for key 'b' is 'null'"),
        (update("x", b="8"), ttypes.NoSuchObjectException, "hive.d.x table not found"),
    ],
)
def test_all_or_none(
    catalog: StoreUnderTest, refused: ttypes.TableParamsUpdate, kind: type[Exception], text: str
) -> None:
    for name in ("t", "u"):
        catalog.create_table(name=name, parameters={"a": "1"})
    events = len(catalog.notifications())
    with pytest.raises(kind) as raised:
        catalog.store.writes.tables.update_table_parameters([update("t", b="2"), refused])
    assert text in str(raised.value)
    assert (parameters(catalog, "t"), parameters(catalog, "u")) == ({"a": "1"}, {"a": "1"})
    assert len(catalog.notifications()) == events
