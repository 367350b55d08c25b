"""The HTTP application. Reading is open to clients that reach the port under an allowed host name, or requires
``admin.read_token`` if that is set; commands require ``admin.token``; both also accept tokens of an issuer."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from hms_cache.admin.access import refusal_of_reading
from hms_cache.admin.commands.routes import CommandRoutes
from hms_cache.admin.event_commands import EventRoutes
from hms_cache.admin.feed.change_feed import ChangeFeed
from hms_cache.admin.feed.route import FeedRoute
from hms_cache.admin.guard import Guard
from hms_cache.admin.health import DatabaseProbe, readiness
from hms_cache.admin.history import History
from hms_cache.admin.lock_commands import LockRoutes
from hms_cache.admin.pages.context import PageContext
from hms_cache.admin.pages.routes import page_routes
from hms_cache.admin.siblings import METRICS_TIMEOUT_S, PASSED_ON, Siblings
from hms_cache.admin.sources import AdminSources
from hms_cache.admin.status import impala_metrics, last_log_end, server_status
from hms_cache.admin.threads import on_own_thread
from hms_cache.admin.worker_choice import merged_metrics, on_chosen_worker

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def build_application(
    sources: AdminSources,
    probe: DatabaseProbe,
    history: History,
    siblings: Siblings | None = None,
    feed: ChangeFeed | None = None,
) -> Guard:
    """Creates all routes over these parts."""
    siblings = siblings or Siblings()
    context = PageContext(sources, probe, siblings, history)

    async def livez(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def readyz(request: Request) -> Response:
        found = await on_own_thread(readiness, sources, probe)  # limited by admin.max_connections
        settings, authorization = sources.configuration.settings.admin, request.headers.get("authorization", "")
        may_read = await refusal_of_reading(settings, authorization, sources.bearers) is None
        return PlainTextResponse(f"{found.text if may_read else found.reason}\n", 200 if found.ready else 503)

    sources.metrics.database.reachable.set_function(lambda: float(probe.last_error() is None))
    if sources.poller is not None:
        poller = sources.poller
        sources.metrics.events.lag.set_function(
            lambda: max(0, last_log_end(sources, probe) - poller.statistics().position)
        )
        sources.metrics.events.age.set_function(lambda: poller.statistics().seconds_since_current)

    async def metrics(request: Request) -> Response:
        others = await siblings.query_all(request, METRICS_TIMEOUT_S)
        texts = {index: body for index, (status, body) in others.items() if status == 200}
        sources.metrics.server.unreachable_workers.set(len(others) - len(texts))
        own = sources.metrics.text()
        if siblings.count == 1 or PASSED_ON in request.headers:
            return Response(own, media_type=_PROMETHEUS)
        return Response(merged_metrics({siblings.own_index: own.decode()} | texts), media_type=_PROMETHEUS)

    async def json_metrics(_: Request) -> Response:
        return JSONResponse(impala_metrics(sources, probe))

    async def version(_: Request) -> Response:
        return JSONResponse({"name": "hms-cache", "version": sources.version})

    async def status(_: Request) -> Response:
        return JSONResponse(server_status(sources, siblings, probe).as_json())

    readings = {"/livez": livez, "/readyz": readyz, "/metrics": metrics, "/version": version}
    of_one_worker = {"/jsonmetrics": json_metrics, "/status": status}
    routes = [Route(path, endpoint) for path, endpoint in readings.items()]
    routes += [Route(path, on_chosen_worker(endpoint, siblings)) for path, endpoint in of_one_worker.items()]
    routes += page_routes(context)
    commands, events = CommandRoutes(sources, siblings), EventRoutes(sources, siblings)
    routes.append(Route("/commands/{command}", commands.command, methods=["POST"]))
    routes.append(Route("/events/{command}", events.command, methods=["POST"]))
    routes.append(Route("/changes", FeedRoute(sources, feed or ChangeFeed(sources)).listen))
    routes.append(Route("/locks/release", LockRoutes(sources).release, methods=["POST"]))
    return Guard(
        Starlette(routes=routes),
        lambda: sources.configuration.settings.admin,
        sources.metrics.management.refused_requests.add,
        self_authorizing=frozenset({"/changes"} if sources.listeners is not None else ()),
        bearers=sources.bearers,
    )
