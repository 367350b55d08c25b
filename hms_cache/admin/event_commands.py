"""``POST /events/pause``, ``resume``, ``resync``, ``seek?event_id=N``, ``skip?event_id=N``: commands to the poller."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from hms_cache.admin.access import refusal, requester
from hms_cache.admin.commands.subject import CommandError, whole_number
from hms_cache.admin.siblings import Siblings
from hms_cache.admin.sources import AdminSources
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.notifications.poller import Poller
from hms_cache.notifications.poller_status import IllegalPollerCommand

_log = logging.getLogger(__name__)


class EventRoutes:
    """The endpoint, for this server's parts and its siblings."""

    def __init__(self, sources: AdminSources, siblings: Siblings) -> None:
        self._sources = sources
        self._siblings = siblings

    async def command(self, request: Request) -> Response:
        """Runs the command; returns this worker's status afterwards, with the replies of the other workers, if there
        are any.

        400 for an invalid event id, 409 if the command is not legal now, 503 if the database does not answer, 502 if
        not every other worker has carried it out.
        """
        refused = await refusal(self._sources, request)
        if refused is not None:
            return refused
        poller = self._sources.poller
        if poller is None:
            return PlainTextResponse(f"there is no cache: {self._sources.cache_off_reason}\n", 409)
        own = await run_in_threadpool(self._execute, poller, request)
        others = await self._siblings.query_all(request) if own.status_code not in (400, 404) else {}
        if not others:
            return own
        answers = {str(self._siblings.own_index): _worker_reply(own.status_code, bytes(own.body).decode())}
        answers |= {str(index): _worker_reply(*answer) for index, answer in others.items()}
        agreed = all(answer["ok"] for answer in answers.values())
        first = answers[str(self._siblings.own_index)]
        body = {"status": first["status"], "reason": first["reason"], "workers": dict(sorted(answers.items()))}
        return JSONResponse(body, 200 if agreed else 502)

    def _execute(self, poller: Poller, request: Request) -> Response:
        name, by = request.path_params["command"], requester(request)
        operation = self._sources.operations.begin("command", f"events {name}", str(request.query_params), by)
        outcome = "ok"
        try:
            if not _run(poller, name, request.query_params):
                outcome = "no such command"
                return PlainTextResponse("no such command; available: pause, resume, resync, seek, skip\n", 404)
        except CommandError as error:
            outcome = str(error)
            return PlainTextResponse(f"{error}\n", 400)
        except DatabaseUnavailableError as error:
            outcome = str(error)
            return PlainTextResponse(f"{error}\n", 503)
        except (IllegalPollerCommand, ValueError) as error:
            outcome = str(error)
            return PlainTextResponse(f"{error}\n", 409)
        finally:
            self._sources.operations.end(operation, outcome)
        _log.warning("events %s requested by %s", name, by)
        report = poller.status_report()
        return JSONResponse({"status": report.status.value, "reason": report.reason})


def _worker_reply(status: int, text: str) -> dict[str, Any]:
    """A worker's reply in a common format."""
    if status == 200:
        body: dict[str, Any] = json.loads(text)
        return {"ok": True, **body}
    return {"ok": False, "status": "UNREACHED" if status == 0 else "REFUSED", "reason": text.strip()}


def _run(poller: Poller, name: str, parameters: Mapping[str, str]) -> bool:
    """Runs a command; returns whether it exists.

    Raises ``IllegalPollerCommand``, ``CommandError`` for an invalid event id, ``ValueError`` for one that the log does
    not reach, ``DatabaseUnavailableError``.
    """
    plain = {"pause": poller.pause, "resume": poller.resume, "resync": poller.resync}
    with_event = {"seek": poller.seek, "skip": poller.skip}
    if name in plain:
        plain[name]()
    elif name in with_event:
        event_id = whole_number(parameters, "event_id")
        if event_id is None:
            raise CommandError(f"{name} needs event_id=N")
        with_event[name](event_id)
    else:
        return False
    return True
