"""What pages are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from hms_cache.admin.health import DatabaseProbe
from hms_cache.admin.history import History
from hms_cache.admin.siblings import Siblings
from hms_cache.admin.sources import AdminSources
from hms_cache.values import frozen


@frozen
class PageContext:
    """One server's parts and the request's path parameters."""

    sources: AdminSources
    probe: DatabaseProbe
    siblings: Siblings
    history: History
    path: Mapping[str, str] = field(default_factory=dict)


class PageError(Exception):
    """There is no such page, or (503) it cannot be made now; the text says why."""

    def __init__(self, text: str, status: int = 404) -> None:
        super().__init__(text)
        self.status = status
