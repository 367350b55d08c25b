"""``hive-site.xml`` and ``metastore-site.xml``: reading them, and which of our settings their keys stand for."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

from hms_cache.config.setting import facts_of
from hms_cache.config.settings import SettingReference, all_settings
from hms_cache.errors import ConfigurationError
from hms_cache.values import frozen

_VARIABLE = re.compile(r"\$\{([^${}\s]+)\}")
#: Hadoop gives up at this depth too: a property that refers to itself would never end.
_MAX_SUBSTITUTIONS = 20
_PROXY_USERS = "hadoop.proxyuser."
#: Of all texts of a file. A whole cluster's site has some 100,000.
_MOST_CHARACTERS = 1 << 20


@frozen
class SiteProperty:
    """A property of a site file, variables replaced."""

    name: str
    value: str
    file: str


def read_site_files(paths: tuple[Path, ...], environment: Mapping[str, str] | None = None) -> dict[str, SiteProperty]:
    """All properties by name; a later file wins over an earlier one, unless the earlier one says ``<final>``.

    ``${name}`` is replaced as Hadoop does: ``${env.NAME}`` and ``${env:NAME}`` from the environment, Java's
    ``${user.name}``, ``${user.home}`` and ``${java.io.tmpdir}`` (with or without ``system:``), else another property;
    what is unknown stays as it is. Raises :class:`ConfigurationError` for a file that is missing or is not XML.
    """
    environment = os.environ if environment is None else environment
    raw: dict[str, SiteProperty] = {}
    final: set[str] = set()
    for path in paths:
        for name, value, is_final in _properties(path):
            if name not in final:
                raw[name] = SiteProperty(name, value, str(path))
            if is_final:
                final.add(name)
    return {
        name: SiteProperty(name, _substituted(found.value, raw, environment), found.file) for name, found in raw.items()
    }


class _BoundedTree(ElementTree.TreeBuilder):
    """A tree whose texts are counted as they come: entities that name each other make a line of XML 70 MB long."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._characters = 0

    def data(self, data: str, /) -> None:
        """A part of a text, its entities replaced."""
        self._characters += len(data)
        if self._characters > _MOST_CHARACTERS:
            raise ConfigurationError(f"{self._path}: its texts have more than {_MOST_CHARACTERS:,} characters")
        super().data(data)


def _properties(path: Path) -> list[tuple[str, str, bool]]:
    try:
        root = ElementTree.fromstring(path.read_bytes(), ElementTree.XMLParser(target=_BoundedTree(path)))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except ElementTree.ParseError as error:
        raise ConfigurationError(f"{path}: is not XML: {error}") from error
    if root.tag != "configuration":
        raise ConfigurationError(f"{path}: is no Hadoop configuration file: its root is <{root.tag}>")
    found = []
    for element in root.iter("property"):
        name = (element.findtext("name") or "").strip()
        value = element.findtext("value")
        if name and value is not None:
            found.append((name, value.strip(), (element.findtext("final") or "").strip() == "true"))
    return found


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
                if len(value) + len(replacement) > _MOST_CHARACTERS:
                    raise ConfigurationError(
                        f"a value of a site file has more than {_MOST_CHARACTERS:,} characters: {value[:80]}…"
                    )
                value = value[: match.start()] + replacement + value[match.end() :]
                break
        else:
            break
    return value


def settings_by_site_key() -> dict[str, SettingReference]:
    """Each site-file key we honour and the setting it stands for."""
    return {key: reference for reference in all_settings() for key in facts_of(reference.field).site_keys}


def site_value(reference: SettingReference, text: str) -> str | None:
    """A site file's value in our words; None where the setting has no such value."""
    from_site = facts_of(reference.field).from_site
    return from_site(text) if from_site is not None else text


def settings_of_site(site: Mapping[str, SiteProperty]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """What the site file sets, as (section → key → text, ``section.key`` → origin).

    Where both spellings of one key are there, the newer (``metastore.``) wins, as in Hive. An empty value is no value.
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
    return values, origins


def _proxy_users(site: Mapping[str, SiteProperty]) -> str:
    """The rules of `hadoop.proxyuser.NAME.users`, `.groups` and `.hosts`, which have no name of their own to map."""
    found: dict[str, list[str]] = {}
    for key in sorted(site):
        name, _, part = key.removeprefix(_PROXY_USERS).rpartition(".")
        if key.startswith(_PROXY_USERS) and name and part in ("users", "groups", "hosts"):
            found.setdefault(name, []).append(f"{part}={''.join(site[key].value.split())}")
    return "; ".join(f"{name} {' '.join(parts)}" for name, parts in found.items())
