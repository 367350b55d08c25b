"""Requests in a site file or a URL that this server does not honour."""

from __future__ import annotations

from hms_cache.values import frozen

#: The setting that accepts missing protection.
ACCEPT_SETTING = "security.accept_insecure"


@frozen
class Unhonoured:
    """A request that is not honoured. ``value`` contains no secrets; ``note`` is the reason and the remedy."""

    name: str
    value: str
    origin: str
    note: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.name} = {self.value}: {self.note}"


@frozen
class SiteReview:
    """All metastore keys of the site files without a corresponding setting, in the order of the files."""

    insecure: tuple[Unhonoured, ...] = ()
    """Requested protection that this server does not give."""
    ignored: tuple[Unhonoured, ...] = ()
    """Other keys that are not honoured."""
    harmless: tuple[str, ...] = ()
    """Names without a meaning here, or that request what is in effect anyway."""
