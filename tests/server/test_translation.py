"""Metadata translation through a whole server, and the call that only returns its effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Serve, database, table


def request(name: str, **capabilities: list[str]) -> ttypes.CreateTableRequest:
    return ttypes.CreateTableRequest(table=table("d", name), **capabilities)


def test_without_translation_a_table_stays_as_it_is(serve: Serve) -> None:
    link = serve().link()
    link.call("create_database", database=database("d"))
    answer = link.call("translate_table_dryrun", request=request("t"))
    assert (answer.tableType, answer.catName, answer.sd.location) == ("MANAGED_TABLE", "hive", None)
    with pytest.raises(ttypes.NoSuchObjectException):
        link.call("get_table_req", req=ttypes.GetTableRequest("d", "t"))
    link.call("create_table_req", request=request("t"))
    requested = ttypes.GetTableRequest("d", "t", processorCapabilities=["EXTREAD"])
    found = link.call("get_table_req", req=requested).table
    assert (found.tableType, found.accessType) == ("MANAGED_TABLE", None)


def test_with_translation(serve: Serve, tmp_path: Path) -> None:
    external = str(tmp_path / "external")
    link = serve(**{"catalog.metadata_translation": "hive4", "warehouse.external_directory": external}).link()
    link.call("create_database", database=database("d"))
    dry = link.call("translate_table_dryrun", request=request("t"))
    assert (dry.tableType, dry.sd.location) == ("EXTERNAL_TABLE", f"file:{external}/d.db/t")
    with pytest.raises(ttypes.MetaException, match="Database e for table t could not be found"):
        link.call("translate_table_dryrun", request=ttypes.CreateTableRequest(table=table("e", "t")))
    link.call("create_table_req", request=request("t"))
    requested = ttypes.GetTableRequest("d", "t", processorCapabilities=["EXTREAD"])
    for _ in range(3):
        found = link.call("get_table_req", req=requested).table
        assert (found.tableType, found.accessType, found.requiredWriteCapabilities) == (
            "EXTERNAL_TABLE",
            2,
            ["EXTWRITE"],
        )
        assert found.parameters["TRANSLATED_TO_EXTERNAL"] == "TRUE"
        assert link.call("get_table", dbname="d", tbl_name="t").accessType is None
    acid = table("d", "a", transactional="true")
    acid.sd.inputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
    acid.sd.outputFormat = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
    with pytest.raises(ttypes.MetaException, match="Processor has no capabilities, cannot create an ACID table"):
        link.call("create_table", tbl=acid)
    link.call("create_table_req", request=ttypes.CreateTableRequest(acid, processorCapabilities=["HIVEFULLACIDWRITE"]))
    extended = ttypes.GetTablesExtRequest("hive", "d", "*", 3, processorCapabilities=["EXTREAD"])
    answers = link.call("get_tables_ext", req=extended)
    assert [(each.tblName, each.accessType) for each in answers] == [("a", 1), ("t", 2)]
    assert answers[1].requiredWriteCapabilities == ["EXTWRITE"]

    bucketed = ttypes.Partition(["1"], "d", "t", sd=found.sd)
    bucketed.sd.numBuckets, bucketed.sd.location = 4, None
    link.call("add_partition", new_part=bucketed)
    by_names = ttypes.GetPartitionsByNamesRequest("d", "t", ["p=1"], processorCapabilities=["EXTREAD"])
    partitions = link.call("get_partitions_by_names_req", req=by_names).partitions
    assert [each.sd.numBuckets for each in partitions] == [-1]
    by_names.processorCapabilities = ["HIVEBUCKET2"]
    partitions = link.call("get_partitions_by_names_req", req=by_names).partitions
    assert [each.sd.numBuckets for each in partitions] == [4]
    assert link.call("get_config_value", name="metastore.metadata.transformer.class", defaultValue="").endswith(
        "MetastoreDefaultTransformer"
    )


def test_parameters_of_several_tables_at_once(serve: Serve) -> None:
    link = serve().link()
    link.call("create_database", database=database("d"))
    for name in ("t", "u"):
        link.call("create_table", tbl=table("d", name, a="1"))
    updates = [ttypes.TableParamsUpdate(None, "@hive#d", name, {"a": "2"}, "a", "1") for name in ("t", "u")]
    link.call("update_table_params", updates=updates)
    assert [link.call("get_table", dbname="d", tbl_name=name).parameters["a"] for name in ("t", "u")] == ["2", "2"]
    with pytest.raises(ttypes.MetaException, match="The table has been modified"):
        link.call("update_table_params", updates=updates)
    updates = [ttypes.TableParamsUpdate("hive", "d", "x", {"a": "2"})]
    with pytest.raises(ttypes.MetaException, match=r"hive\.d\.x table not found"):
        link.call("update_table_params", updates=updates)


def test_the_default_database_lies_where_external_tables_do(serve: Serve, tmp_path: Path) -> None:
    link = serve(**{"warehouse.external_directory": str(tmp_path / "external")}).link()
    assert link.call("get_database", name="default").locationUri == f"file:{tmp_path / 'external'}"
    link.call("create_table", tbl=table("default", "t"))
    assert link.call("get_table", dbname="default", tbl_name="t").sd.location == f"file:{tmp_path / 'warehouse' / 't'}"
