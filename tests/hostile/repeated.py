"""Repeats one kind of attack until the input ends.

``python -m tests.hostile.repeated ATTACK PORT MANAGEMENT_PORT`` prints a line after the first one, and their number at
the end.
"""

from __future__ import annotations

import select
import sys
import threading
import time
from contextlib import suppress

from thrift.Thrift import TException

from tests.hostile.attacks import ATTACKS, Attack, Attacker
from tests.hostile.call_attacks import CALL_ATTACKS, CallAttack
from tests.servers import metastore_client

SOCKETS = 20
"""Open at once, of an attack by sockets; older ones are closed."""

PAUSE_S = 0.02
"""Between two attacks by sockets, as in the crowd."""

CALLERS = 4
"""Clients at once that attack by calls: as many as the server has threads for reads."""


def stalls_in_a_header(attacker: Attacker) -> None:
    """The replies to requests to the management port."""
    attacker.send(attacker.connect(), b"GET /status HTTP/1.1\r\nHost: " + b"h" * 4_000)


def asks_for_strange_pages(attacker: Attacker) -> None:
    """On the management port, under a wrong host name."""
    for method in (b"GET", b"POST", b"PURGE", b"\0"):
        request = (
            method + b" /table/%00/../x HTTP/1.1\r\nHost: rebound.evil.example\r\nOrigin: http://evil.example\r\n\r\n"
        )
        attacker.send(attacker.connect(), request)


MANAGEMENT_ATTACKS: tuple[Attack, ...] = (stalls_in_a_header, asks_for_strange_pages)

NAMES = tuple(attack.__name__ for attack in (*ATTACKS, *MANAGEMENT_ATTACKS, *CALL_ATTACKS))


class Repeated:
    """What the process does, and its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        """Guarded by `_lock`."""
        self.over = threading.Event()

    def counted(self) -> int:
        """Counts an attack; reports the first one."""
        with self._lock:
            self._count += 1
            if self._count == 1:
                sys.stdout.write("ready\n")
                sys.stdout.flush()
            return self._count

    def by_sockets(self, attack: Attack, port: int) -> None:
        """Runs until it is over."""
        attacker = Attacker(port)
        while not self.over.is_set():
            attack(attacker)
            self.counted()
            for link in attacker.sockets[:-SOCKETS]:
                link.close()
            del attacker.sockets[:-SOCKETS]
            time.sleep(PAUSE_S)
        attacker.close()

    def by_calls(self, attack: CallAttack, port: int) -> None:
        """Runs until it is over, with one client."""
        while not self.over.is_set():
            with metastore_client(port) as client, suppress(TException):
                while not self.over.is_set():
                    try:
                        attack(client)
                    finally:
                        self.counted()


def run(name: str, port: int, management_port: int) -> int:
    """Returns the number of attacks."""
    repeated = Repeated()
    threads = [
        *(threading.Thread(target=repeated.by_sockets, args=(one, port)) for one in ATTACKS if one.__name__ == name),
        *(
            threading.Thread(target=repeated.by_sockets, args=(one, management_port))
            for one in MANAGEMENT_ATTACKS
            if one.__name__ == name
        ),
        *(
            threading.Thread(target=repeated.by_calls, args=(one, port))
            for one in CALL_ATTACKS
            if one.__name__ == name
            for _ in range(CALLERS)
        ),
    ]
    for thread in threads:
        thread.start()
    select.select([sys.stdin], [], [])
    repeated.over.set()
    for thread in threads:
        thread.join()
    return repeated.counted() - 1


if __name__ == "__main__":
    sys.stdout.write(f"{run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))}\n")
