"""The tables that a read selects: by patterns from its options, and by filters that Spark pushes down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from hms_cache.errors import ConfigurationError
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import TableName
from hms_cache.patterns.wildcards import Wildcard, WildcardPattern
from hms_cache.values import frozen

NAME_COLUMNS = ("catalog", "database", "table", "partition")
"""Columns whose filters limit what is read, in the order of a full name."""

TABLE_COLUMNS = NAME_COLUMNS[:3]
"""Columns that identify a table."""


@frozen
class TableScope:
    """Selects tables by patterns and by conditions on the parts of their names. Spark sends it to its workers."""

    patterns: tuple[str, ...] = ()
    """Patterns of the form ``[catalog.]database.table``, with ``*`` for any text; none selects all tables."""

    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By name column: the selected names."""

    prefixes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By name column: prefixes that a name must all have."""

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            if pattern.count(".") not in (1, 2):
                raise ConfigurationError(f"a table pattern must have the form [catalog.]database.table: {pattern!r}")

    @classmethod
    def of_text(cls, text: str | None) -> TableScope:
        """Parses an option: patterns separated by commas. Raises ConfigurationError."""
        return cls(tuple(part.strip().lower() for part in (text or "").split(",") if part.strip()))

    def narrowed(self, column: str, names: Iterable[str]) -> TableScope:
        """Also restricts the column to these names."""
        selected = frozenset(names)
        before = self.allowed.get(column)
        return replace(self, allowed={**self.allowed, column: selected if before is None else selected & before})

    def beginning(self, column: str, prefix: str) -> TableScope:
        """Also restricts the column to names with this prefix."""
        return replace(self, prefixes={**self.prefixes, column: (*self.prefixes.get(column, ()), prefix)})

    def narrows(self, column: str) -> bool:
        """Whether there is a condition on this column."""
        return column in self.allowed or column in self.prefixes

    def admits(self, *names: str) -> bool:
        """Whether an object with this name (a catalog, a database, a table or a partition, by the number of parts) may
        contain selected objects."""
        for column, name in zip(NAME_COLUMNS, names, strict=False):
            allowed = self.allowed.get(column)
            if allowed is not None and name not in allowed:
                return False
            if not all(name.startswith(prefix) for prefix in self.prefixes.get(column, ())):
                return False
        return not self.patterns or any(_matches(pattern, names) for pattern in self.patterns)


def shown_name(name: TableName) -> str:
    """The name of a table in reports and for ``--tables``: without the catalog if that is the default one."""
    return str(name) if name.catalog != DEFAULT_CATALOG else f"{name.database}.{name.table}"


def _matches(pattern: str, names: Sequence[str]) -> bool:
    parts = pattern.split(".")
    if len(parts) == 2:
        parts.insert(0, DEFAULT_CATALOG)
    return all(
        WildcardPattern(Wildcard.MANY if character == "*" else character for character in part).matches(name)
        for part, name in zip(parts, names, strict=False)
    )
