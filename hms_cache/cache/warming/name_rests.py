"""How often the names of a database with very many tables are loaded.

That there is no table of a name is answered from the names of all (P6), which each table that is created or dropped
takes out. A job makes temporary tables, and asks for each before; beside 50,000 others, each such question would read
and keep 50,000 names, half a second of the processor, for one answer. So these rest like tables that change all the
time (`rests`): meanwhile the database answers what was asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from hms_cache.cache.warming.rests import Rests
from hms_cache.metadata.object_names import DatabaseName

LARGE_DATABASE: Final = 1_000
"""Tables above which names rest: fewer take the database and this server ten milliseconds or less."""

SHORTEST_REST_TIMES: Final = 4
"""A fifth of the time is spent on them at most."""

LONGEST_REST_TIMES: Final = 64
"""Names that half a second is spent on are loaded twice in a minute."""


class NameRests:
    """Thread-safe; `_lock` guards the rests and is never held across another lock or a statement."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._rests = Rests(SHORTEST_REST_TIMES, LONGEST_REST_TIMES)

    def is_over(self, database: DatabaseName) -> bool:
        """Whether the names may be loaded for the sake of one read."""
        with self._lock:
            return self._rests.is_over(database, self._now_s())

    def now_s(self) -> float:
        """To be given to `loaded`."""
        return self._now_s()

    def loaded(self, database: DatabaseName, began_s: float, count: int) -> None:
        """So many names were read."""
        if count > LARGE_DATABASE:
            with self._lock:
                self._rests.begin(database, began_s, self._now_s())
