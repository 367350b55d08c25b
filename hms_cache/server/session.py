"""What the server remembers of one client connection."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

_ids = itertools.count(1)


@dataclass(slots=True)
class Session:
    """State of one connection. Touched by one call at a time: calls of a connection run in order.

    `user` and `groups` come from `set_ugi`, which is optional; without it the client is `anonymous`.
    `variables` holds what `setMetaConf` set (MSCK sets its expression proxy here, for its connection only).
    """

    peer: str
    user: str = "anonymous"
    groups: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    identifier: int = field(default_factory=lambda: next(_ids))
    closing: bool = False

    def close_after_reply(self) -> None:
        """The client said fb303 `shutdown`: this conversation ends; the server and other clients stay."""
        self.closing = True
