"""Tables of the cache as a list that knows its encoding."""

from __future__ import annotations

import copy

from hms_cache.thrift_gen.hive_metastore.ttypes import Table
from hms_cache.wire.encoded_lists import EncodedList


class EncodedTables(EncodedList[Table]):
    """Tables of the cache as a list."""

    def __init__(self, frozen: list[Table], encoded: list[bytes]) -> None:
        """`frozen`: the cache's own structs. The list copies them when it creates its elements."""
        super().__init__(len(frozen), lambda: [copy.copy(table) for table in frozen], lambda: encoded)
        self.frozen = frozen
        """For reading only, without creating the elements. Once the list is no longer `is_encoded`, use those
        instead."""
