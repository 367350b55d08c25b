"""Tables of the cache as a list that knows its encoding."""

from __future__ import annotations

import copy

from hms_cache.thrift_gen.hive_metastore.ttypes import Table
from hms_cache.wire.encoded_lists import EncodedList


class EncodedTables(EncodedList[Table]):
    """Tables of the cache as a list."""

    def __init__(self, frozen: list[Table], encoded: list[bytes]) -> None:
        """`frozen`: the cache's own structs, which the list copies when it makes its elements."""
        super().__init__(len(frozen), lambda: [copy.copy(table) for table in frozen], lambda: encoded)
        self.frozen = frozen
        """To look at only, without making the elements; those count once the list is no more `is_encoded`."""
