"""Reads the object graphs that Hive writes with Kryo, as plain records: no class is ever loaded or made.

Kryo writes no field names and no lengths: who reads must know of every class which fields it has and how they are
written. `kryo_classes.tsv` says so for the classes that partition expressions are made of, of Hive 4.0, 3.1 and 2.3
(made by a program that asks the Kryo of each Hive; a test compares). A class beyond it ends the reading.

What the three have in common:

* A polymorphic value begins with its class: 0 for null, 1 and an index of the classes named so far (followed at first
  use by the name), or the id of a registered class and 2.
* Every object but the wrappers of numbers (and, with Kryo 5, enum constants) is then marked: 0 null, 1 new, or the
  number of an earlier object and 2. Objects are numbered as they begin.
* Integers are variable-length, zigzag where they may be negative. A text is either ASCII with the high bit set in its
  last byte, or its length in UTF-16 units and their bytes.

Hive 4 has Kryo 5 and writes the class of the root; Hive 2.3 and 3.1 have Kryo 3 and do not. Kryo 5 writes fixed-size
numbers with the low byte first, Kryo 3 with the high byte first; lists differ too.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from decimal import Decimal
from types import GeneratorType
from typing import Any, TypeAlias, TypeVar, cast

from hms_cache.expressions.kryo_classes import Dialect, KryoClass, dialects
from hms_cache.input_limits import exceeded, input_limits
from hms_cache.values import frozen

MAX_DEPTH = 20_000
"""Deepest nesting of objects, of which the reader keeps a kilobyte each. A function is two deep (itself and its list of
arguments). Hive's optimizer writes n conditions in OR or AND as n - 1 functions in each other."""

_ELEMENT_BYTES = 40
"""Of an element of a list or a field: its place, and what stands there if it is small."""
_OBJECT_BYTES = 400
"""Of an object: itself and the dictionary of its fields."""

_EXPRESSION_CLASS = "org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc"
_WRAPPERS = frozenset(
    f"java.lang.{name}" for name in ("Integer", "Float", "Boolean", "Byte", "Character", "Short", "Long", "Double")
)
_INSPECTORS = "org.apache.hadoop.hive.serde2.objectinspector."
_POLYMORPHIC_ARRAYS = frozenset(
    f"[L{name};"
    for name in (
        "java.lang.Object",
        _INSPECTORS + "ObjectInspector",
        _INSPECTORS + "PrimitiveObjectInspector",
        _INSPECTORS + "ObjectInspectorConverters$Converter",
    )
)


class KryoError(ValueError):
    """Bytes that are not such a graph, or hold what is not known here."""


class _TooManyObjects(KryoError):
    """Read in this dialect, the data stands for more than the budget allows; another one may read it otherwise."""


@dataclass(slots=True, eq=False)
class KryoObject:
    """An object of a Java class: its fields by name. Equal only to itself; graphs may share objects and have cycles."""

    class_name: str
    fields: dict[str, Value] = field(default_factory=dict)


@frozen
class EnumConstant:
    """A constant of a Java enum, by its position."""

    class_name: str
    ordinal: int


@frozen
class LocalMoment:
    """A java.sql.Date or Timestamp: milliseconds since 1970-01-01 UTC of a local time in an unknown zone."""

    class_name: str
    milliseconds: int
    nanoseconds: int = 0


Value: TypeAlias = (
    bool | int | float | str | bytes | Decimal | datetime.date | datetime.time | datetime.datetime
    | list[Any] | dict[Any, Any] | KryoObject | EnumConstant | LocalMoment | None
)  # fmt: skip

Translated = TypeVar("Translated")

Reading: TypeAlias = Generator["Reading", Value, Value]
"""Reads something that holds others: yields the reading of each of these in turn, is sent what that found, and returns
what it has read. Readings that call each other would be as deep on the interpreter's stack as the data is."""


def read_expression(data: bytes, translate: Callable[[KryoObject], Translated]) -> Translated:
    """What `translate` makes of the root object of a serialized expression, in whichever Hive's dialect reads it to the
    last byte.

    The objects are taken apart afterwards: those that hold each other would stay until the collector of cycles comes
    by, which is rare. Raises `KryoError` if no dialect reads it, and whatever `translate` does.
    """
    max_bytes = input_limits().expression_bytes
    if len(data) > max_bytes:
        told = exceeded("expression_bytes")
        raise KryoError(f"the expression has {len(data)} bytes, {max_bytes} are allowed ({told})")
    failures: list[str] = []
    is_too_large = False
    for dialect in dialects():
        reader = KryoReader(data, dialect)
        try:
            try:
                root = reader.read_root()
            except (KryoError, RecursionError) as error:
                failures.append(f"Hive {dialect.hive}: {error}")
                is_too_large |= isinstance(error, _TooManyObjects)
                continue
            return translate(root)
        finally:
            reader.take_apart()
    if is_too_large:
        failures.append(exceeded("expression_memory_bytes"))
    raise KryoError("; ".join(failures))


class KryoReader:
    """Reads one graph. Not reusable."""

    def __init__(self, data: bytes, dialect: Dialect) -> None:
        self._data = data
        self._position = 0
        self._dialect = dialect
        self._classes = dialect.classes
        self._names: list[str] = []
        self._objects: list[Value] = []
        self._free_bytes = self._max_bytes = input_limits().expression_memory_bytes
        self._order = "<" if dialect.kryo_5 else ">"

    def read_root(self) -> KryoObject:
        """The root object; the data must end with it."""
        if self._dialect.writes_root_class:
            root = self.read(self.class_and_object())
        else:
            root = self.read(self.object_of(_EXPRESSION_CLASS, may_be_null=False))
        if self._position != len(self._data):
            raise KryoError(f"{len(self._data) - self._position} bytes follow the root")
        if not isinstance(root, KryoObject):
            raise KryoError("the root is no object")
        return root

    def take_apart(self) -> None:
        """Objects that hold each other let go: each circle goes through the fields of an object."""
        for read in self._objects:
            if isinstance(read, KryoObject):
                read.fields.clear()
        self._objects.clear()

    @staticmethod
    def read(first: Value | Reading) -> Value:
        """Carries out a reading, and those that it asks for."""
        if not isinstance(first, GeneratorType):
            return cast(Value, first)
        under_way: list[Reading] = [first]
        found: Value = None
        try:
            while under_way:
                try:
                    under_way.append(under_way[-1].send(found))
                    found = None
                except StopIteration as end:
                    under_way.pop()
                    found = end.value
                if len(under_way) > MAX_DEPTH:
                    raise KryoError(f"nested more than {MAX_DEPTH} deep")
        finally:
            # The innermost first: each holds the next one, and the interpreter would free the outermost with all others
            # inside of it, as deep on its stack.
            while under_way:
                under_way.pop().close()
        return found

    def _spend(self, size_bytes: int) -> None:
        self._free_bytes -= size_bytes
        if self._free_bytes < 0:
            raise _TooManyObjects(f"the objects take more than {self._max_bytes} bytes")

    # Bytes and numbers

    def byte(self) -> int:
        try:
            value = self._data[self._position]
        except IndexError:
            raise KryoError("the data ends in the middle") from None
        self._position += 1
        return value

    def take(self, count: int) -> bytes:
        end = self._position + count
        if not self._position <= end <= len(self._data):
            raise KryoError("the data ends in the middle")
        self._spend(count)
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def positive(self) -> int:
        """A variable-length number of up to 32 bits, the low bits first."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise KryoError("a number is too long")

    def signed(self) -> int:
        value = self.positive()
        return (value >> 1) ^ -(value & 1)

    def positive_long(self) -> int:
        """A variable-length number of 64 bits: at most nine bytes, the ninth whole."""
        value = 0
        for shift in range(0, 56, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        return value | self.byte() << 56

    def signed_long(self) -> int:
        value = self.positive_long()
        return (value >> 1) ^ -(value & 1)

    def fixed(self, code: str) -> Any:
        """A number of fixed size, by its letter in `struct`."""
        return struct.unpack(self._order + code, self.take(struct.calcsize(code)))[0]

    def flagged(self) -> tuple[bool, int]:
        """A flag and a variable-length number sharing the first byte."""
        byte = self.byte()
        value = byte & 0x3F
        if byte & 0x40:
            value |= self.positive() << 6
        return bool(byte & 0x80), value

    def text(self) -> str | None:
        if self._position < len(self._data) and not self._data[self._position] & 0x80:
            return self._ascii()
        _, length = self.flagged()
        if length == 0:
            return None
        return self._utf16_units(length - 1)

    def _ascii(self) -> str:
        start = self._position
        while not self.byte() & 0x80:
            continue
        self._spend(self._position - start)
        plain = self._data[start : self._position - 1] + bytes([self._data[self._position - 1] & 0x7F])
        return plain.decode("ascii")

    def _utf16_units(self, count: int) -> str:
        """So many UTF-16 units, each written as UTF-8 by itself: a character beyond 16 bits is two of them."""
        if count > len(self._data) - self._position:
            raise KryoError("a text is longer than the data")
        start = self._position
        for _ in range(count):
            first = self.byte()
            if first >= 0x80:
                self.take(1 if first < 0xE0 else 2)
        units = self._data[start : self._position]
        self._spend(4 * count)
        try:
            return units.decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError as error:
            raise KryoError("a text is not UTF-8") from error

    # Classes and references

    def class_name(self) -> str | None:
        class_id = self.positive()
        if class_id == 0:
            return None
        if class_id != 1:
            registered = self._dialect.registered.get(class_id - 2)
            if registered is None:
                raise KryoError(f"registered class {class_id - 2}")
            return registered
        index = self.positive()
        if index == len(self._names):
            name = self.text()
            if not name:
                raise KryoError("a class without a name")
            self._names.append(name)
        elif index > len(self._names):
            raise KryoError("a class used before it is named")
        return self._names[index]

    def class_and_object(self) -> Value | Reading:
        name = self.class_name()
        return None if name is None else self.object_of(name, may_be_null=False)

    def object_of(self, class_name: str, may_be_null: bool) -> Value | Reading:
        """A value of a known class, its mark and then its content; or the reading of it, if it holds others."""
        known = self._class_of(class_name)
        referenced = class_name not in _WRAPPERS and not (self._dialect.kryo_5 and known.serializer == "EnumSerializer")
        if not referenced:
            if may_be_null and self.positive() == 0:
                return None
            return self._content(known, None)
        mark = self.positive()
        if mark == 0:
            if not may_be_null:
                raise KryoError("null where there is none")
            return None
        if mark > 1:
            if mark - 2 >= len(self._objects):
                raise KryoError("a reference to what has not been read")
            return self._objects[mark - 2]
        return self._content(known, self._next_number())

    def _next_number(self) -> int:
        self._objects.append(None)
        self._spend(2 * _ELEMENT_BYTES)
        return len(self._objects) - 1

    def _class_of(self, name: str) -> KryoClass:
        known = self._classes.get(name)
        if known is None:
            if name.startswith("["):
                return KryoClass(name, "array", ())
            raise KryoError(f"class {name}")
        return known

    def _content(self, known: KryoClass, number: int | None) -> Value | Reading:
        """`number`: of the object, if there may be references to it."""
        holds_others = _HOLDERS.get(known.serializer)
        if holds_others is not None:
            return holds_others(self, known, number)
        read = _CONTENTS.get(known.serializer)
        if read is None:
            raise KryoError(f"class {known.name} ({known.serializer})")
        return self._numbered(read(self, known), number)

    def _numbered(self, value: Value, number: int | None) -> Value:
        if number is not None:
            self._objects[number] = value
        return value

    def fields(self, known: KryoClass, number: int | None) -> Reading:
        read = KryoObject(known.name)
        self._spend(_OBJECT_BYTES + _ELEMENT_BYTES * len(known.fields))
        self._numbered(read, number)
        for name, type_name in known.fields:
            primitive = _PRIMITIVES.get(type_name)
            if primitive is not None:
                read.fields[name] = primitive(self)
                continue
            if type_name == "?":
                value = self.class_and_object()
            elif type_name.startswith("?<"):
                value = self._generic(type_name[2:-1].split(","))
            else:
                value = self.object_of(type_name, may_be_null=True)
            read.fields[name] = (yield value) if isinstance(value, GeneratorType) else cast(Value, value)
        if known.name == "java.time.LocalDate":
            return self._numbered(_date(read.fields["year"], read.fields["month"], read.fields["day"]), number)
        return read

    def _generic(self, elements: list[str]) -> Value | Reading:
        """A collection whose elements' class is known from the field: they are written without it."""
        name = self.class_name()
        if name is None:
            return None
        known = self._class_of(name)
        if known.serializer != "CollectionSerializer" or elements == ["?"]:
            raise KryoError(f"class {name} of {','.join(elements)}")
        mark = self.positive()
        if mark != 1:
            raise KryoError("a shared collection")
        number = len(self._objects)
        self._objects.append(None)
        if self._dialect.kryo_5:
            has_null, length = self.flagged()
            may_be_null, length = has_null, self._checked(length - 1)
        else:
            may_be_null, length = True, self._checked(self.positive())
        return self._list(length, lambda: self.object_of(elements[0], may_be_null), number)

    def _list(self, length: int, element: Callable[[], Value | Reading], number: int | None) -> Reading:
        values: list[Value] = []
        for _ in range(length):
            value = element()
            values.append((yield value) if isinstance(value, GeneratorType) else cast(Value, value))
        return self._numbered(values, number)

    # Collections

    def _checked(self, length: int) -> int:
        """A length of things that take a byte at least."""
        if not 0 <= length <= len(self._data) - self._position:
            raise KryoError("a collection is longer than the data")
        self._spend(_ELEMENT_BYTES * (length + 2))
        return length

    def collection(self, _known: KryoClass, number: int | None) -> Value | Reading:
        if not self._dialect.kryo_5:
            return self._list(self._checked(self.positive()), self.class_and_object, number)
        same_class, length = self.flagged()
        if length == 0:
            return None
        length -= 1
        if length == 0:
            return self._numbered([], number)
        if not same_class:
            return self._list(self._checked(length), self.class_and_object, number)
        name = self.class_name()
        if name is None:
            return self._numbered([None] * self._checked(length), number)
        may_be_null = self.byte() != 0
        return self._list(self._checked(length), lambda: self.object_of(name, may_be_null), number)

    def mapping(self, _known: KryoClass, number: int | None) -> Value | Reading:
        length = self.positive() - (1 if self._dialect.kryo_5 else 0)
        if length < 0:
            return None
        self._spend(4 * _ELEMENT_BYTES * self._checked(length))
        return self._list(length, lambda: self._list(2, self.class_and_object, None), number)

    def arrays_as_list(self, _known: KryoClass, number: int | None) -> Value | Reading:
        """`java.util.Arrays.asList` in Hive's own way: the length, the elements' class, the elements."""
        length = self._checked(self.positive())
        name = self.class_name()
        if name is None:
            return self._numbered([None] * length, number)
        primitive = _PRIMITIVES.get(name)
        if primitive is not None:
            return self._numbered([primitive(self) for _ in range(length)], number)
        return self._list(length, self.class_and_object, number)

    def singleton(self, _known: KryoClass, number: int | None) -> Reading:
        return self._list(1, self.class_and_object, number)

    def array(self, known: KryoClass, number: int | None) -> Value | Reading:
        name, length = known.name, self.positive() - 1
        if length < 0:
            return None
        self._checked(length)
        if name == "[B":
            return self._numbered(self.take(length), number)
        if name == "[I":
            return self._numbered([self.signed() for _ in range(length)], number)
        if name == "[Ljava.lang.String;":
            return self._list(length, lambda: self.object_of("java.lang.String", may_be_null=True), number)
        if name in _POLYMORPHIC_ARRAYS:
            return self._list(length, self.class_and_object, number)
        raise KryoError(f"class {name}")


def _date(year: Any, month: Any, day: Any) -> datetime.date:
    try:
        return datetime.date(year, month, day)
    except (ValueError, OverflowError, TypeError) as error:
        raise KryoError(f"no date: {year}-{month}-{day}") from error


def _local_date(reader: KryoReader, _known: KryoClass) -> datetime.date:
    return _date(reader.positive(), reader.byte(), reader.byte())


def _local_date_time(reader: KryoReader, known: KryoClass) -> Value:
    """Hours, minutes, seconds, nanoseconds; the last that is not zero is written inverted, and ends it."""
    date = _local_date(reader, known)
    parts = [0, 0, 0]
    nanosecond = 0
    for index in range(3):
        value = reader.fixed("b")
        parts[index] = ~value if value < 0 else value
        if value < 0:
            break
    else:
        nanosecond = reader.positive()
    return KryoObject("java.time.LocalDateTime", {"date": date, "time": [*parts, nanosecond]})


_MAX_NUMBER_BYTES = 64
"""Of one number. Hive's end at 38 digits. Python makes a decimal of one in the square of its length, in one go: of a
megabyte in more than a minute, in which nobody else is answered."""


def _big_integer(reader: KryoReader, _known: KryoClass | None = None) -> int:
    length = reader.positive()
    if length == 0:
        raise KryoError("a number is null")
    if length - 1 > _MAX_NUMBER_BYTES:
        raise KryoError("a number is too long")
    return int.from_bytes(reader.take(length - 1), "big", signed=True)


def _big_decimal(reader: KryoReader, _known: KryoClass) -> Decimal:
    unscaled = _big_integer(reader)
    scale = reader.signed()
    if abs(scale) > 1_000:
        raise KryoError("a decimal is too long")
    sign, digits, _ = Decimal(unscaled).as_tuple()
    return Decimal((sign, digits, -scale))  # exact: arithmetic would round to 28 digits


def _calendar(reader: KryoReader, known: KryoClass) -> KryoObject:
    zone = reader.text()
    milliseconds = reader.positive_long()
    lenient = reader.byte()
    first_day, minimal_days, change = reader.positive(), reader.positive(), reader.signed_long()
    kept: dict[str, Value] = {
        "zone": zone,
        "milliseconds": milliseconds,
        "lenient": bool(lenient),
        "firstDayOfWeek": first_day,
        "minimalDaysInFirstWeek": minimal_days,
        "gregorianChange": change,
    }
    return KryoObject(known.name, kept)


def _enum(reader: KryoReader, known: KryoClass) -> Value:
    ordinal = reader.positive()
    return None if ordinal == 0 else EnumConstant(known.name, ordinal - 1)


def _timestamp_tz(reader: KryoReader, known: KryoClass) -> KryoObject:
    return KryoObject(known.name, {"seconds": reader.fixed("q"), "nanos": reader.fixed("i"), "zone": reader.text()})


_PRIMITIVES: dict[str, Callable[[KryoReader], Value]] = {
    "boolean": lambda reader: reader.byte() != 0,
    "byte": lambda reader: reader.fixed("b"),
    "char": lambda reader: reader.fixed("H"),
    "short": lambda reader: reader.fixed("h"),
    "int": lambda reader: reader.signed(),
    "long": lambda reader: reader.signed_long(),
    "float": lambda reader: reader.fixed("f"),
    "double": lambda reader: reader.fixed("d"),
}
_CONTENTS: dict[str, Callable[[KryoReader, KryoClass], Value]] = {
    "BooleanSerializer": lambda reader, known: reader.byte() != 0,
    "ByteSerializer": lambda reader, known: reader.fixed("b"),
    "CharSerializer": lambda reader, known: reader.fixed("H"),
    "ShortSerializer": lambda reader, known: reader.fixed("h"),
    "IntSerializer": lambda reader, known: reader.signed(),
    "LongSerializer": lambda reader, known: reader.signed_long(),
    "FloatSerializer": lambda reader, known: reader.fixed("f"),
    "DoubleSerializer": lambda reader, known: reader.fixed("d"),
    "StringSerializer": lambda reader, known: reader.text(),
    "EnumSerializer": _enum,
    "CollectionsEmptyListSerializer": lambda reader, known: [],
    "BigIntegerSerializer": _big_integer,
    "BigDecimalSerializer": _big_decimal,
    "LocalDateSerializer": _local_date,
    "LocalDateTimeSerializer": _local_date_time,
    "CalendarSerializer": _calendar,
    "SqlDateSerializer": lambda reader, known: LocalMoment(known.name, reader.fixed("q")),
    "TimestampSerializer": lambda reader, known: LocalMoment(known.name, reader.fixed("q"), reader.fixed("i")),
    "TimestampTZSerializer": _timestamp_tz,
}
_HOLDERS: dict[str, Callable[[KryoReader, KryoClass, int | None], Value | Reading]] = {
    "FieldSerializer": KryoReader.fields,
    "array": KryoReader.array,
    "CollectionSerializer": KryoReader.collection,
    "MapSerializer": KryoReader.mapping,
    "ArraysAsListSerializer": KryoReader.arrays_as_list,
    "CollectionsSingletonListSerializer": KryoReader.singleton,
}
