"""Joins the columns of a storage descriptor and its serde into one text per row.

Thousands of partitions have descriptors that differ only in the location. Grouping them by thirteen columns takes the
server longer than reading the partitions, and reading thirteen columns per row takes this program longer. One text per
row is cheap for both: rows are grouped by it, and only distinct texts are parsed.

The text is exact. It begins with a number whose bits are flags or mark values that are NULL; the other values follow in
order. If a value contains the separator, their number does not match, and the caller reads the columns themselves.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Integer, case, literal, literal_column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Text

from hms_cache.store.schema import SDS, SERDES

_SEPARATOR: Final = "\x01"

_FLAGS: Final[tuple[ColumnElement[bool], ...]] = (
    SDS.c.IS_COMPRESSED == literal(True, SDS.c.IS_COMPRESSED.type),
    SDS.c.IS_STOREDASSUBDIRECTORIES == literal(True, SDS.c.IS_STOREDASSUBDIRECTORIES.type),
    SDS.c.SERDE_ID.is_(None),
)
_NUMBERS: Final = (SDS.c.CD_ID, SDS.c.NUM_BUCKETS, SERDES.c.SERDE_TYPE)
_TEXTS: Final = (
    SDS.c.INPUT_FORMAT,
    SDS.c.OUTPUT_FORMAT,
    SERDES.c.NAME,
    SERDES.c.SLIB,
    SERDES.c.DESCRIPTION,
    SERDES.c.SERIALIZER_CLASS,
    SERDES.c.DESERIALIZER_CLASS,
)
_VALUES: Final = (*_NUMBERS, *_TEXTS)


class _SeparatedValues(FunctionElement[str]):
    """A number and the values that are not NULL, joined by `_SEPARATOR`."""

    name = "separated_values"
    type = Text()
    inherit_cache = True


@compiles(_SeparatedValues)
def _separated_values(element: _SeparatedValues, compiler: Any, **keywords: Any) -> str:
    values = [compiler.process(one, **keywords) for one in element.clauses]
    return f"concat_ws('{_SEPARATOR}', {', '.join(values)})"


@compiles(_SeparatedValues, "sqlite")
def _separated_values_of_sqlite(element: _SeparatedValues, compiler: Any, **keywords: Any) -> str:
    """SQLite has `concat_ws` only since 3.44."""
    first, *values = [compiler.process(one, **keywords) for one in element.clauses]
    return " || ".join([f"({first})", *(f"coalesce('{_SEPARATOR}' || {value}, '')" for value in values)])


def _bits() -> ColumnElement[int]:
    conditions = [*_FLAGS, *(value.is_(None) for value in _VALUES)]
    bits: list[ColumnElement[int]] = [
        case((condition, literal_column(str(1 << bit), Integer)), else_=literal_column("0", Integer))
        for bit, condition in enumerate(conditions)
    ]
    total = bits[0]
    for one in bits[1:]:
        total = total + one
    return total


DESCRIPTOR_TEXT: Final[ColumnElement[str]] = case(
    (SDS.c.SD_ID.is_not(None), _SeparatedValues(_bits(), *_VALUES)), else_=None
)
"""To be selected from a join (outer joins) with SDS and SERDES; NULL without a row of SDS."""


def values_of_text(text: str) -> tuple[Any, ...] | None:
    """The values of `DESCRIPTOR_COLUMNS` in order; None if a value contains the separator."""
    first, *parts = text.split(_SEPARATOR)
    bits = int(first)
    compressed, sub_directories, no_serde, *absent = (bits >> bit & 1 for bit in range(len(_FLAGS) + len(_VALUES)))
    if len(parts) != len(_VALUES) - sum(absent):
        return None
    rest = iter(parts)
    values = [None if missing else next(rest) for missing in absent]
    cd_id, buckets, serde_type = (None if value is None else int(value) for value in values[: len(_NUMBERS)])
    input_format, output_format, *serde = values[len(_NUMBERS) :]
    return (
        *(cd_id, input_format, output_format, bool(compressed), bool(sub_directories), buckets, no_serde),
        *(*serde, serde_type),
    )
