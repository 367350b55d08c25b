"""What Spark's statistics of a table say beyond Hive's of its partitions: exact sums of lengths, and moments to the
microsecond. Put together as partitions are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass

from hms_cache.metadata.statistics_values import StatisticsKind, values_of
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatisticsObj

_US = 1_000_000

BoundsUs = Mapping[str, tuple[int, int]]
"""Lowest and highest value of columns of timestamps, in microseconds."""


@dataclass(slots=True)
class Totals:
    """Of a column."""

    present: int = 0
    """Values that are no nulls."""

    length_sum: int = 0
    low_us: int | None = None
    high_us: int | None = None

    def add(self, other: Totals) -> None:
        """Those of other rows."""
        self.present += other.present
        self.length_sum += other.length_sum
        self.low_us = min((one for one in (self.low_us, other.low_us) if one is not None), default=None)
        self.high_us = max((one for one in (self.high_us, other.high_us) if one is not None), default=None)


class TotalsOfColumns:
    """By column."""

    def __init__(self) -> None:
        self._by_column: dict[str, Totals] = {}

    def of(self, column: str) -> Totals:
        """Nothing for a column that none were added of."""
        return self._by_column.get(column, Totals())

    def add(self, statistics: Iterable[ColumnStatisticsObj], rows: int, bounds_us: BoundsUs | None = None) -> None:
        """Those of a partition or table of so many rows.

        Without `bounds_us` moments are known to the second: the highest is then taken for the last of its second.
        """
        for column in statistics:
            values = values_of(column)
            # The average is this sum divided by the rows: it comes back whole.
            own = Totals(max(rows - values.nulls, 0), round(values.average_length * rows))
            if values.kind is StatisticsKind.TIMESTAMP and values.low is not None and values.high is not None:
                known = int(values.low) * _US, int(values.high) * _US + _US - 1
                own.low_us, own.high_us = (bounds_us or {}).get(column.colName, known)
            self._by_column.setdefault(column.colName, Totals()).add(own)

    def add_encoded(self, text: str) -> None:
        """What `encoded` has told of others."""
        for name, figures in json.loads(text).items():
            self._by_column.setdefault(name, Totals()).add(Totals(*figures))

    def encoded(self) -> str:
        """As text, for `add_encoded`."""
        return json.dumps({name: astuple(one) for name, one in self._by_column.items()})
