"""Aggregates column statistics of many partitions, and merges new statistics into old ones: pure functions.

There are two methods, as in Hive. Without sketches (`metastore.stats.fetch.bitvector` off, the default), the number of
distinct values is between a partition's maximum and the sum of all; with sketches it is counted from the merged
sketches. If partitions lack statistics, the known ones are extrapolated over the partitions in the order of the
request, along a line from the partition with the lowest value to that with the highest.

Facts: `MetaStoreDirectSql.aggrStatsUseDB`, `LinearExtrapolatePartStatus`, `columnstats.aggr`, `columnstats.merge` (Hive
4.0.1). Intended differences: decimals are exact and compared as numbers, while Hive's SQL rounds them to integers on
MySQL and its other method compares their bytes; the maximum length is extrapolated from maximum lengths, while Hive's
sketch method uses average ones; the result contains the merged sketch, while Hive's contains the first partition's; of
several histograms, the one of most values is returned unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from hms_cache.metadata.statistics_sketches import Sketch, empty_like, merged_at_once, read_sketch
from hms_cache.metadata.statistics_values import (
    Bound,
    ColumnValues,
    StatisticsKind,
    clamp_to_long,
    statistics_of,
    values_of,
)
from hms_cache.thrift_gen.hive_metastore.ttypes import AggrStats, ColumnStatisticsObj, InvalidObjectException
from hms_cache.values import frozen


@frozen
class AggregationRules:
    """How numbers of distinct values are aggregated. The defaults are Hive's."""

    sketches: bool = False
    """`metastore.stats.fetch.bitvector`."""

    histograms: bool = False
    """`metastore.stats.fetch.kll`."""

    density_function: bool = False
    """`metastore.stats.ndv.densityfunction`: estimate from the range and the average density of values."""

    distinct_tuner: float = 0.0
    """`metastore.stats.ndv.tuner`: 0 means the lower bound (a partition's maximum), 1 the upper one (sum)."""

    certain_bounds: bool = False
    """No bound if a partition with values has none, because infinity and NaN are not stored. Hive uses the bounds of
    the other partitions."""


@dataclass(slots=True)
class _Part:
    """Values of one partition, or of adjacent merged ones, with their position among the requested partitions."""

    index: float
    values: ColumnValues


def aggregate(
    part_names: Sequence[str],
    statistics: Iterable[tuple[str, ColumnStatisticsObj]],
    columns: Sequence[str],
    rules: AggregationRules,
) -> AggrStats:
    """Aggregates statistics of the columns over the named partitions. `statistics`: the known ones, as (partition name,
    column). The result is sorted by column name.

    `partsFound` counts the partitions that have statistics of all columns. Columns without statistics are left out.
    """
    requested = {column.lower() for column in columns}
    index_of = {name: index for index, name in enumerate(dict.fromkeys(part_names))}
    groups: dict[tuple[str, str, StatisticsKind], list[_Part]] = {}
    columns_found: dict[str, set[str]] = {}
    for name, column_statistics in statistics:
        column = column_statistics.colName
        if name not in index_of or column not in requested:
            continue
        values = values_of(column_statistics)
        groups.setdefault((column, column_statistics.colType, values.kind), []).append(_Part(index_of[name], values))
        columns_found.setdefault(name, set()).add(column)
    found = sum(1 for names in columns_found.values() if len(names) == len(requested))
    count = len(index_of)
    answer = []
    for (column, column_type, _), parts in sorted(groups.items()):
        parts.sort(key=lambda part: part.index)
        complete = found == count or len(parts) == count or len(parts) < 2
        if rules.sketches or rules.histograms:
            values = _with_sketches(parts, count, complete, rules)
        else:
            values = _without_sketches(parts, count, complete, rules)
        if rules.certain_bounds:
            having = [part.values for part in parts if part.values.distinct]
            values.low = None if any(one.low is None for one in having) else values.low
            values.high = None if any(one.high is None for one in having) else values.high
        answer.append(statistics_of(column, column_type, values))
    return AggrStats(colStats=answer, partsFound=found)


# Without sketches


def _without_sketches(parts: list[_Part], count: int, complete: bool, rules: AggregationRules) -> ColumnValues:
    values = [part.values for part in parts]
    if complete:
        merged = _extremes(values)
        lower, higher = merged.distinct, sum(one.distinct for one in values)
    else:
        merged = _on_lines(parts, count)
        lower, higher = merged.distinct, _scaled(sum(one.distinct for one in values), len(parts), count)
    if not merged.kind.has_bounds:
        return merged
    merged.distinct = _distinct(merged, _average_density(values), lower, higher, rules)
    is_whole = merged.kind in (StatisticsKind.LONG, StatisticsKind.DATE, StatisticsKind.TIMESTAMP)
    if is_whole and merged.low is not None and merged.high is not None:
        merged.distinct = min(merged.distinct, int(merged.high) - int(merged.low) + 1)
    return merged


def _extremes(values: Sequence[ColumnValues]) -> ColumnValues:
    """The lowest low, the highest high, the maxima of lengths and distinct values, and the sums of counts."""
    lows = [one.low for one in values if one.low is not None]
    highs = [one.high for one in values if one.high is not None]
    return ColumnValues(
        values[0].kind,
        nulls=sum(one.nulls for one in values),
        distinct=max(one.distinct for one in values),
        low=_first_nan(lows) or min(lows, default=None),
        high=_first_nan(highs) or max(highs, default=None),
        average_length=max(one.average_length for one in values),
        maximum_length=max(one.maximum_length for one in values),
        trues=sum(one.trues for one in values),
        falses=sum(one.falses for one in values),
    )


def _first_nan(bounds: Iterable[Bound]) -> Bound | None:
    """If a bound is NaN, the others have no meaning."""
    return next((bound for bound in bounds if bound != bound), None)


def _on_lines(parts: Sequence[_Part], count: int) -> ColumnValues:
    """All figures extrapolated to the first or the last of the requested partitions; counts are scaled up."""
    values = [part.values for part in parts]
    kind = values[0].kind

    def line(figure: Callable[[ColumnValues], Bound | None], *, rising: bool) -> Bound | None:
        return _line([(figure(part.values), int(part.index)) for part in parts], count - 1, rising=rising)

    def total(figure: Callable[[ColumnValues], int]) -> int:
        return _scaled(sum(figure(one) for one in values), len(parts), count)

    return ColumnValues(
        kind,
        nulls=total(lambda one: one.nulls),
        distinct=int(line(lambda one: one.distinct, rising=True) or 0),
        low=line(lambda one: one.low, rising=False) if kind.has_bounds else None,
        high=line(lambda one: one.high, rising=True) if kind.has_bounds else None,
        average_length=float(line(lambda one: one.average_length, rising=True) or 0.0),
        maximum_length=int(line(lambda one: one.maximum_length, rising=True) or 0),
        trues=total(lambda one: one.trues),
        falses=total(lambda one: one.falses),
    )


def _line(points: Sequence[tuple[Bound | None, int]], last: int, *, rising: bool) -> Bound | None:
    """The value at the end of the line through the points with the lowest and the highest value: the lower end, or
    (`rising`) the higher one. None if a point has no value."""
    known = [(value, index) for value, index in points if value is not None]
    if len(known) != len(points):
        return None
    known.sort(key=lambda point: point[0])
    (low, low_index), (high, high_index) = known[0], known[-1]
    if low_index == high_index:
        return low
    steps = abs(high_index - low_index)
    if rising:
        reach = last - low_index if low_index < high_index else low_index
        return _moved(low, high, low, reach, steps, 1)
    reach = high_index if low_index < high_index else last - high_index
    return _moved(low, high, high, reach, steps, -1)


def _moved(low: Bound, high: Bound, start: Bound, reach: int, steps: int, direction: int) -> Bound:
    """`start` moved by (high - low) * reach / steps, with Java's arithmetic for the type."""
    if isinstance(low, Decimal) or isinstance(high, Decimal):
        distance = (float(high) - float(low)) * reach / steps
        return Decimal(repr(float(start) + direction * distance))
    if isinstance(low, int) and isinstance(high, int):
        return int(start) + direction * _divided((high - low) * reach, steps)
    return float(start) + direction * ((float(high) - float(low)) * reach / steps)


def _divided(value: int, divisor: int) -> int:
    """Java's integer division, which truncates towards zero."""
    quotient = abs(value) // divisor
    return quotient if value >= 0 else -quotient


def _scaled(total: int, found: int, count: int) -> int:
    """A sum over some partitions, scaled up to all. Hive divides first, in integers."""
    return _divided(total, found) * count


def _average_density(values: Sequence[ColumnValues]) -> float | None:
    """Average width of the range per distinct value, over partitions that have both."""
    densities = [
        (float(one.high) - float(one.low)) / one.distinct
        for one in values
        if one.low is not None and one.high is not None and one.distinct
    ]
    return sum(densities) / len(densities) if densities else None


def _distinct(merged: ColumnValues, density: float | None, lower: int, higher: int, rules: AggregationRules) -> int:
    if rules.density_function and merged.low is not None and merged.high is not None and density:
        estimate = _as_long((float(merged.high) - float(merged.low)) / density)
        return min(max(estimate, lower), higher) if lower <= higher else lower
    return _as_long(lower + (higher - lower) * rules.distinct_tuner)


def _as_long(value: float) -> int:
    """Java's cast: truncates towards zero, without overflow."""
    if math.isnan(value):
        return 0
    return clamp_to_long(int(value)) if math.isfinite(value) else clamp_to_long(1 << 64 if value > 0 else -1 << 64)


# With sketches


def _with_sketches(parts: list[_Part], count: int, complete: bool, rules: AggregationRules) -> ColumnValues:
    kind = parts[0].values.kind
    has_sketches = kind.has_distinct_values and rules.sketches
    if complete or not kind.has_distinct_values:
        merged = _extremes([part.values for part in parts])
        sketch = _merged_sketch(parts) if has_sketches else None
        if sketch is not None:
            merged.distinct, merged.bit_vector = sketch.count(), sketch.serialized()
        elif kind.has_bounds:
            merged.distinct = _distinct_of_all(merged, parts, count, rules)
    else:
        merged = _extrapolated(parts, _mergeable_sketches(parts) if has_sketches else None, count, rules)
    merged.histogram = _largest_histogram(part.values.histogram for part in parts) if rules.histograms else None
    return merged


def _merged_sketch(parts: Sequence[_Part]) -> Sketch | None:
    """The sketches of all parts merged; None if one part has none, or they cannot be merged."""
    vectors = [part.values.bit_vector for part in parts]
    at_once = merged_at_once([one for one in vectors if one]) if all(vectors) else None
    if at_once is not None:
        return at_once
    sketches = _mergeable_sketches(parts)
    return None if sketches is None else _merged(sketches)


def _mergeable_sketches(parts: Sequence[_Part]) -> list[Sketch] | None:
    """The sketch of each part, if all have one and they can be merged."""
    sketches: list[Sketch] = []
    for part in parts:
        sketch = read_sketch(part.values.bit_vector)
        if sketch is None or not empty_like(sketches[0] if sketches else sketch).can_merge(sketch):
            return None
        sketches.append(sketch)
    return sketches


def _merged(sketches: Sequence[Sketch]) -> Sketch:
    merged = empty_like(sketches[0])
    for sketch in sketches:
        merged.merge(sketch)
    return merged


def _density(values: ColumnValues) -> float:
    if values.low is None or values.high is None or not values.distinct:
        return 0.0
    return (float(values.high) - float(values.low)) / values.distinct


def _distinct_of_all(merged: ColumnValues, parts: Sequence[_Part], count: int, rules: AggregationRules) -> int:
    density = sum(_density(part.values) for part in parts) / count
    return _distinct(merged, density, merged.distinct, sum(part.values.distinct for part in parts), rules)


def _extrapolated(
    parts: Sequence[_Part], sketches: Sequence[Sketch] | None, count: int, rules: AggregationRules
) -> ColumnValues:
    points = list(parts) if sketches is None else _neighbours_merged(parts, sketches)
    kind = parts[0].values.kind
    merged = ColumnValues(kind)
    merged.nulls = _divided(sum(point.values.nulls for point in points) * count, len(parts))

    def end(figure: Callable[[ColumnValues], Bound | None], *, rising: bool) -> Bound | None:
        return _end_of_line([(figure(point.values), point.index) for point in points], count, rising=rising)

    if kind.has_lengths:
        merged.average_length = float(end(lambda one: float(one.average_length), rising=True) or 0.0)
        merged.maximum_length = int(end(lambda one: one.maximum_length, rising=True) or 0)
    if kind.has_bounds:
        merged.low = end(lambda one: one.low, rising=False)
        merged.high = end(lambda one: one.high, rising=True)
    density = sum(_density(point.values) for point in points) / len(points) if rules.density_function else 0.0
    if kind.has_bounds and density and merged.low is not None and merged.high is not None:
        lower = max(point.values.distinct for point in points)
        merged.distinct = _distinct(merged, density, lower, sum(point.values.distinct for point in points), rules)
    else:
        merged.distinct = int(end(lambda one: one.distinct, rising=True) or 0)
    return merged


def _neighbours_merged(parts: Sequence[_Part], sketches: Sequence[Sketch]) -> list[_Part]:
    """Merges adjacent partitions into one point in their middle."""
    runs: list[list[int]] = []
    for position, part in enumerate(parts):
        if runs and parts[runs[-1][-1]].index + 1 == part.index:
            runs[-1].append(position)
        else:
            runs.append([position])
    points = []
    for run in runs:
        values = _extremes([parts[position].values for position in run])
        values.distinct = _merged([sketches[position] for position in run]).count()
        points.append(_Part(sum(parts[position].index for position in run) / len(run), values))
    return points


def _end_of_line(points: Sequence[tuple[Bound | None, float]], count: int, *, rising: bool) -> Bound | None:
    """Like `_line`, with fractions as positions, and the position after the last partition as the right border."""
    known = [(value, index) for value, index in points if value is not None]
    if not known:
        return None
    known.sort(key=lambda point: point[0])
    (low, low_index), (high, high_index) = known[0], known[-1]
    if low_index == high_index:
        return low
    distance, steps = float(high) - float(low), abs(high_index - low_index)
    if rising:
        reach = count - low_index if low_index < high_index else low_index
        value = float(low) + distance * reach / steps
    else:
        reach = high_index if low_index < high_index else count - high_index
        value = float(high) - distance * reach / steps
    if isinstance(low, Decimal):
        return Decimal(repr(value))
    return _as_long(value) if isinstance(low, int) else value


# Histograms


def _largest_histogram(histograms: Iterable[bytes | None]) -> bytes | None:
    found = [histogram for histogram in histograms if histogram]
    return max(found, key=histogram_size) if found else None


def histogram_size(data: bytes) -> int:
    """Number of values in a KLL sketch (Apache DataSketches); 0 for other data."""
    if len(data) < 8:
        return 0
    preamble, flags = data[0], data[3]
    if flags & 1:
        return 0
    if preamble < 5:
        return 1
    return int.from_bytes(data[8:16], "little") if len(data) >= 16 else 0


# New into old


def merge_into_new(new: ColumnStatisticsObj, old: ColumnStatisticsObj) -> ColumnStatisticsObj:
    """A column's new statistics, with the old ones merged in (SetPartitionsStatsRequest.needMerge).

    Raises InvalidObjectException if they are of different kinds. Source: `columnstats.merge`.
    """
    mine, theirs = values_of(new), values_of(old)
    if mine.kind is not theirs.kind:
        raise InvalidObjectException(
            f"Invalid column stats object: statistics of column {new.colName} are of another type than those stored"
        )
    merged = _extremes([mine, theirs])
    merged.distinct, merged.bit_vector = _merged_distinct(mine, theirs)
    merged.histogram = _largest_histogram([mine.histogram, theirs.histogram])
    return statistics_of(new.colName, new.colType, replace(merged))


def _merged_distinct(mine: ColumnValues, theirs: ColumnValues) -> tuple[int, bytes | None]:
    own, other = read_sketch(mine.bit_vector), read_sketch(theirs.bit_vector)
    if own is None and other is not None:
        return max(mine.distinct, other.count()), theirs.bit_vector
    if own is not None and other is not None and own.can_merge(other):
        own.merge(other)
        return own.count(), own.serialized()
    return max(mine.distinct, theirs.distinct), mine.bit_vector
