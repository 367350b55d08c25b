"""``/leases``: who reads by lease, what it cost writes, and why this server held none."""

from __future__ import annotations

from hms_cache.admin.pages.context import PageContext
from hms_cache.admin.status import LeaseStatus, lease_status
from hms_cache.values import frozen


@frozen
class LeasesPage:
    """The page."""

    exactness: str
    """`cache.exactness`."""
    waits: int
    """Writes that waited for the end of a lease, under `check` as well."""
    revocations: int
    lease: LeaseStatus | None
    """None under `cache.exactness = check`."""


def leases_page(context: PageContext) -> LeasesPage:
    """As this server knows it now; no statement."""
    sources = context.sources
    return LeasesPage(
        exactness=sources.configuration_in_force().settings.cache.exactness,
        waits=int(sources.metrics.lease.waits.value()),
        revocations=int(sources.metrics.lease.revocations.value()),
        lease=lease_status(sources),
    )
