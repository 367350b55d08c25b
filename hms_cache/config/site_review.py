"""Finds the properties of a site file that this server does not honour."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from hms_cache.config.credential_providers import PATH
from hms_cache.config.database_url import masked
from hms_cache.config.hive_keys import is_metastore_key, keys_by_spelling
from hms_cache.config.secrets import MASK, is_secret_name
from hms_cache.config.site_file import SiteProperty, settings_by_site_key, site_value
from hms_cache.config.unhonoured import SiteReview, Unhonoured

_DATANUCLEUS = "datanucleus."
"""Hive passes all properties with this prefix to Java's database layer, also those that it does not know itself."""


def review(site: Mapping[str, SiteProperty], unread_providers: Sequence[str] = ()) -> SiteReview:
    """Reviews all properties; those that Hive's metastore would not read are skipped.

    `unread_providers`: why credential providers are not read.
    """
    insecure: list[Unhonoured] = []
    ignored: list[Unhonoured] = []
    harmless: list[str] = []
    mapped = settings_by_site_key()
    for name, found in site.items():
        if name == PATH:
            ignored.extend(_unhonoured(name, found, reason) for reason in unread_providers)
        if not is_metastore_key(name):
            continue
        if not found.value:
            harmless.append(name)
            continue
        if name in mapped:
            if site_value(mapped[name], found.value) is None and mapped[name].name != "cache.enabled":
                ignored.append(
                    _unhonoured(name, found, f"{mapped[name].name} has no such value, so its default applies")
                )
            elif mapped[name].name == "cache.enabled" and not _is_hive_store(found.value):
                ignored.append(_unhonoured(name, found, "Java classes are not supported"))
            continue
        key = keys_by_spelling().get(name)
        if key is None and name.startswith(_DATANUCLEUS):
            harmless.append(name)
        elif key is None:
            ignored.append(_unhonoured(name, found, f"no metastore of Hive 3.1 or 4.0 has this key{_suggestion(name)}"))
        elif key.action in ("harmless", "mapped") or key.agrees_with(found.value):
            harmless.append(name)
        else:
            (insecure if key.action == "insecure" else ignored).append(_unhonoured(name, found, key.note))
    return SiteReview(tuple(insecure), tuple(ignored), tuple(harmless))


def _is_hive_store(class_name: str) -> bool:
    return class_name.rpartition(".")[2] in ("ObjectStore", "CachedStore")


def _unhonoured(name: str, found: SiteProperty, note: str) -> Unhonoured:
    return Unhonoured(name, MASK if is_secret_name(name) else masked(found.value), found.file, note)


def _suggestion(name: str) -> str:
    close = difflib.get_close_matches(name, keys_by_spelling(), n=1, cutoff=0.9)
    return f"; did you mean {close[0]}?" if close else ""
