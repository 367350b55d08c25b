"""``/locks``: held and waiting locks, and whether their owners are alive."""

from __future__ import annotations

from hms_cache.admin.pages.context import PageContext, PageError
from hms_cache.config.quantities import finite_s
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.store.locks.owners import OwnedLock
from hms_cache.values import frozen


@frozen
class LocksPage:
    """The page: locks by id. `is_complete`: the list contains all of them."""

    timeout_s: float | None
    """`transactions.timeout_s`: how long an owner without heartbeats keeps its locks; None: for ever."""
    dead: int
    is_complete: bool
    locks: tuple[OwnedLock, ...]


def locks_page(context: PageContext) -> LocksPage:
    """The page with the current state, read by one statement. Raises PageError if the database does not answer."""
    try:
        found = context.sources.transactions.owned_locks()
    except DatabaseUnavailableError as error:
        raise PageError(f"the database does not answer: {error}", 503) from error
    return LocksPage(
        timeout_s=finite_s(context.sources.transactions.timeout_s),
        dead=sum(one.is_dead for one in found.locks),
        is_complete=found.is_complete,
        locks=found.locks,
    )
