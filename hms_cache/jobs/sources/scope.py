"""Which tables a read is about: patterns that its options give, and filters that Spark pushes down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from hms_cache.errors import ConfigurationError
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import TableName
from hms_cache.patterns.wildcards import Wildcard, WildcardPattern
from hms_cache.values import frozen

NAME_COLUMNS = ("catalog", "database", "table", "partition")
"""Columns whose filters narrow what is read, in the order of a full name."""

TABLE_COLUMNS = NAME_COLUMNS[:3]
"""Those that name a table."""


@frozen
class TableScope:
    """Tables by pattern and by conditions on the parts of their names. Travels to Spark's workers."""

    patterns: tuple[str, ...] = ()
    """``[catalog.]database.table`` each, ``*`` for any text; none stands for all tables."""

    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By name column: the only names asked for."""

    prefixes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By name column: texts that names must begin with, all of them."""

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            if pattern.count(".") not in (1, 2):
                raise ConfigurationError(f"tables are named as [catalog.]database.table: {pattern!r}")

    @classmethod
    def of_text(cls, text: str | None) -> TableScope:
        """Of an option: patterns separated by commas. Raises ConfigurationError."""
        return cls(tuple(part.strip().lower() for part in (text or "").split(",") if part.strip()))

    def narrowed(self, column: str, names: Iterable[str]) -> TableScope:
        """Only these names of the column, of those it allows already."""
        wanted = frozenset(names)
        before = self.allowed.get(column)
        return replace(self, allowed={**self.allowed, column: wanted if before is None else wanted & before})

    def beginning(self, column: str, prefix: str) -> TableScope:
        """Only names of the column that begin so."""
        return replace(self, prefixes={**self.prefixes, column: (*self.prefixes.get(column, ()), prefix)})

    def narrows(self, column: str) -> bool:
        """Whether a condition on this column was taken over."""
        return column in self.allowed or column in self.prefixes

    def admits(self, *names: str) -> bool:
        """Whether something named so, a catalog, a database in it, a table in that or a partition of it, may hold what
        is asked for."""
        for column, name in zip(NAME_COLUMNS, names, strict=False):
            allowed = self.allowed.get(column)
            if allowed is not None and name not in allowed:
                return False
            if not all(name.startswith(prefix) for prefix in self.prefixes.get(column, ())):
                return False
        return not self.patterns or any(_matches(pattern, names) for pattern in self.patterns)


def shown_name(name: TableName) -> str:
    """A table in reports, and as ``--tables`` takes it: the catalog is left out if it is the default one."""
    return str(name) if name.catalog != DEFAULT_CATALOG else f"{name.database}.{name.table}"


def _matches(pattern: str, names: Sequence[str]) -> bool:
    parts = pattern.split(".")
    if len(parts) == 2:
        parts.insert(0, DEFAULT_CATALOG)
    return all(
        WildcardPattern(Wildcard.MANY if character == "*" else character for character in part).matches(name)
        for part, name in zip(parts, names, strict=False)
    )
