"""Generates the reference page of the settings and the commented example file from the declarations.

``python -m hms_cache.config.reference`` writes ``docs/configuration.md`` and ``conf/hms-cache.toml``. A test checks
that they are up to date.
"""

from __future__ import annotations

import sys
import textwrap
import types
import typing
from pathlib import Path
from typing import Any

from hms_cache.config.setting import Section, description_of, facts_of
from hms_cache.config.settings import SettingReference, all_settings, section_types, shown

_INTRODUCTION = """\
# Configuration

Written from the declarations in `hms_cache/config/sections/` by `make generate`.

The value of a setting comes from the first of these sources that has one:

1. the command line: `hms-cache serve --port 9083`; any setting as `--set section.key=value`
2. the environment: `HMS_CACHE__SECTION__KEY`
3. the TOML file that `--config` or `HMS_CACHE_CONFIG` names: `[section]`, `key = value`
4. `hive-site.xml` / `metastore-site.xml`, each named with `--site`: the keys listed with each setting as "site file"
5. the default

`hms-cache config print` shows every value with its source, `hms-cache config check` all problems at once. A name that
does not exist is an error with a suggestion. `config check --site` reports every key of Hive's metastore in a site file
that is not honoured, with the reason. If such a key asks for protection that this server does not give (SASL, TLS,
authorization, filters), the server does not start, unless `security.accept_insecure` is set. Clients can read keys of
the site file with `get_config_value`; for a key that is not honoured, it returns the value in effect.

A number has the unit at the end of the setting's name; a number with another unit (`500ms`, `5 min`, `1d`, `100 MiB`)
is converted. In a site file, a time without a unit has the unit of Hive's default, which may be hours or days: see
[Compatibility](compatibility.md#settings-of-hives-that-are-honoured). Times without an upper bound accept `inf`. Lists
are TOML lists (also in environment variables and with `--set`), or one text with commas. Put secrets into files:
`password_file`, `token_file`. A running server applies changes of the settings marked *reload* on SIGHUP.
"""


def _default(reference: SettingReference) -> Any:
    """Returns the default as declared: a relative path stays relative, so that the page is the same on every
    machine."""
    return reference.field.default


def _form(reference: SettingReference) -> str:
    """Describes the values of the setting."""
    annotation = reference.field.annotation
    if typing.get_origin(annotation) is typing.Literal:
        return ", ".join(f"`{value}`" for value in typing.get_args(annotation))
    if typing.get_origin(annotation) is types.UnionType:
        return "path"
    names = {bool: "`true`, `false`", int: "number", float: "number", str: "text"}
    if typing.get_origin(annotation) is dict:
        return "table"
    if typing.get_origin(annotation) is tuple:
        return "list"
    return names.get(annotation, "text")  # type: ignore[arg-type]


def markdown() -> str:
    """Returns the text of ``docs/configuration.md``."""
    parts = [_INTRODUCTION]
    for section, section_type in section_types().items():
        parts.append(f"\n## [{section}]\n\n{section_type.__doc__}\n")
        for reference in all_settings():
            if reference.section == section:
                parts.append(_markdown_of(reference))
    return "".join(parts)


def _markdown_of(reference: SettingReference) -> str:
    facts = facts_of(reference.field)
    default = shown(_default(reference), reference.name)
    lines = [f"\n### {reference.name}\n", "", description_of(reference.field), ""]
    unit = reference.unit
    of_default = f" {unit}" if unit and default and default != "inf" and unit != "bytes" else ""
    lines.append(
        f"- default: {f'`{default}`' if default else 'empty'}{of_default}"
        + (f". {facts.reason}" if facts.reason else "")
    )
    lines.append(
        f"- values: {_form(reference)}" + (f" ({unit})" if unit else "") + (", *reload*" if facts.reloadable else "")
    )
    lines += _keys_of_tables(reference)
    lines.append(f"- environment: `{reference.environment_variable}`")
    if facts.site_keys:
        lines.append("- site file: " + ", ".join(f"`{key}`" for key in facts.site_keys))
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def _keys_of_tables(reference: SettingReference) -> list[str]:
    """If each element of the setting is a table, lists its keys."""
    (element, *_) = typing.get_args(reference.field.annotation) or (None,)
    if not (isinstance(element, type) and issubclass(element, Section)):
        return []
    lines = ["- keys of each table:"]
    for key, declared in element.model_fields.items():
        default = "required" if declared.is_required() else f"default `{shown(declared.default)}`"
        default = "default empty" if default == "default ``" else default
        lines.append(f"    - `{key}` ({default}): {description_of(declared)}")
    return lines


def toml() -> str:
    """Returns the text of ``conf/hms-cache.toml``: every setting with its default, commented out."""
    lines = ["# hms-cache.toml: every setting with its default. Remove the # before a setting to change it.", ""]
    for section, section_type in section_types().items():
        lines += [f"# {section_type.__doc__}", f"[{section}]"]
        for reference in all_settings():
            if reference.section == section:
                lines += textwrap.wrap(
                    description_of(reference.field), 118, initial_indent="# ", subsequent_indent="# "
                )
                lines.append(f"#{reference.key} = {_toml_value(_default(reference), reference)}")
        lines.append("")
    return "\n".join(lines)


def _toml_value(value: Any, reference: SettingReference) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{item}"' for item in value) + "]"
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float) and not reference.key.endswith("_bytes"):
        return f"{value:.0f}" if float(value).is_integer() else repr(value)
    return f'"{shown(value, reference.name)}"'


def main() -> None:
    """Writes both files into the checkout of this module."""
    root = Path(__file__).parents[2]
    for path, text in ((root / "docs" / "configuration.md", markdown()), (root / "conf" / "hms-cache.toml", toml())):
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(root)}\n")


if __name__ == "__main__":
    main()
