"""Renders a page as HTML or JSON: as ``?format=html|json`` says, otherwise by the Accept header; browsers get HTML."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hms_cache.admin.access import accepts_commands
from hms_cache.admin.pages import formats
from hms_cache.admin.pages.charts import line_chart, share_bar
from hms_cache.admin.pages.context import PageContext


def segment(text: str) -> str:
    """Quotes a text as one segment of a path."""
    return quote(text, safe="")


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hms_cache.admin"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "size": formats.size,
        "duration": formats.duration,
        "timestamp": formats.timestamp,
        "percent": formats.percent,
        "number": formats.number,
        "segment": segment,
    }
    environment.globals |= {
        "line_chart": line_chart,
        "share_bar": share_bar,
        "duration_label": formats.duration,
        "size_label": formats.size,
    }
    return environment


_ENVIRONMENT = _environment()


def respond(request: Request, page: Any, template: str, title: str, context: PageContext) -> Response:
    """The page in the requested format. `page` is one of the dataclasses."""
    if not wants_html(request):
        return JSONResponse(asdict(page))
    text = _ENVIRONMENT.get_template(f"{template}.html").render(
        page=page,
        title=title,
        path=_path_of(request),
        version=context.sources.version,
        uri=context.sources.uri,
        worker=context.siblings.own_index,
        workers=context.siblings.count,
        accepts_commands=accepts_commands(context.sources),
        now_s=context.sources.clock.epoch_s(),
    )
    return Response(text, media_type="text/html")


def _path_of(request: Request) -> str:
    """The path of the page; for a comparison, the path of its table's page."""
    name = request.path_params.get("name")
    return quote(request.scope["path"]) if name is None else f"/table/{segment(name)}"


def wants_html(request: Request) -> bool:
    """Whether to return HTML. Programs without a preference get JSON."""
    form = request.query_params.get("format")
    return form == "html" if form in ("html", "json") else "text/html" in request.headers.get("accept", "")
