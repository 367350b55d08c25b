"""Reads ``hive-site.xml`` and ``metastore-site.xml``, and maps their keys to settings."""

from __future__ import annotations

import math
import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from hms_cache.config.hive_keys import keys_by_spelling
from hms_cache.config.quantities import parse_duration_s
from hms_cache.config.setting import facts_of, metastore_keys
from hms_cache.config.settings import SettingReference, all_settings
from hms_cache.errors import ConfigurationError
from hms_cache.values import frozen

_VARIABLE = re.compile(r"\$\{([^${}\s]+)\}")
#: Hadoop uses the same limit: a property that refers to itself would never end.
_MAX_SUBSTITUTIONS = 20
_PROXY_USERS = "hadoop.proxyuser."
_KEEPS_FILES_FOR_REPLICATION = metastore_keys("repl.cm.enabled", before="hive.")
_KEPT_FOR_REPLICATION = metastore_keys("repl.event.db.listener.timetolive", before="hive.")
_BARE_NUMBER = re.compile(r"([+-]?\d+)\s*[lL]?")
#: A time with its unit, as Hive's defaults are written.
_TIME = re.compile(r"\d+(ns|us|ms|s|m|h|d)")
#: Maximum for all texts of a file. The site file of a whole cluster has some 100,000 characters.
_MAX_CHARACTERS = 1 << 20


@frozen
class SiteProperty:
    """A property of a site file, with its variables replaced."""

    name: str
    value: str
    file: str


def read_site_files(paths: tuple[Path, ...], environment: Mapping[str, str] | None = None) -> dict[str, SiteProperty]:
    """Returns all properties by name. A later file overrides an earlier one, except properties marked ``<final>``.

    ``${name}`` is replaced as in Hadoop: ``${env.NAME}`` and ``${env:NAME}`` from the environment, Java's
    ``${user.name}``, ``${user.home}`` and ``${java.io.tmpdir}`` (with or without ``system:``), or by another property.
    An unknown variable is not replaced. Raises :class:`ConfigurationError` if a file is missing or is not XML.
    """
    environment = os.environ if environment is None else environment
    raw: dict[str, SiteProperty] = {}
    final: set[str] = set()
    for path in paths:
        for one in _properties(path):
            if one.name not in final:
                raw[one.name] = SiteProperty(one.name, one.value, str(one.file))
            if one.is_final:
                final.add(one.name)
    return {
        name: SiteProperty(name, _substituted(found.value, raw, environment), found.file) for name, found in raw.items()
    }


class _BoundedTree(ElementTree.TreeBuilder):
    """A tree with a limit on the size of its texts: with nested entities, one line of XML can expand to 70 MB."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._characters = 0

    def data(self, data: str, /) -> None:
        """Adds a part of a text, with entities replaced."""
        self._characters += len(data)
        if self._characters > _MAX_CHARACTERS:
            raise ConfigurationError(f"{self._path}: it contains more than {_MAX_CHARACTERS:,} characters of text")
        super().data(data)


class _Property(NamedTuple):
    name: str
    value: str
    file: Path
    is_final: bool


def _properties(path: Path, includes: tuple[str, ...] = ()) -> Iterator[_Property]:
    """Yields all properties in order, as Hadoop's `Configuration.Parser` reads them: the parts of a property may be
    attributes, and ``<include href="…">`` is replaced by the contents of that file.

    :param includes: the files that include this one.
    """
    real_path = os.path.realpath(path)
    if real_path in includes:
        raise ConfigurationError(f"{path}: includes itself")
    try:
        root = ElementTree.fromstring(path.read_bytes(), ElementTree.XMLParser(target=_BoundedTree(path)))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # the last two are for encodings
        raise ConfigurationError(f"{path}: is not XML: {error}") from error
    if root.tag != "configuration":
        raise ConfigurationError(f"{path}: is not a Hadoop configuration file: its root is <{root.tag}>")
    yield from _properties_in(root, path, (*includes, real_path))


def _properties_in(element: ElementTree.Element, path: Path, includes: tuple[str, ...]) -> Iterator[_Property]:
    for child in element:
        kind = _local_name(child)
        if kind == "property":
            parts = child.attrib | {_local_name(part): part.text or "" for part in child}
            name = parts.get("name", "").strip()
            if name and "value" in parts:
                yield _Property(name, parts["value"].strip(), path, parts.get("final", "").strip() == "true")
        elif kind == "include":
            yield from _included(child, path, includes)
        else:
            yield from _properties_in(child, path, includes)


def _included(include: ElementTree.Element, path: Path, includes: tuple[str, ...]) -> Iterator[_Property]:
    """Yields the properties of an included file, whose path is relative to the directory of this one, or of the
    fallback if the file does not exist."""
    file = path.parent / include.get("href", "")
    if _is_there(file):
        yield from _properties(file, includes)
        return
    fallbacks = [child for child in include if _local_name(child) == "fallback"]
    if not fallbacks:
        raise ConfigurationError(f"{path}: includes {file}, which does not exist")
    for fallback in fallbacks:
        yield from _properties_in(fallback, path, includes)


def _is_there(file: Path) -> bool:
    """Whether the file exists. True if this user may not know: reading it then gives the reason."""
    try:
        return file.exists()
    except OSError:
        return True


def _local_name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _substituted(value: str, properties: Mapping[str, SiteProperty], environment: Mapping[str, str]) -> str:
    def known(name: str) -> str | None:
        if name.startswith(("env.", "env:")):
            variable, _, fallback = name[4:].partition(":-")
            return environment.get(variable) or (fallback or None)
        system = {
            "user.name": environment.get("USER") or environment.get("LOGNAME"),
            "user.home": environment.get("HOME"),
            "java.io.tmpdir": environment.get("TMPDIR", "/tmp"),
        }
        if name.removeprefix("system:") in system:
            return system[name.removeprefix("system:")]
        return properties[name].value if name in properties else None

    for _ in range(_MAX_SUBSTITUTIONS):
        for match in _VARIABLE.finditer(value):
            replacement = known(match[1])
            if replacement is not None:
                if len(value) + len(replacement) > _MAX_CHARACTERS:
                    raise ConfigurationError(
                        f"a value of a site file has more than {_MAX_CHARACTERS:,} characters: {value[:80]}…"
                    )
                value = value[: match.start()] + replacement + value[match.end() :]
                break
        else:
            break
    return value


@cache
def settings_by_site_key() -> Mapping[str, SettingReference]:
    """Returns the honoured keys of site files with the corresponding settings."""
    return {key: reference for reference in all_settings() for key in facts_of(reference.field).site_keys}


def site_value(reference: SettingReference, text: str) -> str | None:
    """Converts a site file's value to ours; None if the setting has no such value."""
    from_site = facts_of(reference.field).from_site
    found = from_site(text) if from_site is not None else text
    return None if found is None else _with_unit_of_hive(facts_of(reference.field).site_keys, found)


def _with_unit_of_hive(keys: Iterable[str], text: str) -> str:
    """Adds the unit of Hive's default, which may be days, to a time without a unit. Like HiveConf, accepts an L after
    the number."""
    number = _BARE_NUMBER.fullmatch(text.strip())
    for name in keys if number is not None else ():
        key = keys_by_spelling().get(name)
        time = _TIME.fullmatch(key.default) if key is not None else None
        if number is not None and time is not None:
            return number[1] + time[1]
    return text


def settings_of_site(site: Mapping[str, SiteProperty]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Returns the settings from the site files, as (section → key → text, ``section.key`` → origin).

    If both spellings of a key are present, the newer one (``metastore.``) takes precedence, as in Hive. Empty values
    are ignored.
    """
    values: dict[str, dict[str, str]] = {}
    origins: dict[str, str] = {}
    for reference in all_settings():
        for key in facts_of(reference.field).site_keys:
            found = site.get(key)
            value = site_value(reference, found.value) if found is not None and found.value else None
            if found is not None and value is not None:
                values.setdefault(reference.section, {})[reference.key] = value
                origins[reference.name] = f"{found.file} ({key})"
                break
    proxy_users = _proxy_users(site)
    if proxy_users:
        values.setdefault("authentication", {})["proxy_users"] = proxy_users
        origins["authentication.proxy_users"] = f"{_PROXY_USERS}*"
    retention = _retention_for_replication(site, values.get("events", {}).get("retention_s"))
    if retention is not None:
        values.setdefault("events", {})["retention_s"], origins["events.retention_s"] = retention
    return values, origins


def _first(site: Mapping[str, SiteProperty], keys: Iterable[str]) -> SiteProperty | None:
    return next((site[key] for key in keys if key in site and site[key].value), None)


def _retention_for_replication(site: Mapping[str, SiteProperty], usual: str | None) -> tuple[str, str] | None:
    """Returns how long events are kept if files are kept for replication, with the origin of the value; None: no longer
    than usual.

    In this case, Hive 4 uses another setting, whose default is ten days, and Hive 3.1 the usual one (`usual`, if the
    site file sets it). The longer time applies, because a replication that has missed events has to start again with a
    full dump.
    """
    switch = _first(site, _KEEPS_FILES_FOR_REPLICATION)
    if switch is None or switch.value.strip().lower() != "true":
        return None
    found = _first(site, _KEPT_FOR_REPLICATION)
    if found is None:
        value, origin = keys_by_spelling()[_KEPT_FOR_REPLICATION[0]].default, switch
    else:
        value, origin = _with_unit_of_hive(_KEPT_FOR_REPLICATION, found.value), found
    if usual is not None and _seconds(usual) >= _seconds(value):
        return None
    return value, f"{origin.file} ({origin.name})"


def _seconds(text: str) -> float:
    """Parses a time. Returns infinity for an invalid text, which is reported when the settings are read."""
    try:
        return parse_duration_s(text, "s")
    except ValueError:
        return math.inf


def _proxy_users(site: Mapping[str, SiteProperty]) -> str:
    """Converts `hadoop.proxyuser.NAME.users`, `.groups` and `.hosts`, which cannot be mapped by name, to the rules of
    the setting."""
    found: dict[str, list[str]] = {}
    for key in sorted(site):
        name, _, part = key.removeprefix(_PROXY_USERS).rpartition(".")
        if key.startswith(_PROXY_USERS) and name and part in ("users", "groups", "hosts"):
            found.setdefault(name, []).append(f"{part}={''.join(site[key].value.split())}")
    return "; ".join(f"{name} {' '.join(parts)}" for name, parts in found.items())
