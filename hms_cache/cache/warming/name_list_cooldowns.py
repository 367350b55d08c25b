"""How often the names of a database with very many tables are loaded.

The list of all names shows that a table does not exist (P6), and each table that is created or dropped invalidates the
list. Some jobs create temporary tables, and ask for each of them before. Beside 50,000 other tables, each such question
would read and keep 50,000 names, half a second of processor time, for one answer. So these lists have cooldowns like
tables that change all the time (`cooldowns`), and meanwhile the database answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from hms_cache.cache.warming.cooldowns import Cooldowns
from hms_cache.metadata.object_names import DatabaseName

LARGE_DATABASE: Final = 1_000
"""Number of tables above which the list has a cooldown. Reading fewer names takes the database and this server ten
milliseconds or less."""

SHORTEST_COOLDOWN_TIMES: Final = 4
"""They take at most a fifth of the time."""

LONGEST_COOLDOWN_TIMES: Final = 64
"""A list that takes half a second is loaded twice a minute."""


class NameListCooldowns:
    """Thread-safe. `_lock` guards the cooldowns, and is never held while another lock is taken or a statement runs."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._cooldowns = Cooldowns(SHORTEST_COOLDOWN_TIMES, LONGEST_COOLDOWN_TIMES)

    def is_over(self, database: DatabaseName) -> bool:
        """Whether the list may be loaded for one read."""
        with self._lock:
            return self._cooldowns.is_over(database, self._now_s())

    def now_s(self) -> float:
        """A value for `loaded`."""
        return self._now_s()

    def loaded(self, database: DatabaseName, began_s: float, count: int) -> None:
        """The list was read, with this number of names."""
        if count > LARGE_DATABASE:
            with self._lock:
                self._cooldowns.begin(database, began_s, self._now_s())
