"""Events of column statistics."""

from __future__ import annotations

from collections.abc import Mapping

from hms_cache.notifications.events.base import StructIn
from hms_cache.notifications.events.tables import PartitionsEvent, TableEvent
from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.values import frozen


class CarriesStatistics:
    """An event whose message contains the statistics that were written."""

    __slots__ = ()

    statistics_json: str | None

    statistics = StructIn("statistics_json", ttypes.ColumnStatistics)


@frozen
class TableColumnStatisticsUpdated(CarriesStatistics, TableEvent):
    """The table's parameters (COLUMN_STATS_ACCURATE) change with the statistics."""

    write_id: int | None = None
    parameters: Mapping[str, str] | None = None
    statistics_json: str | None = None


@frozen
class TableColumnStatisticsDeleted(TableEvent):
    """``column`` is ``None`` if the statistics of all columns were deleted."""

    column: str | None = None


@frozen
class PartitionColumnStatisticsUpdated(CarriesStatistics, PartitionsEvent):
    """The partition's parameters (COLUMN_STATS_ACCURATE) change with the statistics."""

    write_id: int | None = None
    parameters: Mapping[str, str] | None = None
    statistics_json: str | None = None


@frozen
class PartitionColumnStatisticsDeleted(PartitionsEvent):
    """``column`` is ``None`` if the statistics of all columns were deleted."""

    column: str | None = None
