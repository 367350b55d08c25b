"""Contract: which tables may be transactional (`TransactionalValidationListener`)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hms_cache.config import Settings
from hms_cache.config.sections import CatalogSettings
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import StoreUnderTest, external, table

INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}


def parquet(**parameters: str) -> ttypes.Table:
    """A Parquet table with these parameters."""
    made = table()
    made.parameters = parameters
    return made


def shown(found: ttypes.Table) -> dict[str, str]:
    return {key: value for key, value in found.parameters.items() if key.lower().startswith("transactional")}


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (table(parameters={"transactional": "TRUE"}), {"transactional": "true", "transactional_properties": "default"}),
        (table(parameters={"TRANSACTIONAL": "true", "transactional": "true"}), None),
        (parquet(**INSERT_ONLY), INSERT_ONLY),
        (parquet(transactional="true", transactional_properties="Insert_Only"), INSERT_ONLY),
        (parquet(transactional="false"), {}),
        (table(tableType="EXTERNAL_TABLE", parameters=INSERT_ONLY), INSERT_ONLY),  # managed: the parameter decides
        (parquet(transactional_properties="insert_only"), {"transactional_properties": "insert_only"}),
    ],
)
def test_created(catalog: StoreUnderTest, sent: ttypes.Table, stored: dict[str, str] | None) -> None:
    catalog.store.writes.tables.create_table(sent)
    expected = {"transactional": "true", "transactional_properties": "default"} if stored is None else stored
    assert shown(catalog.get()) == expected


def sorted_table() -> ttypes.Table:
    made = table(parameters={"transactional": "true"})
    made.sd.sortCols = [ttypes.Order("id", 1)]
    return made


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (parquet(transactional="true"), "The table must be stored using an ACID compliant format (such as ORC): d.t"),
        (parquet(transactional="yes"), "'transactional' property of TBLPROPERTIES may only have value 'true': d.t"),
        (external(parameters=INSERT_ONLY), "d.t cannot be declared transactional because it's an external table"),
        (
            table(tableType="MANAGED_TABLE", parameters={**INSERT_ONLY, "EXTERNAL": "TRUE"}),
            "d.t cannot be declared transactional because it's an external table",
        ),
        (
            table(parameters={"transactional": "true", "transactional_properties": "x"}),
            "Invalid transactional properties specified for d.t with the error unknown value x",
        ),
        (sorted_table(), "Table d.t cannot support full ACID functionality since it is sorted."),
    ],
)
def test_refused(catalog: StoreUnderTest, sent: ttypes.Table, text: str) -> None:
    with pytest.raises(ttypes.MetaException) as raised:
        catalog.store.writes.tables.create_table(sent)
    assert text in raised.value.message
    assert catalog.files() == ["d.db"]


@pytest.mark.parametrize("keys", [None, [("dt", "string")]])
@pytest.mark.parametrize(
    ("files", "is_taken"),
    [
        ([], True),
        (["000000_0", "000001_0", "000000_0_copy_1", "HIVE_UNION_SUBDIR_1/000000_0"], True),
        ([".hidden", "_SUCCESS", "_temporary/part-0.orc"], True),
        (["000000_0", "part-00000-5a1e.c000.snappy.orc"], False),
        (["sub/deep/data.orc"], False),
        (["000000_0.orc"], False),
    ],
)
def test_only_a_table_with_files_of_hives_becomes_transactional(
    catalog: StoreUnderTest, files: list[str], is_taken: bool, keys: list[tuple[str, str]] | None
) -> None:
    """The compactor would lose the rows of other files: the bucket is in the name."""
    orc = "org.apache.hadoop.hive.ql.io.orc"
    sent = table(keys=keys or [])
    sent.sd.inputFormat, sent.sd.outputFormat = f"{orc}.OrcInputFormat", f"{orc}.OrcOutputFormat"
    catalog.store.writes.tables.create_table(sent)
    found = catalog.get()
    place = catalog.path(found.sd.location)
    if keys:
        catalog.add_partitions("t", ("1",), ("2",))
        place = place / "dt=2"
    for name in files:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x")
    wanted: Any = copy.deepcopy(found)
    wanted.parameters["transactional"] = "true"
    if is_taken:
        catalog.alter("t", wanted)
        assert shown(catalog.get()) == {"transactional": "true", "transactional_properties": "default"}
        return
    before = catalog.events()
    with pytest.raises(ttypes.MetaException) as raised:
        catalog.alter("t", wanted)
    assert raised.value.message == (
        f"Unexpected data file name format.  Cannot convert d.t to transactional table.  File: file:{place}/{files[-1]}"
    )
    assert (catalog.get(), catalog.events()) == (found, before)
    wanted.parameters["transactional_properties"] = "insert_only"
    catalog.alter("t", wanted)  # such tables have no buckets in the names of their files
    assert shown(catalog.get()) == INSERT_ONLY


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (INSERT_ONLY, {}, None),
        ({"transactional": "true"}, {"transactional": "false", "k": "v"}, "cannot be unset: d.t"),
        ({"transactional": "true"}, {"k": "v"}, "cannot be unset: d.t"),
        ({"transactional": "true"}, {**INSERT_ONLY}, "'transactional_properties' cannot be altered"),
        ({"transactional": "true"}, {"transactional": "TRUE", "transactional_properties": "default"}, None),
        ({"transactional": "true"}, {"transactional": "true", "EXTERNAL": "TRUE"}, "cannot be converted to external"),
        ({"k": "v"}, {"transactional": "true"}, "must be stored using an ACID compliant format"),
        ({"k": "v"}, INSERT_ONLY, None),
        ({"k": "v"}, {"transactional": "junk"}, "cannot be unset"),
        ({"k": "v"}, {"transactional": "false"}, None),
    ],
)
def test_altered(catalog: StoreUnderTest, old: dict[str, str], new: dict[str, str], text: str | None) -> None:
    found = catalog.create_table(parameters=old)
    wanted: Any = copy.deepcopy(found)
    wanted.parameters = dict(new)
    if text is None:
        catalog.alter("t", wanted)
        return
    with pytest.raises(ttypes.MetaException) as raised:
        catalog.alter("t", wanted)
    assert text in raised.value.message
    assert catalog.get() == found


class TestFormatsOfTheSite:
    """Those that `catalog.acid_formats` names besides ORC's."""

    FORMATS = ("com.example.InputFormat", "com.example.OutputFormat")

    @pytest.fixture
    def store_settings(self) -> Settings:
        orc = CatalogSettings().acid_formats
        return Settings(catalog=CatalogSettings(acid_formats=(*orc, *self.FORMATS)))

    @pytest.mark.parametrize("parameters", [{"transactional": "true"}, {"k": "v"}], ids=["created", "altered"])
    def test_they_may_be_transactional(self, catalog: StoreUnderTest, parameters: dict[str, str]) -> None:
        sent = parquet(**parameters)
        sent.sd.inputFormat, sent.sd.outputFormat = self.FORMATS
        catalog.store.writes.tables.create_table(sent)
        found = copy.deepcopy(catalog.get())
        found.parameters["transactional"] = "true"
        catalog.alter("t", found)
        assert shown(catalog.get())["transactional"] == "true"

    def test_one_of_both_is_not_enough(self, catalog: StoreUnderTest) -> None:
        sent = parquet(transactional="true")
        sent.sd.inputFormat = self.FORMATS[0]
        with pytest.raises(ttypes.MetaException, match="must be stored using an ACID compliant format"):
            catalog.store.writes.tables.create_table(sent)
