"""Access of the command line to a running server: through its management port, with a token."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from hms_cache.errors import HmsCacheError

Command = TypeVar("Command", bound=Callable[..., Any])

_TIMEOUT_S = 30.0

#: A command reports its progress; the longest interval without a report is that of one load.
_SILENCE_TIMEOUT_S = 660.0

_WITHOUT_REASON = ("", "Not Found", "Method Not Allowed")
"""Answers that do not explain the problem without the URL."""


def _base_url(_: click.Context, __: click.Parameter, value: str) -> str:
    """Validates the address, and removes a slash at its end."""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
        parts.port  # noqa: B018 - raises if it is invalid
    except ValueError:
        usable = False
    if not usable or "@" in parts.netloc:
        from hms_cache.config.database_url import masked

        raise click.BadParameter(f"{masked(value)!r} is not http://HOST:PORT or https://HOST:PORT")
    return value.rstrip("/")


management_option = click.option(
    "--management",
    metavar="URL",
    envvar="HMS_CACHE_MANAGEMENT",
    default="http://127.0.0.1:9085",
    show_default=True,
    callback=_base_url,
    help="The server's management port. For https:// with your own authority, set SSL_CERT_FILE in the environment.",
)


json_option = click.option("--json", "as_json", is_flag=True, help="The result as JSON, without progress.")


def token_option(command: Command) -> Command:
    """Adds the required option `--token-file`."""
    return click.option(
        "--token-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        envvar="HMS_CACHE_TOKEN_FILE",
        required=True,
        help="File whose first line is the token.",
    )(command)


def reading_token_option(command: Command) -> Command:
    """Adds the option `--token-file` of commands that only read."""
    return click.option(
        "--token-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        envvar="HMS_CACHE_TOKEN_FILE",
        help="File whose first line is the token, if reading needs one.",
    )(command)


def acting_options(command: Command) -> Command:
    """Adds the options of all commands that change something: `--json`, `--management`, `--token-file`."""
    return json_option(management_option(token_option(command)))


def token_of(token_file: Path | None) -> str | None:
    """Returns the first line of the file; None without a file. Raises HmsCacheError."""
    if token_file is None:
        return None
    try:
        lines = token_file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise HmsCacheError(f"no token can be read from {token_file}: {error}") from error
    return lines[0].strip() if lines else ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Does not follow redirections: urllib would send the token to the host named in the answer, and would convert POST
    to GET."""

    def redirect_request(self, *_: Any) -> None:
        """Returns None, so that the answer is an error."""


def _opener() -> urllib.request.OpenerDirector:
    # Proxies from the environment are for other networks, and would receive the token.
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())


@contextmanager
def _opened(url: str, token: str | None, post: bool, timeout_s: float) -> Iterator[Any]:
    request = urllib.request.Request(url, method="POST" if post else "GET")
    request.add_header("Accept", "application/json")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        try:
            answer = _opener().open(request, timeout=timeout_s)
        except urllib.error.HTTPError as error:
            if error.code != 502 or error.headers.get_content_type() != "application/json":
                raise HmsCacheError(_refusal(url, error)) from error
            answer = error  # the answer still contains the results of other workers
        with answer:
            yield answer
    except (OSError, HTTPException, ValueError) as error:
        raise HmsCacheError(f"no answer from {url}: {getattr(error, 'reason', error)}") from error


def _refusal(url: str, error: urllib.error.HTTPError) -> str:
    """Returns the server's explanation, if it sent one."""
    if location := error.headers.get("location"):
        return f"{url} redirects to {location}: use the management port's own address"
    text = error.read().decode(errors="replace").strip()
    if text in _WITHOUT_REASON or error.headers.get_content_type() != "text/plain":
        return f"{url} answers {error.code} {error.reason}: is it the management port of hms-cache?"
    return text


def request_json(url: str, part: str, *, token: str | None = None, post: bool = False) -> Any:
    """Sends a request, and returns the decoded JSON answer, which must have the key `part`.

    Raises ``HmsCacheError``, with the server's explanation if it refuses the request.
    """
    with _opened(url, token, post, _TIMEOUT_S) as answer:
        return _checked(json.load(answer), part)


def request_lines(url: str, *, token: str | None) -> Iterator[Any]:
    """Sends a command, and yields the decoded lines of its answer as they arrive. Raises ``HmsCacheError``."""
    with _opened(url, token, True, _SILENCE_TIMEOUT_S) as answer:
        for line in answer:
            found = json.loads(line)
            yield _checked(found, "finished" if "worker" not in found else "worker")


def _checked(answer: Any, part: str) -> Any:
    """Returns the answer. Raises ValueError if it comes from another program."""
    if not isinstance(answer, dict) or part not in answer:
        raise ValueError("the answer is not one of hms-cache")
    return answer
