"""Why a read was answered the way it was: recorded for every request, and a label of metrics."""

from __future__ import annotations

import enum


class Reason(enum.StrEnum):
    """`HIT`: from memory; `MISS`: from memory after a load; all others: why the store answered."""

    HIT = "hit"
    MISS = "miss"
    BEHIND_EVENTS = "behind_events"
    """The applied position could not be brought to what this read needs (poller paused or in error, or too slow)."""
    STALE_WRITE_IDS = "stale_write_ids"
    """A write id that is valid in the request is not valid in the entry's tag (P2)."""
    WRONG_TABLE_ID = "wrong_table_id"
    INCOMPLETE = "incomplete"
    """The answer needs something that could not be kept: it changed while it was loaded, or it is too large."""
    NOT_CACHED = "not_cached"
    """Partitions of a large table that is not held: the store answered exactly what was asked, so that the read need
    not wait for the whole table, which is loaded in the background if it is asked for again (P12). Or the names of a
    database with thousands of tables that are created and dropped all the time (`NameListCooldowns`)."""
    EXCLUDED = "excluded"
    UNSUPPORTED_FIELD = "unsupported_field"
    """The request asks for something that the cache does not support."""
    CORRUPT = "corrupt"
    """An entry could not be read because of a defect: it is dropped and counted here."""
    DISABLED = "disabled"
