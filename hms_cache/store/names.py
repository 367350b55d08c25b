"""Names of metastore objects: how they are normalized, checked, matched and turned into directory names.

Facts: `MetaStoreUtils.validateName`, `MetaStoreUtils.encodeTableName`, `StringUtils.normalizeIdentifier`,
`ObjectStore.appendPatternCondition` (Hive 3.1 and 4.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

DEFAULT_CATALOG = "hive"
"""The catalog of every call that names none."""

DEFAULT_DATABASE = "default"
"""The database that exists in every catalog."""

DATABASE_DIRECTORY_SUFFIX = ".db"

LIKE_ESCAPE = "\\"
"""The escape character of the patterns that `like_patterns` makes; give it to `ColumnElement.like(escape=…)`."""

_SPECIAL_CHARACTERS = " \"%&'()*+,-./:;<=>?[]_|{}$^!~#@`"
_PLAIN_NAME = re.compile(r"\A[A-Za-z0-9_]+\Z")
_SPECIAL_NAME = re.compile(r"\A[A-Za-z0-9_" + re.escape(_SPECIAL_CHARACTERS) + r"]+\Z")


def normalize_identifier(name: str) -> str:
    """The name as it is stored: without blanks around it, in lower case."""
    return name.strip().lower()


def is_valid_name(name: str | None, *, special_characters: bool = True) -> bool:
    """Whether a database, table or function may have this name.

    ASCII letters, digits and `_`; with `special_characters` (`metastore.support.special.characters.tablenames`, on by
    default) ASCII punctuation and the blank as well. Catalogs never have special characters.
    """
    if not name:
        return False
    return bool((_SPECIAL_NAME if special_characters else _PLAIN_NAME).match(name))


def table_directory_name(table: str) -> str:
    """The last part of a table's default location: special characters become `-<code point>-`, as Hive writes them."""
    return "".join(c if c.isalnum() or c == "_" else f"-{ord(c)}-" for c in table.lower())


def database_directory_name(database: str) -> str:
    """The last part of a database's default location."""
    return database.lower() + DATABASE_DIRECTORY_SUFFIX


def qualified(*parts: str | None) -> str:
    """`catalog.database.table` without the parts that are None."""
    return ".".join(part for part in parts if part is not None)


def _alternatives(pattern: str) -> list[str]:
    # Java's String.split drops trailing empty texts; an empty alternative matches nothing.
    return [part for part in (alternative.strip() for alternative in pattern.split("|")) if part]


@lru_cache(maxsize=512)
def name_pattern(pattern: str) -> re.Pattern[str]:
    """A Hive name pattern as a regular expression for whole names.

    `*` stands for any text, `.` for any one character (so `.*` for a text that is not empty), `|` separates
    alternatives, case is ignored.
    """
    texts = []
    for alternative in _alternatives(pattern):
        expression: list[str] = []
        for character in alternative:
            if character == "*":
                expression.append(".*")
            elif character == ".":
                expression.append(".")
            else:
                expression.append(re.escape(character))
        texts.append("".join(expression))
    return re.compile("|".join(f"(?:{text})" for text in texts) if texts else r"(?!)", re.IGNORECASE | re.DOTALL)


def matching_names(names: Iterable[str], pattern: str | None) -> list[str]:
    """The names that match, ascending by code point; None (and `*`) matches all."""
    if pattern is None or pattern == "*":
        return sorted(names)
    match = name_pattern(pattern).fullmatch
    return sorted(name for name in names if match(name))


@lru_cache(maxsize=512)
def like_patterns(pattern: str) -> tuple[str, ...]:
    """The same pattern as SQL LIKE patterns, one per alternative, lower-cased, escaped with `LIKE_ESCAPE`.

    They let at least every matching name through; `matching_names` decides.
    """
    patterns = []
    for alternative in _alternatives(pattern):
        text = alternative.lower().replace(LIKE_ESCAPE, LIKE_ESCAPE * 2).replace("%", "\\%").replace("_", "\\_")
        text = text.replace(".", "_").replace("*", "%")
        patterns.append(text)
    return tuple(patterns)
