"""Options of sources, which are all texts; and options of tables that ``CREATE TABLE … USING`` made."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hms_cache.config.database_url import secrets_of, with_credentials
from hms_cache.errors import ConfigurationError
from hms_cache.values import frozen

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

SAVED_OPTIONS = "hms_cache.options"
"""Metadata of a schema's first column: the options of the table, as JSON."""


@frozen
class SliceSize:
    """How much one task reads at most."""

    tables: int
    partitions: int

    def changed_by(self, options: Mapping[str, str]) -> SliceSize:
        """As the options ``tables_per_slice`` and ``partitions_per_slice`` say. Raises ConfigurationError."""
        return SliceSize(
            positive(options, "tables_per_slice", self.tables),
            positive(options, "partitions_per_slice", self.partitions),
        )


def positive(options: Mapping[str, str], name: str, default: int) -> int:
    """A whole number of at least 1. Raises ConfigurationError."""
    number = optional_number(options, name)
    if number is None:
        return default
    if number < 1:
        raise ConfigurationError(f"{name} must be at least 1: {number}")
    return number


def optional_number(options: Mapping[str, str], name: str) -> int | None:
    """A whole number, None if the option is not given. Raises ConfigurationError."""
    text = options.get(name)
    if text is None or not str(text).strip():
        return None
    try:
        return int(str(text).strip())
    except ValueError as error:
        raise ConfigurationError(f"{name} must be a whole number: {text!r}") from error


def database_url(options: Mapping[str, str]) -> str | None:
    """The option ``database``, with the password that the variable of the environment named by ``password_variable``
    holds. Raises ConfigurationError."""
    url, variable = options.get("database"), options.get("password_variable")
    if not url or not variable:
        return url or None
    if variable not in os.environ:
        raise ConfigurationError(f"password_variable: the environment has no {variable}")
    return with_credentials(url, None, os.environ[variable])


def chosen_columns(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The columns that the option ``columns`` names, in its order; all without it. Raises ConfigurationError."""
    from pyspark.sql.types import StructType

    names = [name.strip() for name in (options.get("columns") or "").split(",") if name.strip()]
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise ConfigurationError(f"there is no column {', '.join(unknown)}; there are {', '.join(schema.names)}")
    return StructType([schema[name] for name in dict.fromkeys(names or schema.names)])


def column_positions(asked: StructType, schema: StructType) -> list[int]:
    """Where the columns of `asked` are in `schema`. Raises ConfigurationError for one of another name or type."""
    positions = []
    for column in asked.fields:
        if column.name not in schema.names or column.dataType != schema[column.name].dataType:
            raise ConfigurationError(
                f"the source has no column {column.name} {column.dataType.simpleString()}; it has "
                + ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in schema.fields)
            )
        positions.append(schema.names.index(column.name))
    return positions


def with_saved_options(schema: StructType, options: Mapping[str, str], names: Sequence[str]) -> StructType:
    """The schema, carrying those of the options that have these names.

    Spark keeps a table's schema and hands it to the source; its OPTIONS it keeps and does not hand over
    (`V2SessionCatalog` and `PythonTable` of 4.1). A URL with a password is not carried: whoever may read the table may
    read its schema.
    """
    from pyspark.sql.types import StructField, StructType

    given = {str(name).lower(): value for name, value in options.items()}
    kept = {name: str(given[name]) for name in names if given.get(name)}
    if secrets_of(kept.get("database", "")):
        kept["database"] = ""
    first, *others = schema.fields
    metadata = {**(first.metadata or {}), SAVED_OPTIONS: json.dumps(kept)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def all_options(options: Mapping[str, str], schema: StructType, session_auth: str = "") -> dict[str, str]:
    """The options, and those that the schema carries, by their names in lower case. `session_auth`: the option `auth`
    where neither has it. Raises ConfigurationError."""
    given = {str(name).lower(): value for name, value in options.items()}
    saved: dict[str, str] = {}
    for column in schema.fields:
        saved = json.loads((column.metadata or {}).get(SAVED_OPTIONS, "{}")) or saved
    if not (given.get("metastore") or given.get("database")):
        if saved.get("database") == "":
            raise ConfigurationError(
                "a table keeps no password: drop it, and make it with the URL of the database without the password and "
                "the option password_variable, the name of the variable of the environment that holds it"
            )
        given = saved | given
    if given.get("metastore") and not given.get("auth"):
        given["auth"] = session_auth
    return given
