"""The routes of the pages."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hms_cache.admin.access import refusal
from hms_cache.admin.pages.blind_spots import BlindSpots, blind_spots
from hms_cache.admin.pages.cache import CachePage, cache_page
from hms_cache.admin.pages.configuration import ConfigurationPage, configuration_page
from hms_cache.admin.pages.context import PageContext, PageError
from hms_cache.admin.pages.events import Events, events
from hms_cache.admin.pages.leases import LeasesPage, leases_page
from hms_cache.admin.pages.locks import LocksPage, locks_page
from hms_cache.admin.pages.operations import OperationsPage, operations_page
from hms_cache.admin.pages.overview import Overview, overview
from hms_cache.admin.pages.rendering import respond
from hms_cache.admin.pages.table import TablePage, table_page
from hms_cache.admin.worker_choice import Endpoint, on_chosen_worker
from hms_cache.values import frozen


class _TableConvertor(Convertor[str]):
    """A table's name in a path. It may contain slashes, which Hive allows in names."""

    regex = "(?s:.+)(?<!/compare)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("table", _TableConvertor())


@frozen
class Page:
    """A page: its path, its dataclass, the function that makes it, and its template."""

    path: str
    type: type[Any]
    make: Callable[[PageContext], Any]
    template: str
    title: str
    covers_all_workers: bool = False
    """Whether making it visits all entries of the cache."""


PAGES = (
    Page("/", Overview, overview, "overview", "Overview"),
    Page("/events", Events, events, "events", "Events"),
    Page("/cache", CachePage, cache_page, "cache", "Cache", covers_all_workers=True),
    Page("/table/{name}", TablePage, table_page, "table", "Table"),
    Page("/operations", OperationsPage, operations_page, "operations", "Operations", covers_all_workers=True),
    Page("/leases", LeasesPage, leases_page, "leases", "Leases"),
    Page("/locks", LocksPage, locks_page, "locks", "Locks"),
    Page("/config", ConfigurationPage, configuration_page, "configuration", "Configuration"),
    Page("/blind-spots", BlindSpots, blind_spots, "blind_spots", "What cannot be seen"),
)


def page_routes(context: PageContext) -> list[Route]:
    """A route for each page, and the button that compares a table with the database."""
    # One at a time: computing threads share the interpreter with the thread that answers the metastore's calls.
    turn = asyncio.Semaphore(1)
    routes = []
    for page in PAGES:
        path = page.path.replace("{name}", "{name:table}")
        endpoint = _endpoint(page, context, turn if page.covers_all_workers else nullcontext())
        routes.append(Route(path, on_chosen_worker(endpoint, context.siblings)))
    compare = on_chosen_worker(_compare_endpoint(context), context.siblings)
    return [*routes, Route("/table/{name:table}/compare", compare, methods=["POST"])]


def _endpoint(page: Page, context: PageContext, turn: AbstractAsyncContextManager[None]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        here = replace(context, path=request.path_params)
        try:
            async with turn:
                made = await run_in_threadpool(page.make, here)
        except PageError as error:
            return PlainTextResponse(f"{error}\n", error.status)
        title = request.path_params.get("name", page.title)
        return respond(request, made, page.template, title, here)

    return endpoint


def _compare_endpoint(context: PageContext) -> Endpoint:
    # It reads a whole table, as the command `verify` does: one at a time, and only for clients that may command.
    turn = threading.Lock()

    async def endpoint(request: Request) -> Response:
        refused = await refusal(context.sources, request)
        if refused is not None:
            return refused
        if context.sources.cache is None:
            return PlainTextResponse(f"there is no cache: {context.sources.cache_off_reason}\n", 409)
        here = replace(context, path=request.path_params)
        if not turn.acquire(blocking=False):
            return PlainTextResponse("a table is being compared already: try again\n", 429)
        try:
            made = await run_in_threadpool(table_page, here, compare=True)
        except PageError as error:
            return PlainTextResponse(f"{error}\n", error.status)
        finally:
            turn.release()
        return respond(request, made, "table", made.name, here)

    return endpoint
