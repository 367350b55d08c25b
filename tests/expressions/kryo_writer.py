"""Writes expressions as Kryo of Hive 4 does."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """A number of variable length, the low bits first."""
    written = b""
    while value > 0x7F:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])


def ascii_text(text: str) -> bytes:
    """A text of at least two characters, all of them ASCII."""
    return text[:-1].encode() + bytes([ord(text[-1]) | 0x80])


FUNCTION = "org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc"
COLUMN = "org.apache.hadoop.hive.ql.plan.ExprNodeColumnDesc"
CONSTANT = "org.apache.hadoop.hive.ql.plan.ExprNodeConstantDesc"
TYPE = "org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInfo"


class Writer:
    """Writes like Kryo of Hive 4. Functions are written iteratively, so any depth is possible."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._names: list[str] = []

    def begin(self, class_name: str) -> None:
        """A new object of a class that is named at its first use."""
        self.data += b"\x01"
        if class_name in self._names:
            self.data += varint(self._names.index(class_name))
        else:
            self.data += varint(len(self._names)) + ascii_text(class_name)
            self._names.append(class_name)
        self.data += b"\x01"

    def again(self, class_name: str, number: int, times: int = 1) -> None:
        """Started objects of this class: by their numbers, including those of texts."""
        self.data += (b"\x01" + varint(self._names.index(class_name)) + varint(number + 2)) * times

    def begin_list(self, length: int) -> None:
        self.begin("java.util.ArrayList")
        self.data += bytes([length + 1 & 0x3F | 0x40]) + varint(length + 1 >> 6)

    def begin_function(self, arguments: int = 2) -> None:
        """Up to its arguments."""
        self.begin(FUNCTION)
        self.begin_list(arguments)

    def end_function(self, function: str, fields: bytes) -> None:
        """`fields`: of the function, all of them without a value."""
        self.begin(f"org.apache.hadoop.hive.ql.udf.generic.GenericUDF{function}")
        self.data += fields + b"\x00\x00"

    def equal(self, column: str, value: str) -> None:
        """`column = 'value'`"""
        self.begin_function()
        self.operands(column, value)
        self.end_function("OPEqual", bytes(5))

    def operands(self, column: str, value: str, type_name: str = "string") -> None:
        """A column and a constant."""
        self.begin(COLUMN)
        self.data += b"\x01" + ascii_text(column) + bytes(4)
        self.begin(CONSTANT)
        self.begin(TYPE)
        self.data += b"\x01" + ascii_text(type_name) + b"\x03\x01" + ascii_text(value)
