"""``/leases``: the members with leases, what leases cost writes, and why this server had none."""

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
    """Writes that waited for the end of a lease, also under `check`."""
    revocations: int
    lease: LeaseStatus | None
    """None with `cache.exactness = check`."""


def leases_page(context: PageContext) -> LeasesPage:
    """The page with the state known to this server; no statement."""
    sources = context.sources
    return LeasesPage(
        exactness=sources.configuration_in_force().settings.cache.exactness,
        waits=int(sources.metrics.lease.waits.value()),
        revocations=int(sources.metrics.lease.revocations.value()),
        lease=lease_status(sources),
    )
