"""How a setting is declared: everything that is known about it stands in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from hms_cache.values import frozen


@frozen
class SettingFacts:
    """What a declaration says beside type and default.

    ``unit`` is shown in the documents, and empty where the name ends in one (``_s``, ``_ms``, ``_bytes``). ``reason``
    says why the default is what it is. ``site_keys`` are the names of the same setting in ``hive-site.xml`` and
    ``metastore-site.xml``, the newest spelling first. ``reloadable``: a running server takes a new value on SIGHUP.
    ``from_site`` translates a site file's value into ours; it returns None where there is no such value here.
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
    """A field of a section, which the text below it describes. ``constraints`` are pydantic's (``ge``, ``le``, …)."""
    facts: Any = SettingFacts(unit, reason, site_keys, reloadable, from_site)
    return Field(default, json_schema_extra={"facts": facts}, **constraints)


def metastore_keys(name: str, *, before: str = "hive.metastore.") -> tuple[str, str]:
    """A key of Hive 3 and later, ``metastore.`` with the name, and its spelling until then, which still counts."""
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
    """A setting of Hive's, with Hive's default. ``key`` and ``before`` are as of ``metastore_keys``."""
    return setting(
        default,
        unit=unit,
        reason="Hive's default.",
        site_keys=metastore_keys(key, before=before),
        from_site=from_site,
        **constraints,
    )


def facts_of(field: FieldInfo) -> SettingFacts:
    """The :class:`SettingFacts` that ``field`` was declared with."""
    extra: Any = field.json_schema_extra
    facts: SettingFacts = extra["facts"]
    return facts


def description_of(field: FieldInfo) -> str:
    """The text below the declaration of ``field``, on one line."""
    return " ".join((field.description or "").split())


class Section(BaseModel):
    """A group of settings: frozen, and a name it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True)
