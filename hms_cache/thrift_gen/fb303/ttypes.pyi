# Generated from thrift_idl by tools/generate_thrift.py; do not edit.

from typing import Final

from hms_cache.thrift_gen.base import TBase, ThriftException

class fb_status(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    DEAD: Final[int]
    STARTING: Final[int]
    ALIVE: Final[int]
    STOPPING: Final[int]
    STOPPED: Final[int]
    WARNING: Final[int]

