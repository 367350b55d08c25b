"""The real server, which constantly evicts random parts of its cache."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

from hms_cache.cache.partitions import segment as segments
from hms_cache.cache.partitions import shared_blocks
from hms_cache.cache.shared_cache import SharedCache
from hms_cache.cache.warming import background_loads
from tests.cache.evictions import evict_at_random
from tests.servers import ServerProcess

PAUSE_S = 0.02
"""Between two evictions: long enough that some reads are answered from memory."""


def evict_for_ever(cache: SharedCache, chance: random.Random) -> None:
    """Runs until the process ends."""
    pause = threading.Event()
    while not pause.wait(PAUSE_S):
        evict_at_random(cache, chance)


def install() -> None:
    """Each cache of this process has a thread that evicts, and segments of two partitions, which workers share.
    Of every other process, at random, tables are too large for their share of the budget and are held in parts."""
    segments.SEGMENT_PARTITIONS = 2
    shared_blocks.SMALLEST_BYTES = 0  # type: ignore[misc]
    if random.random() < 0.5:
        background_loads.SMALLEST_WINDOW = 2  # type: ignore[misc]
        background_loads.BYTES_A_PARTITION = 10**9  # type: ignore[misc]
    begin = SharedCache.__init__

    def begin_with_evictions(self: SharedCache, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        threading.Thread(target=evict_for_ever, args=(self, random.Random()), daemon=True).start()

    SharedCache.__init__ = begin_with_evictions  # type: ignore[method-assign]


def program(mutant: str | None = None) -> str:
    """Returns the program of a process, optionally with one rule of coherence removed."""
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
