"""Thrift structs in JSON (``TJSONProtocol``), as Hive embeds them in event messages.

Fields are keyed by number, and each value has a type tag: ``{"1":{"str":"t"},"8":{"lst":["rec",1,{…}]}}``. The
library's own protocol reads one character at a time; this module uses the C JSON parser and walks the result along the
class's ``thrift_spec``.

Reading is tolerant: unknown field numbers (of newer writers) are skipped; a field of another type is converted if that
is harmless (a number written as a string, an ``i32`` for an ``i64``) and otherwise skipped; base64 may be padded or not
(Java omits the padding, other writers do not); control characters may be unescaped. Writing gives the output of Java's
``TJSONProtocol``: no blanks, UTF-8 unescaped, base64 without padding, non-finite numbers as strings.
"""

from __future__ import annotations

import binascii
import json
import math
import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.encoder import encode_basestring
from typing import Any, TypeVar

from thrift.Thrift import TType

_Struct = TypeVar("_Struct")

_quote: Callable[[str], str] = encode_basestring

_TAGS = {
    TType.BOOL: "tf",
    TType.BYTE: "i8",
    TType.I16: "i16",
    TType.I32: "i32",
    TType.I64: "i64",
    TType.DOUBLE: "dbl",
    TType.STRING: "str",
    TType.STRUCT: "rec",
    TType.MAP: "map",
    TType.LIST: "lst",
    TType.SET: "set",
}
_WIDTHS = {TType.BYTE: 8, TType.I16: 16, TType.I32: 32, TType.I64: 64}


class TJsonError(ValueError):
    """The text is not a Thrift struct in JSON."""


class _Mismatch(Exception):
    """A value cannot be converted to the field's type; the field is skipped."""


_Convert = Callable[[Any], Any]
_Render = Callable[[Any], str]


# ---- reading --------------------------------------------------------------------------------------------------------


def read_struct(text: str, struct_class: type[_Struct]) -> _Struct:
    """Decodes the struct in ``text``.

    Raises ``TJsonError`` if the text is not a JSON object. Fields that are missing or cannot be decoded keep their
    defaults.
    """
    try:
        return struct_from_fields(parse(text), struct_class)
    except _Mismatch as error:
        raise TJsonError(f"not a struct of class {struct_class.__name__}") from error


def parse(text: str) -> Any:
    """Parses the text to plain Python values, for readers that need only a few fields.

    Raises ``TJsonError``. A map whose keys are lists (``SkewedInfo.skewedColValueLocationMaps``) is written with the
    bare list as the key, which is not JSON: such text is parsed by a slower method and has tuples as keys.
    """
    try:
        return json.loads(text, strict=False)
    except RecursionError as error:
        raise TJsonError("nested too deep") from error
    except ValueError:
        try:
            return _parse_with_container_keys(text)
        except (ValueError, TypeError, IndexError, RecursionError) as error:
            raise TJsonError(f"neither JSON nor Thrift's form of it: {error}") from error


_DECODER = json.JSONDecoder(strict=False)


def parse_field(text: str, number: int) -> Any:
    """The tagged value of one field. Fast if it is the first one, as field 1 is for all writers.

    Raises ``TJsonError``, or ``KeyError`` if the struct does not have the field.
    """
    head = f'{{"{number}":'
    if text.startswith(head):
        try:
            return _DECODER.raw_decode(text, len(head))[0]
        except (ValueError, RecursionError):
            pass  # the slow method raises the error
    fields = parse(text)
    if not isinstance(fields, dict):
        raise TJsonError("not a struct")
    return fields[str(number)]


_BLANKS = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?|true|false|null")


def _parse_with_container_keys(text: str) -> Any:
    value, end = _parse_value(text, _skip(text, 0))
    if _skip(text, end) != len(text):
        raise ValueError(f"more text after the end, at {end}")
    return value


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _parse_value(text: str, at: int) -> tuple[Any, int]:
    first = text[at]
    if first == '"':
        string: tuple[str, int] = scanstring(text, at + 1, False)
        return string
    if first == "[":
        return _parse_items(text, at, "]", _parse_value, list)
    if first == "{":
        return _parse_items(text, at, "}", _parse_entry, dict)
    scalar = _SCALAR.match(text, at)
    if scalar is None:
        raise ValueError(f"unexpected {first!r} at {at}")
    return json.loads(scalar.group()), scalar.end()


def _parse_entry(text: str, at: int) -> tuple[tuple[Any, Any], int]:
    key, end = _parse_value(text, at)
    end = _skip(text, end)
    if text[end] != ":" or isinstance(key, dict):
        raise ValueError(f"no key and value at {at}")
    value, end = _parse_value(text, _skip(text, end + 1))
    return (_hashable(key), value), end


def _hashable(key: Any) -> Any:
    return tuple(_hashable(element) for element in key) if isinstance(key, list) else key


def _parse_items(
    text: str, at: int, close: str, parse_item: Callable[[str, int], tuple[Any, int]], build: Callable[[list[Any]], Any]
) -> tuple[Any, int]:
    items: list[Any] = []
    at = _skip(text, at + 1)
    while text[at] != close:
        if items:
            if text[at] != ",":
                raise ValueError(f"expected a comma at {at}")
            at = _skip(text, at + 1)
        item, at = parse_item(text, at)
        items.append(item)
        at = _skip(text, at)
    return build(items), at + 1


def struct_from_fields(fields: Any, struct_class: type[_Struct]) -> _Struct:
    """Decodes a struct from parsed text."""
    if not isinstance(fields, dict):
        raise _Mismatch
    values: dict[str, Any] = {}
    converters = _converters_of(struct_class)
    for number, tagged in fields.items():
        known = converters.get(number)
        if known is None or not isinstance(tagged, dict):
            continue
        name, convert = known
        try:
            values[name] = convert(next(iter(tagged.values()), None))
        except _Mismatch:
            continue
    return struct_class(**values)


_CONVERTERS: dict[type[Any], dict[str, tuple[str, _Convert]]] = {}


def _converters_of(struct_class: type[Any]) -> dict[str, tuple[str, _Convert]]:
    known = _CONVERTERS.get(struct_class)
    if known is None:
        known = _CONVERTERS[struct_class] = {}  # added first, since some structs contain themselves
        for spec in struct_class.thrift_spec:
            if spec is not None:
                known[str(spec[0])] = (spec[2], _converter(spec[1], spec[3]))
    return known


def _converter(type_id: int, arguments: Any) -> _Convert:
    if type_id == TType.STRING:
        return _to_bytes if arguments == "BINARY" else _to_text
    if type_id == TType.STRUCT:
        struct_class = arguments[0]
        return lambda value: struct_from_fields(value, struct_class)
    if type_id == TType.LIST:
        return _list_converter(_converter(arguments[0], arguments[1]))
    if type_id == TType.SET:
        as_list = _list_converter(_converter(arguments[0], arguments[1]))
        return lambda value: set(as_list(value))
    if type_id == TType.MAP:
        return _map_converter(_converter(arguments[0], arguments[1]), _converter(arguments[2], arguments[3]))
    if type_id == TType.BOOL:
        return _to_bool
    if type_id == TType.DOUBLE:
        return _to_float
    return _integer_converter(_WIDTHS[type_id])


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return json.dumps(value)
    raise _Mismatch


def _to_bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise _Mismatch
    try:
        return binascii.a2b_base64(value.rstrip("=") + "=" * (-len(value.rstrip("=")) % 4))
    except (binascii.Error, ValueError) as error:
        raise _Mismatch from error


def _to_bool(value: Any) -> bool:
    if isinstance(value, (bool, int, float)):
        return bool(value)
    if isinstance(value, str) and value.lower() in ("0", "1", "true", "false"):
        return value.lower() in ("1", "true")
    raise _Mismatch


def _to_float(value: Any) -> float:
    if isinstance(value, (int, float, str)):
        try:
            return float(value)
        except (ValueError, OverflowError) as error:
            raise _Mismatch from error
    raise _Mismatch


def _integer_converter(width: int) -> _Convert:
    limit = 1 << (width - 1)

    def to_integer(value: Any) -> int:
        try:
            number = int(value) if isinstance(value, (int, float, str)) else None
        except (ValueError, OverflowError) as error:
            raise _Mismatch from error
        if number is None or not -limit <= number < limit:
            raise _Mismatch
        return number

    return to_integer


def _list_converter(convert: _Convert) -> _Convert:
    def to_list(value: Any) -> list[Any]:
        # ["tag", count, element, …]
        if not isinstance(value, (list, tuple)) or len(value) < 2:
            raise _Mismatch
        return [convert(element) for element in value[2:]]

    return to_list


def _map_converter(convert_key: _Convert, convert_value: _Convert) -> _Convert:
    def to_map(value: Any) -> dict[Any, Any]:
        # ["key tag", "value tag", count, {…}]
        if not isinstance(value, list) or len(value) != 4 or not isinstance(value[3], dict):
            raise _Mismatch
        return {_hashable(convert_key(key)): convert_value(item) for key, item in value[3].items()}

    return to_map


# ---- writing --------------------------------------------------------------------------------------------------------


def write_struct(struct: Any) -> str:
    """The struct as text. Fields that are ``None`` are omitted; others are written in order of their numbers."""
    return _render_struct(struct, _renderers_of(type(struct)))


_RENDERERS: dict[type[Any], list[tuple[str, str, _Render]]] = {}


def _renderers_of(struct_class: type[Any]) -> list[tuple[str, str, _Render]]:
    known = _RENDERERS.get(struct_class)
    if known is None:
        known = _RENDERERS[struct_class] = []
        for spec in struct_class.thrift_spec:
            if spec is not None:
                known.append((spec[2], f'"{spec[0]}":{{"{_TAGS[spec[1]]}":', _renderer(spec[1], spec[3])))
    return known


def _render_struct(struct: Any, renderers: list[tuple[str, str, _Render]]) -> str:
    parts = []
    for name, head, render in renderers:
        value = getattr(struct, name)
        if value is not None:
            parts.append(f"{head}{render(value)}}}")
    return "{" + ",".join(parts) + "}"


def _renderer(type_id: int, arguments: Any) -> _Render:
    if type_id == TType.STRING:
        return _render_bytes if arguments == "BINARY" else _quote
    if type_id == TType.STRUCT:
        renderers = _renderers_of(arguments[0])
        return lambda value: _render_struct(value, renderers)
    if type_id in (TType.LIST, TType.SET):
        return _sequence_renderer(_TAGS[arguments[0]], _renderer(arguments[0], arguments[1]), type_id == TType.SET)
    if type_id == TType.MAP:
        return _map_renderer(arguments)
    if type_id == TType.BOOL:
        return lambda value: "1" if value else "0"
    if type_id == TType.DOUBLE:
        return _render_float
    return str


def _render_bytes(value: bytes | str) -> str:
    raw = value.encode() if isinstance(value, str) else value
    return '"' + binascii.b2a_base64(raw, newline=False).decode("ascii").rstrip("=") + '"'


def _render_float(value: float) -> str:
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(float(value))


def _sequence_renderer(tag: str, render: _Render, ordered: bool) -> _Render:
    head = f'["{tag}",'

    def render_sequence(value: Any) -> str:
        elements = [render(element) for element in value]
        if ordered:
            elements.sort()  # sets are unordered, and equal structs must give equal texts
        return ",".join([f"{head}{len(elements)}", *elements]) + "]"

    return render_sequence


def _map_renderer(arguments: Any) -> _Render:
    key_type, key_arguments, value_type, value_arguments = arguments[:4]
    head = f'["{_TAGS[key_type]}","{_TAGS[value_type]}",'
    render_key = _renderer(key_type, key_arguments)
    render_value = _renderer(value_type, value_arguments)
    quoted = '"' if key_type not in (TType.STRING, TType.STRUCT, TType.LIST, TType.SET, TType.MAP) else ""

    def render_map(value: dict[Any, Any]) -> str:
        entries = []
        for key in sorted(value):
            # Numbers as keys are quoted; a list as a key is not, as in Java, although JSON does not allow it.
            entries.append(f"{quoted}{render_key(key)}{quoted}:{render_value(value[key])}")
        return f"{head}{len(entries)},{{" + ",".join(entries) + "}]"

    return render_map
