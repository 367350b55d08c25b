"""The HTTP application. Reading is open to whoever reaches the port; a command must carry ``admin.token``."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from hms_cache.admin.commands.routes import CommandRoutes
from hms_cache.admin.event_commands import EventRoutes
from hms_cache.admin.health import DatabaseProbe, readiness
from hms_cache.admin.siblings import Siblings
from hms_cache.admin.sources import AdminSources
from hms_cache.admin.status import impala_metrics, server_status

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def build_application(sources: AdminSources, probe: DatabaseProbe, siblings: Siblings | None = None) -> Starlette:
    """All routes over these parts."""
    siblings = siblings or Siblings()

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
    commands, events = CommandRoutes(sources, siblings), EventRoutes(sources, siblings)
    routes.append(Route("/commands/{command}", commands.command, methods=["POST"]))
    routes.append(Route("/events/{command}", events.command, methods=["POST"]))
    return Starlette(routes=routes)
