"""Any table that is created is read back equal, alone and among others."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_cache.metadata.names import normalize_identifier
from hms_cache.metadata.object_names import DatabaseName
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, StoreUnderTest

_NUMBERS = itertools.count()

# The basic plane without surrogates and NUL (which PostgreSQL does not store).
TEXT = st.text(st.characters(min_codepoint=1, max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=20)
KEY = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=["Cs", "Zs"]), min_size=1, max_size=12
)
NAME = st.from_regex(r"\A[a-z_][a-z0-9_]{0,8}\Z")
IDENTIFIER = TEXT.map(normalize_identifier)
TYPE = st.sampled_from(["int", "string", "decimal(10,2)", "array<map<string,struct<a:int,b:string>>>", "varchar(5)"])
COUNT = st.integers(min_value=0, max_value=2**31 - 1)
MAP = st.dictionaries(KEY, TEXT, max_size=4)


@st.composite
def fields(draw: Any, names: list[str]) -> list[ttypes.FieldSchema]:
    return [ttypes.FieldSchema(name, draw(TYPE), draw(st.none() | TEXT)) for name in names]


@st.composite
def tables(draw: Any) -> ttypes.Table:
    names = draw(st.lists(NAME, min_size=1, max_size=6, unique=True))
    keys = draw(st.integers(min_value=0, max_value=len(names) - 1))
    columns = names[keys:]
    skewed = draw(st.lists(st.sampled_from(columns), max_size=2, unique=True))
    lists = draw(st.lists(st.lists(TEXT, min_size=1, max_size=2).map(tuple), max_size=3, unique=True)) if skewed else []
    parameters = draw(MAP) | {"transient_lastDdlTime": str(draw(COUNT)), "EXTERNAL": "TRUE"}
    return ttypes.Table(
        tableName=f"t{next(_NUMBERS)}",
        dbName="d",
        owner=draw(st.none() | TEXT),
        createTime=1_700_000_000,
        lastAccessTime=draw(COUNT),
        retention=draw(COUNT),
        sd=ttypes.StorageDescriptor(
            cols=draw(fields(columns)),
            location="file:/nowhere",
            inputFormat=draw(st.none() | TEXT),
            outputFormat=draw(st.none() | TEXT),
            compressed=draw(st.booleans()),
            numBuckets=draw(st.integers(min_value=-1, max_value=1000)),
            serdeInfo=draw(
                st.builds(
                    ttypes.SerDeInfo,
                    name=st.none() | TEXT,
                    serializationLib=st.none() | TEXT,
                    parameters=MAP.map(lambda found: dict(sorted(found.items()))),
                )
            ),
            bucketCols=draw(st.lists(TEXT, max_size=3)),
            sortCols=[ttypes.Order(name, draw(st.integers(0, 1))) for name in draw(st.lists(IDENTIFIER, max_size=3))],
            parameters=draw(MAP),
            skewedInfo=ttypes.SkewedInfo(
                skewedColNames=skewed,
                skewedColValues=[list(values) for values in lists],
                skewedColValueLocationMaps={values: draw(TEXT) for values in lists[:2]},
            ),
            storedAsSubDirectories=draw(st.booleans()),
        ),
        partitionKeys=draw(fields(names[:keys])),
        parameters=parameters,
        viewOriginalText=draw(st.none() | TEXT),
        viewExpandedText=draw(st.none() | TEXT),
        tableType="EXTERNAL_TABLE",
        temporary=None,
        rewriteEnabled=draw(st.booleans()),
        catName="hive",
        ownerType=draw(st.sampled_from([1, 2, 3])),
        writeId=0,
    )


@pytest.fixture
def warehouse_settings() -> Any:
    from hms_cache.config.sections import WarehouseSettings

    return WarehouseSettings(directory="file:/warehouse", files="leave")


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=st.lists(tables(), min_size=1, max_size=3))
def test_created_tables_read_back_equal(catalog: StoreUnderTest, sent: list[ttypes.Table]) -> None:
    for each in sent:
        catalog.store.writes.tables.create_table(each)
    for each in sent:
        found = catalog.get(each.tableName)
        each.id = found.id
        assert found == each
    names = [each.tableName for each in sent]
    assert catalog.store.reads.tables.get_tables(DatabaseName(CATALOG, "d"), names) == sent
    # Altered into one another.
    for name, each in zip(names, reversed(sent), strict=True):
        each.tableName, each.id = name, catalog.get(name).id
        if [key.name for key in each.partitionKeys] != [key.name for key in catalog.get(name).partitionKeys]:
            continue
        try:
            catalog.alter(name, each)
        except ttypes.InvalidOperationException:
            continue
        each.writeId = catalog.get(name).writeId
        assert catalog.get(name).sd == each.sd
        assert catalog.get(name).parameters == each.parameters
