"""What every struct, enum and exception of the protocol has; see base.py."""

from typing import Any, ClassVar

class TBase:
    __slots__: ClassVar[tuple[str, ...]]
    thrift_spec: ClassVar[tuple[Any, ...]]
    def read(self, iprot: Any) -> None: ...
    def write(self, oprot: Any) -> None: ...

class ThriftException(TBase, Exception):
    message: str
