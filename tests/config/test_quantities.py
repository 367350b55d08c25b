"""Times and sizes as operators write them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from hms_cache.config.quantities import (
    Words,
    finite_s,
    format_size,
    parse_duration_s,
    parse_size_bytes,
    whole_milliseconds,
    whole_seconds,
)


@pytest.mark.parametrize(
    ("text", "unit", "seconds"),
    [
        ("300s", "ms", 300),
        ("300", "s", 300),
        ("1500", "ms", 1.5),
        ("500ms", "s", 0.5),
        ("1d", "s", 86400),
        ("7D", "s", 604800),
        ("2 min", "s", 120),
        ("0.5h", "s", 1800),
        ("-1", "s", -1),
        ("inf", "s", math.inf),
    ],
)
def test_a_duration_is_read_in_its_own_unit_or_the_settings(text: str, unit: str, seconds: float) -> None:
    assert parse_duration_s(text, unit) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "1h30m", "s"])
def test_what_is_no_duration_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_duration_s(text, "s")


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("1Gb", 1024**3),
        ("100 MiB", 100 * 1024**2),
        ("104857600", 104857600),
        ("2147483647b", 2147483647),
        ("1.5k", 1536),
    ],
)
def test_a_size_is_read_with_binary_units(text: str, size_bytes: int) -> None:
    assert parse_size_bytes(text) == size_bytes


@given(st.floats(min_value=1e-3, max_value=1e9))
def test_no_time_is_shortened_by_being_made_whole(seconds: float) -> None:
    """An execution of a scheduled query with a time-out of 0.4 s had timed out as soon as it began."""
    assert 0 <= whole_seconds(seconds) - seconds < 1
    assert abs(whole_milliseconds(seconds) / 1000 - seconds) <= 0.000_501
    assert (finite_s(seconds), finite_s(math.inf), finite_s(1e18)) == (seconds, None, None)
    assert whole_seconds(math.inf) == whole_seconds(1e18) == whole_milliseconds(math.inf) / 1000


@pytest.mark.parametrize("text", ["", "lots", "1 XB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size_bytes(text)


@given(st.integers(min_value=0, max_value=2**45))
def test_a_size_written_out_reads_back(size_bytes: int) -> None:
    assert parse_size_bytes(format_size(size_bytes).replace(" bytes", "")) == size_bytes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a.*, b.c", ("a.*", "b.c")),
        ("[\"a.*\", 'b.c',]", ("a.*", "b.c")),
        ('[ "with, comma" ]', ("with, comma",)),
        ("[]", ()),
        ("[ab].[cd]", ("[ab].[cd]",)),
        ("[ab].x,[cd].y", ("[ab].x", "[cd].y")),
        ("[[ab].[cd]]", ("[[ab].[cd]]",)),
        (" , ", ()),
    ],
)
def test_words_are_a_list_or_one_text(text: str, words: tuple[str, ...]) -> None:
    assert TypeAdapter(Words).validate_python(text) == words


@pytest.mark.parametrize("text", ["[1]", '["a", 2]', '[["a"]]'])
def test_a_list_of_other_things_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Words).validate_python(text)
