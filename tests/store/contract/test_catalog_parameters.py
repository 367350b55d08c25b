"""Parameters of catalogs, for which databases of Hive 4.2 have a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Column, ForeignKey, MetaData, String, Table, create_engine, select, update

from hms_cache.store.schema import CATALOG_PARAMS, CTLGS
from hms_cache.store.schema.column_types import BIGINT
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.cache.world import Server


@pytest.fixture
def url_of_hive_4_2(initialized_database_url: str) -> Iterator[str]:
    """With the table as in Hive 4.2, whose key refers to the catalog."""
    metadata = MetaData()
    Table(CTLGS.name, metadata, Column("CTLG_ID", BIGINT, primary_key=True))
    made = Table(
        CATALOG_PARAMS.name,
        metadata,
        Column("CTLG_ID", BIGINT, ForeignKey("CTLGS.CTLG_ID"), primary_key=True, autoincrement=False),
        Column("PARAM_KEY", String(180), primary_key=True),
        Column("PARAM_VALUE", String(4000)),
        mysql_engine="InnoDB",
    )
    engine = create_engine(initialized_database_url)
    made.create(engine)
    yield initialized_database_url
    made.drop(engine)
    engine.dispose()


def parameters(server: Server, name: str = "c") -> dict[str, str] | None:
    found: dict[str, str] | None = server.objects.reads.catalogs.get_catalog(name).parameters
    return found


def test_they_are_kept_changed_and_dropped(url_of_hive_4_2: str, tmp_path: Path) -> None:
    with closing(Server(url_of_hive_4_2, tmp_path)) as server:
        catalogs = server.objects.writes.catalogs
        assert parameters(server, "hive") == {}
        catalogs.create_catalog(ttypes.Catalog("C", "text", "file:/c", parameters={"type": "native", "a": "1"}))
        assert parameters(server) == {"a": "1", "type": "native"}
        catalogs.alter_catalog("c", ttypes.Catalog("c", "changed", "file:/c"))
        assert parameters(server) == {"a": "1", "type": "native"}, "clients before 4.2 send none"
        catalogs.alter_catalog("c", ttypes.Catalog("c", "", "file:/c", parameters={"type": "other", "b": "2"}))
        assert parameters(server) == {"b": "2", "type": "other"}
        assert server.objects.reads.catalogs.get_catalog("c").description == "changed"
        with server.database.writing() as connection:
            connection.execute(update(CATALOG_PARAMS).where(CATALOG_PARAMS.c.PARAM_KEY == "b").values(PARAM_VALUE=None))
            connection.commit()
        assert parameters(server) == {"type": "other"}
        catalogs.alter_catalog("c", ttypes.Catalog("c", "", "file:/c", parameters={}))
        assert parameters(server) == {}
        catalogs.alter_catalog("c", ttypes.Catalog("c", "", "file:/c", parameters={"b": "3"}))
        catalogs.drop_catalog("c")
        with server.database.loading() as connection:
            assert connection.execute(select(CATALOG_PARAMS)).all() == []


def test_a_database_without_a_place_for_them(initialized_database_url: str, tmp_path: Path) -> None:
    with closing(Server(initialized_database_url, tmp_path)) as server:
        catalogs = server.objects.writes.catalogs
        catalogs.create_catalog(ttypes.Catalog("c", "text", "file:/c", parameters={"a": "1"}))
        catalogs.alter_catalog("c", ttypes.Catalog("c", "changed", "file:/c", parameters={"a": "2"}))
        assert parameters(server) is None
        catalogs.drop_catalog("c")
