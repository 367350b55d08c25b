"""Base classes of the generated structs and exceptions; the generated modules import everything from here."""

from thrift.protocol.TBase import TBase, TFrozenBase
from thrift.Thrift import TException

__all__ = ["TBase", "TFrozenBase", "ThriftException"]


class ThriftException(TBase, TException):
    """An exception that is declared in the protocol.

    Unlike the runtime's own base class it is a `TException`, it has a hash (equal exceptions have equal ones, as long as
    nobody changes them), and it survives `copy` and `pickle` although its fields are slots.
    """

    __slots__ = ()

    def __hash__(self):
        return hash((self.__class__, self.message))

    def __reduce__(self):
        return self.__class__, tuple(getattr(self, name) for name in self.__slots__)
