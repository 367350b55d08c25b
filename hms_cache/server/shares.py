"""How many calls of one user, and from one address, may be in flight: none of them shall take all threads."""

from __future__ import annotations


class Shares:
    """Counts calls that have or wait for a thread. Everything runs on the event loop.

    Holds one entry for each user and address with such a call: no more than `max_in_flight` and a lane's queue allow.
    """

    def __init__(self, max_per_user: int, max_per_address: int) -> None:
        """0: no limit."""
        self._max_per_user = max_per_user
        self._max_per_address = max_per_address
        self.by_user: dict[str, int] = {}
        self.by_address: dict[str, int] = {}
        self.refused = {"user": 0, "address": 0}

    def refusal(self, user: str, address: str) -> str | None:
        """Why one more call must be refused, which is counted; None: it may begin."""
        of_user, of_address = self.by_user.get(user, 0), self.by_address.get(address, 0)
        if 0 < self._max_per_user <= of_user:
            self.refused["user"] += 1
            return f"{of_user} calls of user {user} are in flight (setting server.max_calls_per_user); retry"
        if 0 < self._max_per_address <= of_address:
            self.refused["address"] += 1
            return f"{of_address} calls from {address} are in flight (setting server.max_calls_per_address); retry"
        return None

    def begin(self, user: str, address: str) -> None:
        """Counts a call in."""
        self.by_user[user] = self.by_user.get(user, 0) + 1
        self.by_address[address] = self.by_address.get(address, 0) + 1

    def end(self, user: str, address: str) -> None:
        """Counts it out."""
        for counts, name in ((self.by_user, user), (self.by_address, address)):
            counts[name] -= 1
            if not counts[name]:
                del counts[name]
