"""The HTTP application. Reading is open to whoever reaches the port; a command must carry ``admin.token``."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from hms_cache.admin.health import DatabaseProbe, readiness
from hms_cache.admin.sources import AdminSources
from hms_cache.admin.status import impala_metrics, server_status
from hms_cache.notifications.poller import Poller
from hms_cache.notifications.poller_status import IllegalPollerCommand

_log = logging.getLogger(__name__)

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def build_application(sources: AdminSources, probe: DatabaseProbe) -> Starlette:
    """All routes over these parts."""

    def livez(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def readyz(_: Request) -> Response:
        found = await run_in_threadpool(readiness, sources, probe)
        return PlainTextResponse(f"{found.reason}\n", 200 if found.ready else 503)

    def metrics(_: Request) -> Response:
        return Response(sources.metrics.text(), media_type=_PROMETHEUS)

    def json_metrics(_: Request) -> Response:
        return JSONResponse(impala_metrics(sources))

    def version(_: Request) -> Response:
        return JSONResponse({"name": "hms-cache", "version": sources.version})

    def status(_: Request) -> Response:
        return JSONResponse(server_status(sources).as_json())

    def configuration(_: Request) -> Response:
        rows = sources.configuration.rows()
        return JSONResponse({name: {"value": value, "origin": origin} for name, value, origin in rows})

    readings = {
        "/livez": livez,
        "/readyz": readyz,
        "/metrics": metrics,
        "/jsonmetrics": json_metrics,
        "/version": version,
        "/status": status,
        "/config": configuration,
    }
    routes = [Route(path, endpoint) for path, endpoint in readings.items()]
    routes.append(Route("/events/{command}", _event_command(sources), methods=["POST"]))
    return Starlette(routes=routes)


def _event_command(sources: AdminSources) -> Callable[[Request], Response]:
    """``POST /events/pause``, ``resume``, ``resync``, ``seek?event_id=N``, ``skip?event_id=N``."""

    def command(request: Request) -> Response:
        token = sources.configuration.settings.admin.token.get_secret_value()
        if not token:
            return PlainTextResponse("commands are off: set admin.token_file\n", 403)
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), token.encode()):
            return PlainTextResponse("the token is missing or wrong\n", 401, {"WWW-Authenticate": "Bearer"})
        if sources.poller is None:
            return PlainTextResponse(f"there is no cache: {sources.cache_off_reason}\n", 409)
        name = request.path_params["command"]
        try:
            known = _run(sources.poller, name, request)
        except (IllegalPollerCommand, ValueError) as error:
            return PlainTextResponse(f"{error}\n", 409)
        if not known:
            return PlainTextResponse("no such command: pause, resume, resync, seek and skip are\n", 404)
        client = request.client.host if request.client else "unknown"
        _log.warning("events %s was commanded by %s", name, client)
        report = sources.poller.status_report()
        return JSONResponse({"status": report.status.value, "reason": report.reason})

    return command


def _run(poller: Poller, name: str, request: Request) -> bool:
    """Whether there is such a command. Raises ``IllegalPollerCommand``, ``ValueError`` for a bad event id."""
    plain = {"pause": poller.pause, "resume": poller.resume, "resync": poller.resync}
    with_event = {"seek": poller.seek, "skip": poller.skip}
    if name in plain:
        plain[name]()
    elif name in with_event:
        with_event[name](int(request.query_params.get("event_id", "")))
    else:
        return False
    return True
