"""Configuration under Hive's names, for ``get_config_value`` and ``getMetaConf``.

The data file beside this module lists the names and defaults of Hive 4.0.1's metastore settings (``MetastoreConf``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from hms_cache.config.settings import Configuration, SettingReference
from hms_cache.config.site_file import settings_by_site_key

#: Names whose values are nobody's business.
_SECRET = re.compile(r"(?i)password|passwd|secret|token\.value|credential|bindpw|keytab")

#: Encoder classes by message format: what a Hive client expects under metastore.event.message.factory.
_ENCODERS = {
    "json-0.2": "org.apache.hadoop.hive.metastore.messaging.json.JSONMessageEncoder",
    "gzip(json-2.0)": "org.apache.hadoop.hive.metastore.messaging.json.gzip.GzipJSONMessageEncoder",
}


#: Classes of Hive's that stand for values of ours; an empty one is none.
_CLASSES = {
    "catalog.metadata_translation": {
        "off": "",
        "hive4": "org.apache.hadoop.hive.metastore.MetastoreDefaultTransformer",
    },
    "catalog.storage_schema_reader": {
        "stored": "org.apache.hadoop.hive.metastore.SerDeStorageSchemaReader",
        "refuse": "org.apache.hadoop.hive.metastore.DefaultStorageSchemaReader",
    },
}

#: True of this server whatever is configured: every write is logged in its own transaction.
_IN_EFFECT = dict.fromkeys(
    ("metastore.transactional.event.listeners", "hive.metastore.transactional.event.listeners"),
    "org.apache.hive.hcatalog.listener.DbNotificationListener",
)


@cache
def hive_defaults() -> Mapping[str, str]:
    """Hive 4.0.1's default of each metastore setting, under its ``metastore.`` and its ``hive.`` name."""
    defaults: dict[str, str] = {}
    text = resources.files("hms_cache.config").joinpath("hive_defaults.tsv").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, hive_name, default = line.split("\t")
            defaults[name] = default
            defaults.setdefault(hive_name, default)
    return defaults


@cache
def _other_spellings() -> Mapping[str, tuple[str, ...]]:
    """For each of Hive's names the names it also goes by."""
    spellings: dict[str, set[str]] = {}
    text = resources.files("hms_cache.config").joinpath("hive_defaults.tsv").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, hive_name, _ = line.split("\t")
            if name != hive_name:
                spellings.setdefault(name, set()).add(hive_name)
                spellings.setdefault(hive_name, set()).add(name)
    return {name: tuple(sorted(others)) for name, others in spellings.items()}


class HiveValues:
    """What a metastore of Hive's would say its configuration is, were it configured like this server."""

    def __init__(self, configuration: Configuration) -> None:
        self._site = configuration.site
        self._settings = configuration.settings
        self._ours: Mapping[str, SettingReference] = settings_by_site_key()

    def get(self, name: str) -> str | None:
        """The value in force, or None where neither this server nor Hive 4.0.1 knows the name.

        A setting of ours that stands for ``name`` answers first (it is what is in force, wherever it was set), then the
        site file under any spelling, then Hive's default. Secrets are never told.
        """
        if _SECRET.search(name):
            return None
        reference = self._ours.get(name)
        if reference is not None and reference.section != "database":
            return self._in_hive_form(reference)
        for spelling in (name, *_other_spellings().get(name, ())):
            if spelling in self._site:
                return self._site[spelling]
        return _IN_EFFECT.get(name) or hive_defaults().get(name)

    def _in_hive_form(self, reference: SettingReference) -> str:
        value = getattr(getattr(self._settings, reference.section), reference.key)
        if reference.name == "events.message_format":
            return _ENCODERS[value]
        if reference.name in _CLASSES:
            return _CLASSES[reference.name][value]
        if reference.name == "transactions.min_history_level":
            return "false" if value == "off" else "true"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        if isinstance(value, float):
            unit = {"_s": "s", "_ms": "ms"}.get(re.sub(r".*(_[a-z]+)$", r"\1", reference.key), "")
            return f"{value:.0f}{unit}"
        return str(value)
