"""The data from which pages are made."""

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
    """A server's parts, and the request's path parameters."""

    sources: AdminSources
    probe: DatabaseProbe
    siblings: Siblings
    history: History
    path: Mapping[str, str] = field(default_factory=dict)


class PageError(Exception):
    """The page does not exist, or (503) cannot be made now; the text is the reason."""

    def __init__(self, text: str, status: int = 404) -> None:
        super().__init__(text)
        self.status = status
