"""The parts of Spark's statistics of a table that Hive's statistics of its partitions do not contain: exact sums of
lengths, and timestamps in microseconds. Combined like those of partitions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass

from hms_cache.metadata.statistics_values import StatisticsKind, values_of
from hms_cache.thrift_gen.hive_metastore.ttypes import ColumnStatisticsObj

_US = 1_000_000

BoundsUs = Mapping[str, tuple[int, int]]
"""Lowest and highest value of timestamp columns, in microseconds."""


@dataclass(slots=True)
class Totals:
    """Totals of a column."""

    present: int = 0
    """Number of values that are not null."""

    length_sum: int = 0
    low_us: int | None = None
    high_us: int | None = None

    def add(self, other: Totals) -> None:
        """Adds the totals of other rows."""
        self.present += other.present
        self.length_sum += other.length_sum
        self.low_us = min((one for one in (self.low_us, other.low_us) if one is not None), default=None)
        self.high_us = max((one for one in (self.high_us, other.high_us) if one is not None), default=None)


class TotalsOfColumns:
    """Totals by column."""

    def __init__(self) -> None:
        self._by_column: dict[str, Totals] = {}

    def of(self, column: str) -> Totals:
        """Zeros for a column without totals."""
        return self._by_column.get(column, Totals())

    def add(self, statistics: Iterable[ColumnStatisticsObj], rows: int, bounds_us: BoundsUs | None = None) -> None:
        """Adds those of a partition or table with this number of rows.

        Without `bounds_us`, timestamps are only known in seconds: the highest is then assumed to be at the end of its
        second.
        """
        for column in statistics:
            values = values_of(column)
            # The average is this sum divided by the rows, so the product restores it.
            own = Totals(max(rows - values.nulls, 0), round(values.average_length * rows))
            if values.kind is StatisticsKind.TIMESTAMP and values.low is not None and values.high is not None:
                known = int(values.low) * _US, int(values.high) * _US + _US - 1
                own.low_us, own.high_us = (bounds_us or {}).get(column.colName, known)
            self._by_column.setdefault(column.colName, Totals()).add(own)

    def add_encoded(self, text: str) -> None:
        """Adds totals from `encoded`."""
        for name, figures in json.loads(text).items():
            self._by_column.setdefault(name, Totals()).add(Totals(*figures))

    def encoded(self) -> str:
        """The totals as text, for `add_encoded`."""
        return json.dumps({name: astuple(one) for name, one in self._by_column.items()})
