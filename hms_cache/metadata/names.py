"""Names of metastore objects: normalization, validation, patterns, and names of directories.

Facts: `MetaStoreUtils.validateName`, `MetaStoreUtils.encodeTableName`, `StringUtils.normalizeIdentifier`,
`ObjectStore.appendPatternCondition` (Hive 3.1 and 4.0).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache

from hms_cache.input_limits import exceeded, input_limits
from hms_cache.metadata.partition_names import escape_path_name
from hms_cache.patterns.wildcards import Wildcard, WildcardPattern
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException
from hms_cache.wire.versions import DEFAULT_CATALOG as DEFAULT_CATALOG

DEFAULT_DATABASE = "default"
"""The database that exists in every catalog."""

DATABASE_DIRECTORY_SUFFIX = ".db"

LIKE_ESCAPE = "\\"
"""The escape character of `NamePattern.like_patterns`, for `ColumnElement.like(escape=…)`."""

_SPECIAL_CHARACTERS = " \"%&'()*+,-./:;<=>?[]_|{}$^!~#@`"
_PLAIN_NAME = re.compile(r"\A[A-Za-z0-9_]+\Z")
_SPECIAL_NAME = re.compile(r"\A[A-Za-z0-9_" + re.escape(_SPECIAL_CHARACTERS) + r"]+\Z")


_BLANKS = "".join(map(chr, range(0x21)))
"""Characters that Java's `String.trim` removes. Blanks of other scripts, with which column names may begin or end, are
not among them."""


def normalize_identifier(name: str) -> str:
    """The name as stored: without surrounding blanks, in lower case."""
    return name.strip(_BLANKS).lower()


def normalize_catalog(name: str) -> str:
    """The normalized name of a catalog.

    A name with characters beyond ASCII, which no catalog can have, is converted to a form without them: MySQL, with the
    collation in Hive's script, would find `hive` for `hivé`.
    """
    normalized = normalize_identifier(name)
    return normalized if normalized.isascii() else normalized.encode("ascii", "backslashreplace").decode()


def is_valid_name(name: str | None, *, special_characters: bool = True) -> bool:
    """Whether a database, table or function may have this name.

    Allowed are ASCII letters, digits and `_`; with `special_characters`
    (`metastore.support.special.characters.tablenames`, on by default) also ASCII punctuation and the blank, but not
    blanks only, which the database would strip. Catalogs never have special characters.
    """
    if name is None or not name.strip(_BLANKS):
        return False
    return bool((_SPECIAL_NAME if special_characters else _PLAIN_NAME).match(name))


def table_directory_name(table: str) -> str:
    """The last part of a table's default location: special characters become `-<code point>-`, as in Hive."""
    return escape_path_name("".join(c if c.isalnum() or c == "_" else f"-{ord(c)}-" for c in table.lower()))


def database_directory_name(database: str) -> str:
    """The last part of a database's default location: characters with a meaning in paths are escaped as in partition
    names.

    Hive escapes nothing here, so that a database `../x` is outside its warehouse; for all other names the result is
    Hive's.
    """
    return escape_path_name(database.lower()) + DATABASE_DIRECTORY_SUFFIX


def qualified(*parts: str | None) -> str:
    """`catalog.database.table` without the parts that are None."""
    return ".".join(part for part in parts if part is not None)


class NamePattern:
    """A compiled pattern of names: `*` any text, `.` any one character (so `.*` is a non-empty text), `|` between
    alternatives, case-insensitive. Immutable."""

    def __init__(self, pattern: str) -> None:
        """Raises MetaException above `limits.name_pattern_alternatives` or `name_pattern_characters`."""
        limits = input_limits()
        exact: set[str] = set()
        wild: dict[str, None] = {}
        for alternative in _alternatives(pattern):
            text = alternative.lower()
            if "*" in text or "." in text:
                if len(text) > limits.name_pattern_characters:
                    raise MetaException(
                        f"A pattern of names has an alternative of {len(text)} characters; "
                        f"{limits.name_pattern_characters} are allowed ({exceeded('name_pattern_characters')})"
                    )
                wild[text] = None
            else:
                exact.add(text)
        if len(wild) > limits.name_pattern_alternatives:
            setting = exceeded("name_pattern_alternatives")
            raise MetaException(
                f"A pattern of names may have {limits.name_pattern_alternatives} alternatives with wildcards"
                f" ({setting}), this one has {len(wild)}: ask in several calls, or for all names"
            )
        self._exact = frozenset(exact)
        self._patterns = tuple(WildcardPattern(map(_name_token, text), any_case=True) for text in wild)
        self.like_patterns: tuple[str, ...] | None = None
        """Lower-cased SQL LIKE patterns, escaped with `LIKE_ESCAPE`, that match at least every matching name. None:
        there are too many, select all names. Databases match LIKE by backtracking, in time that grows with the text's
        length for each `%`, so only the first two of a pattern are kept."""
        if len(exact) + len(wild) <= limits.name_pattern_alternatives:
            self.like_patterns = tuple(map(_like_pattern, (*sorted(exact), *wild)))

    def matches(self, name: str) -> bool:
        """Whether an alternative matches the whole name."""
        return name.lower() in self._exact or any(pattern.matches(name) for pattern in self._patterns)

    def select(self, names: Iterable[str]) -> list[str]:
        """The names that match, in their order."""
        names = list(names)
        if not self._exact and len(self._patterns) == 1:
            return self._patterns[0].select(names)
        found = {name for name in names if name.lower() in self._exact} if self._exact else set()
        for pattern in self._patterns:
            found.update(pattern.select(names))
        return [name for name in names if name in found]


def _alternatives(pattern: str) -> list[str]:
    # Java's String.split drops trailing empty texts, and an empty alternative matches nothing.
    return [part for part in (alternative.strip() for alternative in pattern.split("|")) if part]


def _name_token(character: str) -> str | Wildcard:
    return {"*": Wildcard.MANY, ".": Wildcard.ONE}.get(character, character)


def _like_pattern(alternative: str) -> str:
    text = alternative.replace(LIKE_ESCAPE, LIKE_ESCAPE * 2).replace("%", "\\%").replace("_", "\\_").replace(".", "_")
    while "**" in text:
        text = text.replace("**", "*")
    pieces = text.split("*")
    return "%".join(pieces[:2]) + "%" if len(pieces) > 3 else "%".join(pieces)


@lru_cache(maxsize=64)
def _kept_pattern(pattern: str) -> NamePattern:
    return NamePattern(pattern)


def name_pattern(pattern: str) -> NamePattern:
    """The compiled pattern; recent short ones are cached. Raises MetaException as `NamePattern`."""
    return _kept_pattern(pattern) if len(pattern) <= _LONGEST_KEPT_PATTERN else NamePattern(pattern)


_LONGEST_KEPT_PATTERN = 1_024


def is_among(names: Sequence[str], name: str) -> bool:
    """Whether a sorted sequence of names (by code point), possibly thousands, contains this one."""
    at = bisect_left(names, name)
    return at < len(names) and names[at] == name


def matching_names(names: Iterable[str], pattern: str | None) -> list[str]:
    """The names that match, ascending by code point; None (and `*`) matches all.

    Raises MetaException above `limits.name_pattern_alternatives`.
    """
    if pattern is None or pattern == "*":
        return sorted(names)
    return sorted(name_pattern(pattern).select(names))
