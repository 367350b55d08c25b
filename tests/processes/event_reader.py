"""Repeatedly reads new events of the notification log, like any other process.

Argument: the database's URL. Ends when its standard input does, after a last read. Prints a line for each event that
came out of order or after a gap, then ``read N``.
"""

from __future__ import annotations

import select
import sys

from sqlalchemy import create_engine, text

#: Between two reads. Short, so that a gap that is filled later is detected.
PAUSE_S = 0.002


def main() -> None:
    engine = create_engine(sys.argv[1], isolation_level="AUTOCOMMIT")
    new = text("SELECT EVENT_ID FROM NOTIFICATION_LOG WHERE EVENT_ID > :last ORDER BY EVENT_ID")
    last = 0
    is_ending = False
    with engine.connect() as connection:
        while True:
            for (event_id,) in connection.execute(new, {"last": last}):
                if event_id != last + 1:
                    print(f"event {event_id} was there before {last + 1}", flush=True)
                last = event_id
            if is_ending:
                break
            is_ending = bool(select.select([sys.stdin], [], [], PAUSE_S)[0])
    print(f"read {last}", flush=True)


if __name__ == "__main__":
    main()
