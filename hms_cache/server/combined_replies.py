"""Calls of several connections that one worker thread carries out together, and their replies on the way back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hms_cache.server.session import Session
from hms_cache.wire import Message

if TYPE_CHECKING:
    from hms_cache.server.connection import Connection
    from hms_cache.server.listener import Listener
    from hms_cache.store.combined_calls import CombinedCalls


class Member(NamedTuple):
    """A call that is carried out with others."""

    connection: Connection
    session: Session
    message: Message


def answer_together(listener: Listener, combined: CombinedCalls, members: Sequence[Member]) -> bool:
    """On a worker thread: carries the calls out and schedules their replies. False: each is to run by itself."""
    calls = [(one.session, one.message) for one in members]
    replies = listener.dispatcher.execute_together(combined, calls)
    if replies is None:
        return False
    schedule_reply(listener.loop, _all_finished, members, replies)
    return True


def schedule_reply(loop: asyncio.AbstractEventLoop, finished: Callable[..., None], *arguments: object) -> None:
    """Lets the loop write replies. A closed connection has none to write: the server stopped during the call."""
    try:
        loop.call_soon_threadsafe(finished, *arguments)
    except RuntimeError:
        if not loop.is_closed():
            raise


def _all_finished(members: Sequence[Member], replies: Sequence[bytes | None]) -> None:
    for one, reply in zip(members, replies, strict=True):
        one.connection.finished(one.message, reply)
