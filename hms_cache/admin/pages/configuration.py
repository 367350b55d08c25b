"""``/config``: every setting in force, with secrets masked."""

from __future__ import annotations

from collections.abc import Mapping

from hms_cache.admin.pages.context import PageContext
from hms_cache.config.setting import description_of, facts_of
from hms_cache.config.settings import DEFAULT_ORIGIN, all_settings
from hms_cache.values import frozen


@frozen
class SettingInForce:
    """A setting. ``reloadable``: SIGHUP applies a new value; ``pending``: a new value waits for a restart."""

    value: str
    origin: str
    changed: bool
    reloadable: bool
    pending: bool
    description: str


@frozen
class ConfigurationPage:
    """The page: settings by ``section.key``, in the order of the documentation."""

    settings: Mapping[str, SettingInForce]
    pending_restart: tuple[str, ...]


def configuration_page(context: PageContext) -> ConfigurationPage:
    """The page with the current state."""
    references = {reference.name: reference for reference in all_settings()}
    pending = context.sources.pending_restart()
    return ConfigurationPage(
        {
            name: SettingInForce(
                value=value,
                origin=origin,
                changed=origin != DEFAULT_ORIGIN,
                reloadable=facts_of(references[name].field).reloadable,
                pending=name in pending,
                description=description_of(references[name].field),
            )
            for name, value, origin in context.sources.configuration.rows()
        },
        pending,
    )
