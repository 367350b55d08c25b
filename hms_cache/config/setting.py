"""Declarations of settings: all facts about a setting are in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from hms_cache.values import frozen

LARGEST_NUMBER: Final = 2**62
"""Of whole numbers without another upper bound. Databases take twice as much, and some statements ask for one more."""


@frozen
class SettingFacts:
    """The facts of a declaration in addition to type and default.

    ``unit`` is shown in the documents, and empty if the name ends in one (``_s``, ``_ms``, ``_bytes``). ``reason``
    explains the default. ``site_keys`` are the names of the same setting in ``hive-site.xml`` and
    ``metastore-site.xml``, the newest spelling first. ``reloadable``: a running server applies a new value on SIGHUP.
    ``from_site`` converts a site file's value to ours; it returns None if there is no corresponding value.
    """

    unit: str = ""
    reason: str = ""
    site_keys: tuple[str, ...] = ()
    reloadable: bool = False
    from_site: Callable[[str], str | None] | None = None


def setting(
    default: Any,
    *,
    unit: str = "",
    reason: str = "",
    site_keys: tuple[str, ...] = (),
    reloadable: bool = False,
    from_site: Callable[[str], str | None] | None = None,
    **constraints: Any,
) -> Any:
    """Declares a setting; the docstring below it describes it. ``constraints`` are pydantic's (``ge``, ``le``, …)."""
    if type(default) is int:
        constraints.setdefault("le", LARGEST_NUMBER)
    facts: Any = SettingFacts(unit, reason, site_keys, reloadable, from_site)
    return Field(default, json_schema_extra={"facts": facts}, **constraints)


def metastore_keys(name: str, *, before: str = "hive.metastore.") -> tuple[str, str]:
    """Returns a key of Hive 3 and later, ``metastore.`` and the name, and its older spelling, which is still valid."""
    return f"metastore.{name}", f"{before}{name}"


def hive_setting(
    default: Any,
    key: str,
    *,
    before: str = "hive.metastore.",
    unit: str = "",
    from_site: Callable[[str], str | None] | None = None,
    **constraints: Any,
) -> Any:
    """Declares a setting of Hive with Hive's default. See ``metastore_keys`` for ``key`` and ``before``."""
    return setting(
        default,
        unit=unit,
        reason="Hive's default.",
        site_keys=metastore_keys(key, before=before),
        from_site=from_site,
        **constraints,
    )


def facts_of(field: FieldInfo) -> SettingFacts:
    """Returns the :class:`SettingFacts` with which ``field`` was declared."""
    extra: Any = field.json_schema_extra
    facts: SettingFacts = extra["facts"]
    return facts


def description_of(field: FieldInfo) -> str:
    """Returns the docstring below the declaration of ``field``, on one line."""
    return " ".join((field.description or "").split())


class Section(BaseModel):
    """A group of settings. It is immutable, and unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True)
