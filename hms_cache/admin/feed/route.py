"""``GET /changes``: parameters of a listener, and its connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from hms_cache.admin.access import CHALLENGE, refusal, token_in
from hms_cache.admin.feed.change_feed import ChangeFeed
from hms_cache.admin.feed.events import FeedFilter
from hms_cache.admin.feed.listeners import Listener, Operator, UnknownListenerError, UnrestrictedListener, is_same
from hms_cache.admin.feed.positions import EndReason, FeedEndedError
from hms_cache.admin.sources import AdminSources
from hms_cache.authorization.decisions import UndecidedError
from hms_cache.errors import DatabaseUnavailableError

_PARAMETERS = frozenset({"after", "catalog", "database", "table", "messages"})

_NAMES = frozenset({"catalog", "database", "table"})
"""Parameters that may be repeated."""

_RETRY = {"Retry-After": "10"}


class FeedRoute:
    """The endpoint of a feed."""

    def __init__(self, sources: AdminSources, feed: ChangeFeed) -> None:
        self._sources = sources
        self._feed = feed

    async def listen(self, request: Request) -> Response:
        """Server-sent events.

        400 for an invalid request; 401 and 403 for a listener that may not listen, or that asks for messages without
        the token for commands; 410 for a position from which the log does not continue; 503 if the database or the
        authorizer does not answer, or if all places are taken.
        """
        query = request.query_params
        unknown = sorted(set(query) - _PARAMETERS)
        if unknown:
            return PlainTextResponse(f"unknown parameter {unknown[0][:80]}: {', '.join(sorted(_PARAMETERS))}\n", 400)
        for name in query:
            given = query.getlist(name)
            if name in _NAMES and not all(one.strip() for one in given):
                return PlainTextResponse(f"{name}: a name is missing\n", 400)
            if name not in _NAMES and len(given) > 1:
                return PlainTextResponse(f"{name} is given {len(given)} times\n", 400)
        with_messages = query.get("messages", "false")
        if with_messages not in ("true", "false"):
            return PlainTextResponse("messages: true or false\n", 400)
        listener = self._listener(request)
        # A user gets the messages that the metastore port would send; others need the token.
        if with_messages == "true" and not listener.is_authorized:
            refused = await refusal(self._sources, request)
            if refused is not None:
                return refused
        try:
            await self._feed.admit(listener)
            if request.method == "HEAD":
                return Response(media_type="text/event-stream")
            place = request.headers.get("last-event-id") or query.get("after") or "latest"
            position = await self._feed.position(place, listener)
        except ValueError as error:
            return PlainTextResponse(f"{error}; after and Last-Event-ID: latest, oldest or an event's id\n", 400)
        except UnknownListenerError as error:
            return PlainTextResponse(f"{error}\n", 401, {"WWW-Authenticate": CHALLENGE})
        except FeedEndedError as error:
            if error.reason is EndReason.REFUSED:
                return PlainTextResponse(f"{error}\n", 403)
            self._sources.metrics.management.feed_ends.add((error.reason.value,))
            return JSONResponse({"reason": error.reason.value, "problem": str(error)}, 410)
        except (DatabaseUnavailableError, UndecidedError) as error:
            return PlainTextResponse(f"{error}\n", 503, _RETRY)
        become_listener = request.scope.get("state", {}).get("become_listener")
        if become_listener is not None and not become_listener():
            return PlainTextResponse(
                "no place is left: admin.max_listeners, admin.max_listeners_per_address\n", 503, _RETRY
            )
        feed_filter = FeedFilter.of(query.getlist("catalog"), query.getlist("database"), query.getlist("table"))
        return _Feed(self._feed.frames(position, feed_filter, listener, with_messages=with_messages == "true"))

    def _listener(self, request: Request) -> Listener:
        """Identifies the listener; `ChangeFeed.admit` checks whether it may listen."""
        gate = self._sources.listeners
        if gate is None:
            return UnrestrictedListener()
        token = token_in(request.headers.get("authorization", ""))
        if is_same(token, self._operators_token()):
            return Operator(token, self._operators_token)
        return gate.user(token)

    def _operators_token(self) -> str:
        return self._sources.configuration.settings.admin.token.get_secret_value()


class _Feed(Response):
    """Sends frames until they end or the listener disconnects; then the frames are closed at once."""

    def __init__(self, frames: AsyncGenerator[bytes]) -> None:
        self._frames = frames
        self.status_code = 200
        self.background = None
        self.init_headers(
            {
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-store",
                "Connection": "close",
                "X-Accel-Buffering": "no",
            }
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one listener."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        tasks = {asyncio.create_task(self._send(send)), asyncio.create_task(_gone(receive))}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._frames.aclose()
        for task in done:
            task.result()

    async def _send(self, send: Send) -> None:
        async for frame in self._frames:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
