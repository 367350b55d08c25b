"""A crowd of hostile clients in a separate process: ``python -m tests.hostile.crowd PORT SECONDS``.

Each kind of attack has its share of the connections. When it is used up, the oldest ones leave and attack again. Prints
the number of attacks and the maximum number of open connections.
"""

from __future__ import annotations

import sys
import time

from tests.hostile.attacks import ATTACKS, Attack, Attacker

CONNECTIONS = 200

PAUSE_S = 0.02
"""Between two attacks: a crowd on the server's own machine shall not win by taking its processors."""


def run(port: int, duration_s: float) -> tuple[int, int]:
    """The number of attacks, and the maximum number of connections."""
    share = CONNECTIONS // len(ATTACKS) + 1
    attackers: dict[Attack, Attacker] = {attack: Attacker(port) for attack in ATTACKS}
    attacks = most = 0
    end_s = time.monotonic() + duration_s
    while time.monotonic() < end_s:
        for attack, attacker in attackers.items():
            attack(attacker)
            attacks += 1
            for link in attacker.sockets[:-share]:
                link.close()
            del attacker.sockets[:-share]
            most = max(most, sum(len(one.sockets) for one in attackers.values()))
            time.sleep(PAUSE_S)
    for attacker in attackers.values():
        attacker.close()
    return attacks, most


if __name__ == "__main__":
    done, max_open = run(int(sys.argv[1]), float(sys.argv[2]))
    sys.stdout.write(f"{done} {max_open}\n")
