"""Options of sources, which are all texts, and their storage in tables created by ``CREATE TABLE … USING``."""

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
"""Key in the metadata of a schema's first column, whose value contains the table's options as JSON."""


@frozen
class SliceSize:
    """The maximum that one task reads."""

    tables: int
    partitions: int

    def changed_by(self, options: Mapping[str, str]) -> SliceSize:
        """Applies the options ``tables_per_slice`` and ``partitions_per_slice``. Raises ConfigurationError."""
        return SliceSize(
            positive(options, "tables_per_slice", self.tables),
            positive(options, "partitions_per_slice", self.partitions),
        )


def positive(options: Mapping[str, str], name: str, default: int) -> int:
    """Returns a whole number of at least 1. Raises ConfigurationError."""
    number = optional_number(options, name)
    if number is None:
        return default
    if number < 1:
        raise ConfigurationError(f"{name} must be at least 1: {number}")
    return number


def optional_number(options: Mapping[str, str], name: str) -> int | None:
    """Returns a whole number, or None if the option is missing. Raises ConfigurationError."""
    text = options.get(name)
    if text is None or not str(text).strip():
        return None
    try:
        return int(str(text).strip())
    except ValueError as error:
        raise ConfigurationError(f"{name} must be a whole number: {text!r}") from error


def database_url(options: Mapping[str, str]) -> str | None:
    """Returns the URL of the option ``database``, with the password from the environment variable that the option
    ``password_variable`` names. Raises ConfigurationError."""
    url, variable = options.get("database"), options.get("password_variable")
    if not url or not variable:
        return url or None
    if variable not in os.environ:
        raise ConfigurationError(f"password_variable: the environment variable {variable} is not set")
    return with_credentials(url, None, os.environ[variable])


def chosen_columns(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Returns the columns named by the option ``columns``, in its order; without it, all. Raises ConfigurationError."""
    from pyspark.sql.types import StructType

    names = [name.strip() for name in (options.get("columns") or "").split(",") if name.strip()]
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise ConfigurationError(f"there is no column {', '.join(unknown)}; there are {', '.join(schema.names)}")
    return StructType([schema[name] for name in dict.fromkeys(names or schema.names)])


def column_positions(requested: StructType, schema: StructType) -> list[int]:
    """Returns the indexes in `schema` of the columns of `requested`. Raises ConfigurationError for a column whose name
    or type differs."""
    positions = []
    for column in requested.fields:
        if column.name not in schema.names or column.dataType != schema[column.name].dataType:
            raise ConfigurationError(
                f"the source has no column {column.name} {column.dataType.simpleString()}; it has "
                + ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in schema.fields)
            )
        positions.append(schema.names.index(column.name))
    return positions


def with_saved_options(schema: StructType, options: Mapping[str, str], names: Sequence[str]) -> StructType:
    """Stores the options with these names in the schema's metadata.

    Spark stores a table's schema and its OPTIONS, but passes only the schema to the source (`V2SessionCatalog` and
    `PythonTable` of 4.1). A URL with a password is not stored, because everyone who may read the table can read its
    schema.
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
    """Merges the options with those stored in the schema, by their names in lower case. Raises ConfigurationError.

    :param session_auth: value of the option `auth` if neither has it.
    """
    given = {str(name).lower(): value for name, value in options.items()}
    saved: dict[str, str] = {}
    for column in schema.fields:
        saved = json.loads((column.metadata or {}).get(SAVED_OPTIONS, "{}")) or saved
    if not (given.get("metastore") or given.get("database")):
        if saved.get("database") == "":
            raise ConfigurationError(
                "a table stores no password: drop the table, and create it with a database URL without the password "
                "and the option password_variable, the name of the environment variable that contains it"
            )
        given = saved | given
    if given.get("metastore") and not given.get("auth"):
        given["auth"] = session_auth
    return given
