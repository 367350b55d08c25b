"""The real server, which loses parts of what it remembers at random, all the time."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

from hms_cache.cache.shared_cache import SharedCache
from tests.cache.evictions import evict_at_random
from tests.servers import ServerProcess

PAUSE_S = 0.02
"""Between two evictions: long enough that some reads are answered from memory."""


def evict_for_ever(cache: SharedCache, chance: random.Random) -> None:
    """Until the process ends."""
    pause = threading.Event()
    while not pause.wait(PAUSE_S):
        evict_at_random(cache, chance)


def install() -> None:
    """Each cache of this process has a thread that evicts."""
    begin = SharedCache.__init__

    def begin_with_evictions(self: SharedCache, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        threading.Thread(target=evict_for_ever, args=(self, random.Random()), daemon=True).start()

    SharedCache.__init__ = begin_with_evictions  # type: ignore[method-assign]


def program(mutant: str | None = None) -> str:
    """What a process runs, perhaps with a rule of coherence taken out, too."""
    root = str(Path(__file__).parents[2])
    start = (
        f"from tests.consistency.mutants import main; main({mutant!r})"
        if mutant
        else "from hms_cache.cli.main import main; main()"
    )
    return (
        f"import sys; sys.path.insert(0, {root!r}); from tests.consistency import evicting; evicting.install(); {start}"
    )


class EvictingServer(ServerProcess):
    """As `ServerProcess`."""

    program = program()
