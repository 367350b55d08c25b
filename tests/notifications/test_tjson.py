"""Thrift's JSON form: round trips over random structs, tolerance, agreement with the Thrift library's protocol."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.transport.TTransport import TMemoryBuffer

from hms_cache.notifications import tjson
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.notifications import samples

# Thrift strings are UTF-8: no lone surrogates.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
i32 = st.integers(-(2**31), 2**31 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
parameters = st.dictionaries(text, text, max_size=3)
field_schemas = st.builds(ttypes.FieldSchema, name=text, type=text, comment=st.none() | text)
skewed = st.builds(
    ttypes.SkewedInfo,
    skewedColNames=st.lists(text, max_size=2),
    skewedColValues=st.lists(st.lists(text, max_size=2), max_size=2),
    skewedColValueLocationMaps=st.dictionaries(st.lists(text, max_size=2).map(tuple), text, max_size=2),
)
descriptors = st.builds(
    ttypes.StorageDescriptor,
    cols=st.lists(field_schemas, max_size=3),
    location=st.none() | text,
    compressed=st.booleans(),
    numBuckets=i32,
    serdeInfo=st.none() | st.builds(ttypes.SerDeInfo, name=text, parameters=parameters),
    bucketCols=st.lists(text, max_size=2),
    sortCols=st.lists(st.builds(ttypes.Order, col=text, order=i32), max_size=2),
    parameters=parameters,
    skewedInfo=st.none() | skewed,
)
tables = st.builds(
    ttypes.Table,
    tableName=text,
    dbName=text,
    createTime=i32,
    sd=st.none() | descriptors,
    partitionKeys=st.lists(field_schemas, max_size=2),
    parameters=parameters,
    writeId=i64,
    temporary=st.booleans(),
)
doubles = st.builds(ttypes.DoubleColumnStatsData, lowValue=st.floats(allow_nan=False), numNulls=i64, numDVs=i64)
longs = st.builds(ttypes.LongColumnStatsData, lowValue=i64, numNulls=i64, numDVs=i64, bitVectors=st.binary(max_size=9))


@given(tables | doubles | longs)
def test_reading_gives_what_was_written(struct: Any) -> None:
    assert tjson.read_struct(tjson.write_struct(struct), type(struct)) == struct


@given(longs | doubles | descriptors.filter(lambda sd: not sd.skewedInfo))
def test_library_reads_ours(struct: Any) -> None:
    back = type(struct)()
    back.read(TJSONProtocol(TMemoryBuffer(tjson.write_struct(struct).encode())))
    assert back == struct


@given(longs | descriptors.filter(lambda sd: not sd.skewedInfo))
def test_ours_reads_the_library_s(struct: Any) -> None:
    buffer = TMemoryBuffer()
    struct.write(TJSONProtocol(buffer))
    assert tjson.read_struct(buffer.getvalue().decode(), type(struct)) == struct


def test_form_is_java_s() -> None:
    number = ttypes.LongColumnStatsData(lowValue=-5, numNulls=1, numDVs=2, bitVectors=b"\x01\x02\xff\x04")
    assert tjson.write_struct(number) == '{"1":{"i64":-5},"3":{"i64":1},"4":{"i64":2},"5":{"str":"AQL/BA"}}'
    odd = ttypes.DoubleColumnStatsData(lowValue=-math.inf, highValue=math.nan, numNulls=0, numDVs=0)
    assert '"1":{"dbl":"-Infinity"},"2":{"dbl":"NaN"}' in tjson.write_struct(odd)
    assert math.isnan(tjson.read_struct(tjson.write_struct(odd), ttypes.DoubleColumnStatsData).highValue)
    serde = ttypes.SerDeInfo("é/\x01", None, {"b": "2", "a": "1"})
    assert tjson.write_struct(serde) == '{"1":{"str":"é/\\u0001"},"3":{"map":["str","str",2,{"a":"1","b":"2"}]}}'


def test_list_as_map_key_stands_bare() -> None:
    # Java writes the key without quotes, which no JSON parser accepts.
    info = ttypes.SkewedInfo(["c"], [["1"], ["2"]], {("1", 'x"'): "l1", ("2",): "l2"})
    written = tjson.write_struct(info)
    assert '{["str",2,"1","x\\""]:"l1",["str",1,"2"]:"l2"}' in written
    with pytest.raises(ValueError):
        json.loads(written)
    assert tjson.read_struct(written, ttypes.SkewedInfo) == info
    spread = written.replace(",", " ,\n ").replace(":", " : ")
    assert tjson.read_struct(spread.replace("x", "x"), ttypes.SkewedInfo) == info
    with pytest.raises(tjson.TJsonError):
        tjson.read_struct(written[:-1], ttypes.SkewedInfo)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('{"1":{"str":"t"},"999":{"rec":{"1":{"str":"new"}}}}', ttypes.Table(tableName="t")),
        ('{"4":{"i32":"17"},"5":{"i64":3}}', ttypes.Table(createTime=17, lastAccessTime=3)),
        ('{"4":{"i32":99999999999},"1":{"str":"t"}}', ttypes.Table(tableName="t")),
        ('{"4":{"str":"soon"},"1":{"str":"t"}}', ttypes.Table(tableName="t")),
        ('{"1":{"i32":5}}', ttypes.Table(tableName="5")),
        ('{"14":{"tf":1}}', ttypes.Table(temporary=True)),
        ('{"14":{"tf":"true"}}', ttypes.Table(temporary=True)),
        ('{"9":{"map":["str","str",0,{}]}}', ttypes.Table(parameters={})),
        ('{"9":{"map":[]},"7":{"rec":3},"8":{"lst":0},"1":7}', ttypes.Table()),
        ('{"1":{"str":"\\ud83d\\ude00\\/"}}', ttypes.Table(tableName="😀/")),
        ('{"1":{"str":"a\x01\tb"}}', ttypes.Table(tableName="a\x01\tb")),
    ],
)
def test_reading_is_tolerant(written: str, expected: ttypes.Table) -> None:
    assert tjson.read_struct(written, ttypes.Table) == expected


@pytest.mark.parametrize("padded", ["AQL/BA==", "AQL/BA=", "AQL/BA"])
def test_base64_with_and_without_padding(padded: str) -> None:
    read = tjson.read_struct(f'{{"5":{{"str":"{padded}"}}}}', ttypes.LongColumnStatsData)
    assert read.bitVectors == b"\x01\x02\xff\x04"


@pytest.mark.parametrize("damaged", ["", "[", "null", "7", '["rec"]', "{", '{"1":}', "{" * 100_000, "[" * 100_000])
def test_damage_is_one_kind_of_error(damaged: str) -> None:
    with pytest.raises(tjson.TJsonError):
        tjson.read_struct(damaged, ttypes.Table)


def test_samples_survive() -> None:
    for struct in (samples.table(), samples.partition("1", "x"), samples.database(), samples.statistics()):
        assert tjson.read_struct(tjson.write_struct(struct), type(struct)) == struct


def test_one_field_without_the_rest() -> None:
    written = tjson.write_struct(samples.partition("1", "x"))
    assert tjson.parse_field(written, 1) == {"lst": ["str", 2, "1", "x"]}
    assert tjson.parse_field(written, 9) == {"str": "hive"}
    assert tjson.parse_field('{"1":{"str":"a"},damaged', 1) == {"str": "a"}
    with pytest.raises(KeyError):
        tjson.parse_field(written, 99)
    for damaged in ('{"1":', "[1]", ""):
        with pytest.raises(tjson.TJsonError):
            tjson.parse_field(damaged, 1)
