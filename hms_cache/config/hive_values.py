"""The configuration under Hive's names, for ``get_config_value`` and ``getMetaConf``. See `hive_keys`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from hms_cache.config.database_url import masked
from hms_cache.config.hive_keys import keys_by_spelling
from hms_cache.config.quantities import whole_seconds
from hms_cache.config.secrets import is_secret_name, redacted
from hms_cache.config.sections.cache import expression_of
from hms_cache.config.settings import Configuration, SettingReference
from hms_cache.config.site_file import settings_by_site_key

#: Encoder classes by message format, as Hive's clients expect them in metastore.event.message.factory.
_ENCODERS = {
    "json-0.2": "org.apache.hadoop.hive.metastore.messaging.json.JSONMessageEncoder",
    "gzip(json-2.0)": "org.apache.hadoop.hive.metastore.messaging.json.gzip.GzipJSONMessageEncoder",
}


#: Hive's classes and lists that correspond to values of our settings; an empty text stands for none.
_HIVE_WORDS = {
    "authentication.plain": {"off": "NOSASL", "ldap": "LDAP"},
    "server.tls_minimum_version": {"1.2": "SSLv2,SSLv3,TLSv1,TLSv1.1", "1.3": "SSLv2,SSLv3,TLSv1,TLSv1.1,TLSv1.2"},
    "catalog.metadata_translation": {
        "off": "",
        "access": "",
        "hive4": "org.apache.hadoop.hive.metastore.MetastoreDefaultTransformer",
    },
    "catalog.storage_schema_reader": {
        "stored": "org.apache.hadoop.hive.metastore.SerDeStorageSchemaReader",
        "refuse": "org.apache.hadoop.hive.metastore.DefaultStorageSchemaReader",
    },
}

#: Hive's store classes, by whether a cache is enabled.
_STORES = {
    False: "org.apache.hadoop.hive.metastore.ObjectStore",
    True: "org.apache.hadoop.hive.metastore.cache.CachedStore",
}

#: Prefixes of Java's database layer, whose settings include the database's password.
_NEVER_RETURNED = ("javax.jdo.", "datanucleus.")


class HiveValues:
    """The configuration that Hive's metastore would report if it was configured like this server."""

    def __init__(self, configuration: Configuration) -> None:
        self._site = configuration.site
        self._settings = configuration.settings
        self._ours: Mapping[str, SettingReference] = settings_by_site_key()

    def get(self, name: str) -> str | None:
        """Returns the value in effect, or None if neither this server nor Hive knows the name.

        A corresponding setting of this server takes precedence: it is in effect, wherever it was set. For a setting
        that this server does not honour, the answer describes what it does, never what the site file requests.
        Otherwise, the value is the site file's, under any spelling, or Hive's default. Secrets are never returned: no
        values under names of secrets, none of the secrets of this process, and no passwords in URLs, which a site file
        may also contain for other databases.
        """
        if is_secret_name(name):
            return None
        reference = self._ours.get(name)
        if reference is not None and not name.startswith(_NEVER_RETURNED):
            return self._in_hive_form(reference)
        key = keys_by_spelling().get(name)
        if key is not None and key.action in ("ignored", "insecure"):
            return key.in_force[0] if key.in_force else None
        for spelling in (name, key.name, key.older_name) if key is not None else (name,):
            if spelling in self._site:
                return redacted(masked(self._site[spelling]))
        return key.default if key is not None and not name.startswith(_NEVER_RETURNED) else None

    def _in_hive_form(self, reference: SettingReference) -> str:
        value = getattr(getattr(self._settings, reference.section), reference.key)
        if reference.name == "events.message_format":
            return _ENCODERS[value]
        if reference.name == "cache.enabled":
            return _STORES[value]
        if reference.name in ("cache.include", "cache.exclude"):
            return ",".join(_in_hive_expression(pattern) for pattern in value)
        if reference.name in _HIVE_WORDS:
            return _HIVE_WORDS[reference.name][value]
        if reference.name == "transactions.min_history_level":
            return "false" if value == "off" else "true"
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        if isinstance(value, float) or (isinstance(value, int) and reference.key.endswith(("_s", "_ms"))):
            unit = {"_s": "s", "_ms": "ms"}.get("_" + reference.key.rpartition("_")[2], "")
            if unit == "s":
                return _in_hive_time(value)
            return f"{int(value) if float(value).is_integer() else value}{unit}"
        return str(value)


def _in_hive_time(seconds: float) -> str:
    """Returns whole numbers of a unit, as Java needs them; a century for infinity, which Java does not have."""
    if seconds.is_integer() or math.isinf(seconds):
        return f"{whole_seconds(seconds)}s"
    return f"{seconds * 1e6:.0f}us"


def _in_hive_expression(pattern: str) -> str:
    """Converts one of our patterns to Hive's regular expression over catalog.database.table."""
    expression = expression_of(pattern)
    if expression is not None:
        return expression
    return "".join({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in pattern)
