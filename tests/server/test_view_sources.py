"""A user who may read a materialized view but not its sources sees the names of the sources, and nothing else of
them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hms_cache.server.authorization.events import HIDDEN
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import Link, Serve, table
from tests.server.test_authorization import World
from tests.server.test_shown_events import events, text

SECRETS = ("salary", "file:/vault", "geheim")
"""A column, the location and a parameter of the source."""


@pytest.fixture(params=["json-0.2", "gzip(json-2.0)"])
def world(serve: Serve, tmp_path: Path, request: pytest.FixtureRequest) -> World:
    def start(**settings: Any) -> Any:
        return serve(**settings, **{"events.message_format": request.param})

    made = World(start, tmp_path / "policy.toml")
    source = table("closed", "base")
    source.sd.cols = [t.FieldSchema("salary", "int", None)]
    source.sd.location, source.parameters = "file:/vault/base", {"geheim": "1", "EXTERNAL": "TRUE"}
    source.tableType = "EXTERNAL_TABLE"
    made.root.call("create_table", tbl=source)
    stored = made.root.call("get_table", dbname="closed", tbl_name="base")
    view = table("open", "pub_view")
    view.tableType, view.viewOriginalText = "MATERIALIZED_VIEW", "SELECT count(*) FROM closed.base"
    view.viewExpandedText, view.rewriteEnabled = view.viewOriginalText, True
    view.creationMetadata = t.CreationMetadata(
        "hive", "open", "pub_view", {"closed.base"}, sourceTables=[t.SourceTable(stored, 1, 2, 3)]
    )
    made.root.call("create_table", tbl=view)
    altered = made.root.call("get_table", dbname="open", tbl_name="pub_view")
    altered.parameters = {**(altered.parameters or {}), "comment": "x"}
    made.root.call("alter_table", dbname="open", tbl_name="pub_view", new_tbl=altered)
    return made


def views(link: Link) -> list[t.Table]:
    """The view, by each method that returns it."""
    at = {"dbName": "open", "tblNames": ["pub_view"]}
    return [
        link.call("get_table", dbname="open", tbl_name="pub_view"),
        link.call("get_table_req", req=t.GetTableRequest("open", "pub_view")).table,
        *link.call("get_table_objects_by_name", dbname="open", tbl_names=["pub", "pub_view"]),
        *link.call("get_table_objects_by_name_req", req=t.GetTablesRequest(**at)).tables,
        *link.call("get_all_materialized_view_objects_for_rewriting"),
    ]


def test_of_hidden_sources_names_are_shown(world: World) -> None:
    root, ann = world.root, world.link("ann")
    for _ in range(3):  # from the database, from memory, by the bytes of the request
        for link, is_whole in ((ann, False), (root, True)):
            found = [one for one in views(link) if one.tableName == "pub_view"]
            assert len(found) == 5
            for view in found:
                [source] = view.creationMetadata.sourceTables
                assert view.creationMetadata.tablesUsed == {"closed.base"}
                assert (source.table.dbName, source.table.tableName) == ("closed", "base")
                assert (source.insertedCount, source.updatedCount, source.deletedCount) == (1, 2, 3)
                assert [secret in repr(view) for secret in SECRETS] == [is_whole] * 3
    world.allow(world.path.read_text() + '[[grants]]\nusers = ["ann"]\nactions = ["read"]\ndatabases = ["closed"]\n')
    assert all("salary" in repr(view) for view in views(ann) if view.tableName == "pub_view")


DROPS = '[[grants]]\nusers = ["kim"]\nactions = ["drop"]\ndatabases = ["closed"]\n'
READS = '[[grants]]\nusers = ["kim"]\nactions = ["read"]\ndatabases = ["open"]\ntables = ["pub_view"]\n'


@pytest.mark.parametrize(("readable", "told"), [("", "[...]"), (READS, "[open.pub_view, ...]")])
def test_a_refused_drop_names_only_views_that_may_be_read(world: World, readable: str, told: str) -> None:
    """A second view, which only root may read."""
    source = world.root.call("get_table", dbname="closed", tbl_name="base")
    view = table("closed", "other_view")
    view.tableType, view.viewOriginalText, view.viewExpandedText = "MATERIALIZED_VIEW", "SELECT 1", "SELECT 1"
    view.creationMetadata = t.CreationMetadata(
        "hive", "closed", "other_view", {"closed.base"}, sourceTables=[t.SourceTable(source, 1, 2, 3)]
    )
    world.root.call("create_table", tbl=view)
    hidden = DROPS.replace('databases = ["closed"]', 'databases = ["closed"]\ntables = ["base"]')
    world.allow(world.path.read_text() + hidden + readable)
    for method, arguments in (
        ("drop_table", {"dbname": "closed", "name": "base", "deleteData": False}),
        ("drop_table_req", {"dropTableReq": t.DropTableRequest("hive", "closed", "base")}),
    ):
        with pytest.raises(t.MetaException) as refused:
            world.link("kim").call(method, **arguments)
        assert refused.value.message.strip().endswith(f"materialized views {told}")
    with pytest.raises(t.MetaException, match=r"\[closed\.other_view, open\.pub_view\]"):
        world.root.call("drop_table", dbname="closed", name="base", deleteData=False)


def test_events_of_a_view_are_those_of_its_sources(world: World) -> None:
    """Images of the view in events contain its sources."""
    everything, shown = events(world, "hs2"), events(world, "ann")
    of_view = [one.eventId for one in everything if one.tableName == "pub_view"]
    assert len(of_view) == 2
    assert [one.eventType for one in shown if one.eventId in of_view] == [HIDDEN, HIDDEN]
    assert not [one for one in shown for secret in SECRETS if secret in text(one)]
    world.allow(world.path.read_text() + '[[grants]]\nusers = ["ann"]\nactions = ["read"]\ndatabases = ["closed"]\n')
    assert all(one.eventType != HIDDEN for one in events(world, "ann") if one.eventId in of_view)
