"""``POST /commands/NAME``: runs a command and reports its progress, as one JSON object per line.

Lines are ``{"worker": 0, "progress": {"done": 3, "total": 10, "note": ""}}`` after each change, then for each worker
``{"worker": 0, "result": {"ok": true, "summary": "…", "numbers": {…}, "details": […]}}``, or ``"unreached"`` with a
reason, and finally ``{"finished": {"ok": …, "reached": [0, 1], "unreached": []}}``. A request that cannot be carried
out is answered with a status of 4xx and a message.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from hms_cache.admin.access import refusal, requester
from hms_cache.admin.commands import memory, position, verification
from hms_cache.admin.commands.subject import (
    CommandError,
    CommandParts,
    CommandResult,
    Subject,
    subject_of,
    whole_number,
)
from hms_cache.admin.siblings import Siblings
from hms_cache.admin.sources import AdminSources
from hms_cache.admin.threads import on_own_thread
from hms_cache.errors import HmsCacheError
from hms_cache.metrics.operations import Operation

_log = logging.getLogger(__name__)

#: Each uses a thread, and most use database time.
MAX_COMMANDS = 8

#: Maximum of `sync --wait`: an hour is a maintenance window; a longer wait is a mistake of the client.
LONGEST_WAIT_S = 3600.0

_DEFAULT_WAIT_S = 30.0
_PROGRESS_INTERVAL_S = 0.2

Work = Callable[[CommandParts, Operation], CommandResult]
LINES = "application/x-ndjson"


def _plain(function: Callable[[CommandParts, Subject, Operation], CommandResult]) -> Callable[..., Work]:
    def work_of(subject: Subject, _: Mapping[str, str]) -> Work:
        return lambda parts, operation: function(parts, subject, operation)

    return work_of


def _sync(subject: Subject, parameters: Mapping[str, str]) -> Work:
    event_id = whole_number(parameters, "event_id")
    text = parameters.get("wait_s", "")
    try:
        wait_s = float(text) if text else _DEFAULT_WAIT_S
    except ValueError:
        wait_s = math.nan
    if not 0 <= wait_s <= LONGEST_WAIT_S:
        raise CommandError(f"wait_s must be seconds from 0 to {LONGEST_WAIT_S:g}, not {text!r}")
    return lambda parts, operation: position.sync(parts, subject, operation, event_id=event_id, wait_s=wait_s)


def _verify(subject: Subject, parameters: Mapping[str, str]) -> Work:
    if subject.partition is not None:
        raise CommandError("verify compares a table with all its partitions: leave the partition out")
    sample, seed = whole_number(parameters, "sample"), whole_number(parameters, "seed")
    return lambda parts, operation: verification.verify(parts, subject, operation, sample=sample, seed=seed)


COMMANDS: Mapping[str, Callable[[Subject, Mapping[str, str]], Work]] = {
    "flush": _plain(memory.flush),
    "refresh": _plain(memory.refresh),
    "warm": _plain(memory.warm),
    "sync": _sync,
    "verify": _verify,
}


class CommandRoutes:
    """The endpoint, for this server's parts and its siblings."""

    def __init__(self, sources: AdminSources, siblings: Siblings) -> None:
        self._sources = sources
        self._siblings = siblings

    async def command(self, request: Request) -> Response:
        """See the module's docstring."""
        refused = await refusal(self._sources, request)
        if refused is not None:
            return refused
        name = request.path_params["command"]
        prepare = COMMANDS.get(name)
        if prepare is None:
            return PlainTextResponse(f"no such command: {', '.join(COMMANDS)} are\n", 404)
        parts = self._sources.command_parts()
        if parts is None:
            return PlainTextResponse(f"there is no cache: {self._sources.cache_off_reason}\n", 409)
        try:
            subject = subject_of(request.query_params)
            work = prepare(subject, request.query_params)
        except CommandError as error:
            return PlainTextResponse(f"{error}\n", 400)
        operations = self._sources.operations
        if operations.running_commands() >= MAX_COMMANDS:
            return PlainTextResponse(f"{MAX_COMMANDS} commands are running: wait for one\n", 429)
        operation = operations.begin("command", name, str(subject), requester(request))
        _log.warning("%s of %s requested by %s", name, subject, operation.start.requested_by)
        return StreamingResponse(self._lines(request, operation, work, parts), media_type=LINES)

    async def _lines(
        self, request: Request, operation: Operation, work: Work, parts: CommandParts
    ) -> AsyncIterator[str]:
        ok, reached, unreached = True, [], []
        passed_on = self._siblings.stream_command(request)
        merged = merge([self._own(operation, work, parts), *passed_on])
        async for line in merged:
            if "result" in line:
                reached.append(line["worker"])
                ok = ok and bool(line["result"]["ok"])
            elif "unreached" in line:
                unreached.append(line["worker"])
                ok = False
            yield json.dumps(line) + "\n"
        summary = {"ok": ok, "reached": sorted(reached), "unreached": sorted(unreached)}
        yield json.dumps({"finished": summary}) + "\n"

    async def _own(self, operation: Operation, work: Work, parts: CommandParts) -> AsyncIterator[dict[str, Any]]:
        worker = self._siblings.own_index
        running = asyncio.ensure_future(on_own_thread(self._run, operation, work, parts))
        shown: tuple[int, int | None, str] | None = None
        try:
            while not running.done():
                await asyncio.wait({running}, timeout=_PROGRESS_INTERVAL_S)
                now = operation.done, operation.total, operation.note
                if now != shown:
                    shown = now
                    yield {"worker": worker, "progress": {"done": now[0], "total": now[1], "note": now[2]}}
            yield {"worker": worker, "result": asdict(running.result())}
        finally:
            operation.cancelled.set()

    def _run(self, operation: Operation, work: Work, parts: CommandParts) -> CommandResult:
        try:
            result = work(parts, operation)
        except HmsCacheError as error:
            result = CommandResult(False, str(error), {})
        except Exception as error:
            _log.exception("the command %s failed", operation.start.name)
            result = CommandResult(False, f"{type(error).__name__}: {error}", {})
        self._sources.operations.end(operation, "ok" if result.ok else result.summary)
        return result


async def merge(streams: list[AsyncIterator[dict[str, Any]]]) -> AsyncIterator[dict[str, Any]]:
    """The items of all streams as they arrive. If the reader stops, all streams are closed."""
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    async def drain(stream: AsyncIterator[dict[str, Any]]) -> None:
        try:
            async for item in stream:
                await queue.put(item)
        finally:
            await queue.put(None)

    tasks = [asyncio.ensure_future(drain(stream)) for stream in streams]
    try:
        remaining = len(tasks)
        while remaining:
            item = await queue.get()
            if item is None:
                remaining -= 1
            else:
                yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
