"""Selects the worker that answers a page, and merges all workers' metrics into one text."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hms_cache.admin.access import CHALLENGE
from hms_cache.admin.siblings import PASSED_ON, Siblings, answer_of, target_of

Endpoint = Callable[[Request], Awaitable[Response]]

_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(\{)?")


def on_chosen_worker(endpoint: Endpoint, siblings: Siblings) -> Endpoint:
    """Makes the worker in ``?worker=N`` answer, by default the first one, so that pages are consistent whichever worker
    gets the connection.

    If a requested worker cannot be reached, the status is 502; if the default one cannot, this worker answers.
    """
    if siblings.count == 1:
        return endpoint

    async def choose(request: Request) -> Response:
        text = request.query_params.get("worker", "")
        if PASSED_ON in request.headers:
            return await endpoint(request)
        # Compared as texts, since Python refuses to convert a text of thousands of digits.
        numbers = {str(index): index for index in range(siblings.count)}
        if text and text not in numbers:
            return PlainTextResponse(f"there is no worker {text[:80]}; workers are 0 to {siblings.count - 1}\n", 404)
        other = siblings.other(numbers.get(text, 0))
        if other is None:
            return await endpoint(request)
        headers = {PASSED_ON: "1", "accept": request.headers.get("accept", "")}
        if "authorization" in request.headers:
            headers["authorization"] = request.headers["authorization"]
        status, body, content_type = await run_in_threadpool(
            answer_of, other, request.method, target_of(request), headers
        )
        if status:
            challenge = {"WWW-Authenticate": CHALLENGE} if status == 401 else {}
            return Response(body, status, headers={"content-type": content_type} | challenge)
        if text:
            return PlainTextResponse(f"worker {text} was not reached: {body}\n", 502)
        return await endpoint(request)

    return choose


def merged_metrics(texts: Mapping[int, str]) -> str:
    """Merges the metrics of several workers in Prometheus' text format; each sample gets a label ``worker``."""
    headers: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for worker, text in sorted(texts.items()):
        family = ""
        for line in text.splitlines():
            if line.startswith("# "):
                family = line.split(" ", 3)[2]
                known = headers.setdefault(family, [])
                if line not in known:
                    known.append(line)
            elif line:
                samples.setdefault(family, []).append(_labelled(line, worker))
    lines = [line for family, known in headers.items() for line in (*known, *samples.get(family, ()))]
    return "\n".join(lines) + "\n"


def _labelled(line: str, worker: int) -> str:
    found = _SAMPLE.match(line)
    if found is None:
        return line
    rest = line[found.end() :]
    return f'{found[1]}{{worker="{worker}"' + (f",{rest}" if found[2] else f"}}{rest}")
