"""Values in directories' names by the type of their key, as Hive's metastore reads them."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.jobs.frame.key_values import java_float_text, value_reader
from hms_cache.metadata.partition_names import escape_path_name

#: Equal in Java 8 to 21.
JAVA_DOUBLES = {
    0.0: "0.0",
    1.0: "1.0",
    -12.5: "-12.5",
    0.001: "0.001",
    0.00012: "1.2E-4",
    123456.7: "123456.7",
    9999999.0: "9999999.0",
    1e7: "1.0E7",
    1.5e300: "1.5E300",
    100.0: "100.0",
    9999999.5: "9999999.5",
    -546719391.0625: "-5.467193910625E8",
    0.00099: "9.9E-4",
    1e-300: "1.0E-300",
    math.inf: "Infinity",
}
JAVA_FLOATS = {
    0.1: "0.1",
    0.10000000149011612: "0.1",
    3.4028234663852886e38: "3.4028235E38",
    1e10: "1.0E10",
    -1.5e10: "-1.5E10",
    16777216.0: "1.6777216E7",
}

READ = [
    ("int", "007", "7"),
    ("int", "-0", "0"),
    ("int", "+5", "5"),
    ("bigint", "-9223372036854775808", "-9223372036854775808"),
    ("tinyint", "300", "300"),  # as Integer.parseInt
    ("float", "1", "1.0"),
    ("double", "1e10", "1.0E10"),
    ("decimal(10,2)", "1.50", "1.5"),
    ("decimal(10,2)", "100", "100"),
    ("decimal(10,2)", "0.00", "0"),
    ("string", "007", "007"),
    ("string", "a%2Fb%3Dc", "a/b=c"),
    ("date", "2024-01-01", "2024-01-01"),
    ("boolean", "TRUE", "TRUE"),
]


@pytest.mark.parametrize(("kind", "text", "value"), READ)
def test_a_value_is_read_by_its_type(kind: str, text: str, value: str) -> None:
    assert value_reader(kind)(text) == value


@pytest.mark.parametrize("kind", ["int", "double", "decimal(3,1)", "string", "date"])
def test_the_default_partition_has_no_type(kind: str) -> None:
    assert value_reader(kind)("__HIVE_DEFAULT_PARTITION__") == "__HIVE_DEFAULT_PARTITION__"


NONE = {
    "int": ["x", "2147483648", "1.0", " 1"],
    "bigint": ["1_0"],
    "double": ["one"],
    "decimal(3,1)": ["NaN", "1e900000000"],
    "float": ["1e99"],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in NONE.items() for text in texts])
def test_what_is_no_value_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        value_reader(kind)(text)


def test_numbers_are_written_as_java_writes_them() -> None:
    assert {value: java_float_text(value) for value in JAVA_DOUBLES} == JAVA_DOUBLES
    assert java_float_text(-0.0) == "-0.0"
    assert {value: java_float_text(value, single=True) for value in JAVA_FLOATS} == JAVA_FLOATS


@given(st.floats(allow_nan=False), st.floats(width=32, allow_nan=False))
def test_a_written_number_reads_back(double: float, single: float) -> None:
    assert float(java_float_text(double)) == double
    assert struct.pack("f", float(java_float_text(single, single=True))) == struct.pack("f", single)


@given(st.text(min_size=1).filter(lambda text: "\0" not in text))
def test_an_escaped_text_is_read_as_it_was(text: str) -> None:
    assert value_reader("string")(escape_path_name(text)) == text
