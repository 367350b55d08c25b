"""Hive's settings that change answers, under their names in a site file, through a whole server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hms_cache.app.service import Service
from hms_cache.config import load
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Link, Running, Serve, database, table

LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"

#: Starts a server with these properties in its site file.
SiteServe = Callable[[dict[str, str]], Link]


@pytest.fixture
def serve_site(tmp_path: Path) -> Iterator[SiteServe]:
    """A server with Hive's settings in a site file, with the database `d`."""
    stack = ExitStack()

    def start(properties: dict[str, str]) -> Link:
        site = tmp_path / "metastore-site.xml"
        lines = (
            f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items()
        )
        site.write_text(f"<configuration>{''.join(lines)}</configuration>")
        given = {
            "server.port": 0,
            "admin.port": 0,
            "database.url": f"sqlite:///{tmp_path / 'metastore.db'}",
            "warehouse.directory": str(tmp_path / "warehouse"),
        }
        service = Service(load(command_line=given, environment={}, site_files=(site,)))
        uri = service.start()
        stack.callback(service.stop)
        link = Running(service, uri, stack).link()
        link.call("create_database", database=database("d"))
        return link

    with stack:
        yield start


def test_parameters_that_partitions_inherit(serve_site: SiteServe) -> None:
    link = serve_site({"hive.metastore.partition.inherit.table.properties": "a, b"})
    link.call("create_table", tbl=table("d", "t", a="1", c="3"))
    descriptor = link.call("get_table", dbname="d", tbl_name="t").sd
    descriptor.location = None
    partition = ttypes.Partition(["x"], "d", "t", sd=descriptor, parameters={"c": "own"})
    added = link.call("add_partition", new_part=partition)
    found = link.call("get_partition", db_name="d", tbl_name="t", part_vals=["x"])
    for each in (added, found):
        assert (each.parameters["a"], each.parameters["c"]) == ("1", "own")


def test_all_parameters_are_inherited(serve_site: SiteServe) -> None:
    link = serve_site({"metastore.partition.inherit.table.properties": "*"})
    link.call("create_table", tbl=table("d", "t", a="1", c="3"))
    added = link.call("append_partition", db_name="d", tbl_name="t", part_vals=["x"])
    assert (added.parameters["a"], added.parameters["c"]) == ("1", "3")


def test_serdes_whose_tables_change_types_freely(serve_site: SiteServe) -> None:
    link = serve_site({"metastore.allow.incompatible.col.type.changes.serdes": "x,lib"})
    for name, serde in (("free", "lib"), ("bound", LAZY)):
        made = table("d", name)
        made.sd.serdeInfo.serializationLib = serde
        link.call("create_table", tbl=made)
        changed = link.call("get_table", dbname="d", tbl_name=name)
        changed.sd.cols = [ttypes.FieldSchema("a", "map<int,int>", None)]
        if name == "bound":
            with pytest.raises(ttypes.InvalidOperationException, match="types incompatible with the existing columns"):
                link.call("alter_table", dbname="d", tbl_name=name, new_tbl=changed)
        else:
            link.call("alter_table", dbname="d", tbl_name=name, new_tbl=changed)


@pytest.mark.parametrize("spelling", ["insert_only", "INSERT_ONLY"])
@pytest.mark.parametrize("check", ["true", "false"])
def test_insert_only_tables_and_clients_that_do_not_know_them(serve_site: SiteServe, check: str, spelling: str) -> None:
    """Two of the methods that return tables have no capabilities: clients of Hive 2, such as Spark's, send these."""
    link = serve_site({"metastore.client.capability.check": check})
    made = table("d", "t", transactional="true", transactional_properties="insert_only")
    link.call("create_table", tbl=made)
    made.parameters["transactional_properties"] = spelling
    link.call("alter_table", dbname="d", tbl_name="t", new_tbl=made)
    link.call("create_table", tbl=table("d", "plain"))
    able = ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES])
    stored = link.call("get_table_req", req=ttypes.GetTableRequest("d", "t", able)).table
    assert stored.parameters["transactional_properties"] == spelling
    one, several = ttypes.GetTableRequest("d", "t"), ttypes.GetTablesRequest("d", ["plain", "t"])
    requested: list[tuple[str, dict[str, object], Callable[..., list[str]]]] = [
        ("get_table", {"dbname": "d", "tbl_name": "t"}, lambda found: [found.tableName]),
        ("get_table_req", {"req": one}, lambda found: [found.table.tableName]),
        ("get_table_objects_by_name", {"dbname": "d", "tbl_names": ["plain", "t"]}, _names),
        ("get_table_objects_by_name_req", {"req": several}, lambda found: _names(found.tables)),
    ]
    for method, arguments, names in requested:
        # Twice: the second answer would come from memory.
        for _ in range(2):
            if check == "true":
                with pytest.raises(ttypes.MetaException, match="Your client does not appear to support insert-only"):
                    link.call(method, **arguments)
            else:
                assert names(link.call(method, **arguments))[-1] == "t"
    assert link.call("get_table", dbname="d", tbl_name="plain").tableName == "plain"
    assert _names(link.call("get_table_objects_by_name", dbname="d", tbl_names=["plain"])) == ["plain"]
    assert link.call("get_config_value", name="metastore.client.capability.check", defaultValue="") == check


def _names(tables: list[ttypes.Table]) -> list[str]:
    return sorted(table.tableName for table in tables)


def test_serdes_with_a_schema_of_their_own(serve_site: SiteServe) -> None:
    reader = "org.apache.hadoop.hive.metastore.DefaultStorageSchemaReader"
    link = serve_site({"metastore.storage.schema.reader.impl": reader})
    for name, serde in (("own", "org.apache.hadoop.hive.serde2.avro.AvroSerDe"), ("stored", LAZY)):
        made = table("d", name)
        made.sd.serdeInfo.serializationLib = serde
        link.call("create_table", tbl=made)
    for method in ("get_fields", "get_schema"):
        with pytest.raises(ttypes.MetaException, match="Storage schema reading not supported"):
            link.call(method, db_name="d", table_name="own")
    assert [column.name for column in link.call("get_schema", db_name="d", table_name="stored")] == ["a", "p"]
    assert link.call("get_config_value", name="metastore.storage.schema.reader.impl", defaultValue="") == reader


def test_without_those_settings(serve: Serve) -> None:
    link = serve().link()
    link.call("create_database", database=database("d"))
    link.call("create_table", tbl=table("d", "t", a="1"))
    assert [column.name for column in link.call("get_fields", db_name="d", table_name="t")] == ["a"]
    added = link.call("append_partition", db_name="d", tbl_name="t", part_vals=["x"])
    assert "a" not in added.parameters


def test_the_value_of_any_key_of_the_site_file(serve_site: SiteServe) -> None:
    link = serve_site({"hive.made.up": "x", "metastore.made.up": "y", "metastore.batch.retrieve.max": "7"})

    def value(name: str) -> str:
        answer: str = link.call("get_config_value", name=name, defaultValue="none")
        return answer

    assert [value(name) for name in ("hive.made.up", "metastore.made.up", "metastore.unheard.of")] == ["x", "y", "none"]
    assert (value("metastore.batch.retrieve.max"), value("hive.metastore.batch.retrieve.max")) == ("7", "7")
    assert value("metastore.partition.name.whitelist.pattern") == ""
    with pytest.raises(ttypes.ConfigValSecurityException):
        value("fs.defaultFS")


def test_classes_that_the_site_file_names(tmp_path: Path) -> None:
    site = tmp_path / "site.xml"
    name = "metastore.metadata.transformer.class"
    for written, meant in (("org.apache.hadoop.hive.metastore.MetastoreDefaultTransformer", "hive4"), ("  ", "off")):
        site.write_text(
            f"<configuration><property><name>{name}</name><value>{written}</value></property></configuration>"
        )
        settings = load(command_line={}, environment={}, site_files=(site,)).settings
        assert settings.catalog.metadata_translation == meant
