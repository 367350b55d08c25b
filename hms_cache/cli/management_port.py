"""How commands of the command line reach a running server: its management port, and the token."""

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

#: A command tells its progress as it goes; the longest silence is that of one load.
_SILENCE_TIMEOUT_S = 660.0

_NO_WORDS = ("", "Not Found", "Method Not Allowed")
"""Answers that say nothing without the address that was asked."""


def _base_url(_: click.Context, __: click.Parameter, value: str) -> str:
    """Without the slash that an address is often written with."""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
        parts.port  # noqa: B018 - raises for what is none
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
    help="The server's management port. For https://, SSL_CERT_FILE in the environment can name your own authorities.",
)


json_option = click.option("--json", "as_json", is_flag=True, help="The result as JSON, without progress.")


def token_option(command: Command) -> Command:
    """`--token-file`."""
    return click.option(
        "--token-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        envvar="HMS_CACHE_TOKEN_FILE",
        required=True,
        help="File whose first line is the token.",
    )(command)


def reading_token_option(command: Command) -> Command:
    """`--token-file`, of commands that only read."""
    return click.option(
        "--token-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        envvar="HMS_CACHE_TOKEN_FILE",
        help="File whose first line is the token, if reading needs one.",
    )(command)


def acting_options(command: Command) -> Command:
    """Those of every command that changes something: `--json`, `--management`, `--token-file`."""
    return json_option(management_option(token_option(command)))


def token_of(token_file: Path | None) -> str | None:
    """Its first line; None without a file."""
    if token_file is None:
        return None
    try:
        lines = token_file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise HmsCacheError(f"no token can be read from {token_file}: {error}") from error
    return lines[0].strip() if lines else ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """urllib would send the token to whatever host an answer names, and make a command a question."""

    def redirect_request(self, *_: Any) -> None:
        """Nothing is asked in place of what was: the answer is an error then."""


def _opener() -> urllib.request.OpenerDirector:
    # A proxy of the environment is for the world outside, and would be handed the token.
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
            answer = error  # it tells what was done by other workers all the same
        with answer:
            yield answer
    except (OSError, HTTPException, ValueError) as error:
        raise HmsCacheError(f"no answer from {url}: {getattr(error, 'reason', error)}") from error


def _refusal(url: str, error: urllib.error.HTTPError) -> str:
    """The server's words where it says any."""
    if location := error.headers.get("location"):
        return f"{url} leads to {location}: give the management port's own address"
    text = error.read().decode(errors="replace").strip()
    if text in _NO_WORDS or error.headers.get_content_type() != "text/plain":
        return f"{url} answers {error.code} {error.reason}: is it the management port of hms-cache?"
    return text


def ask(url: str, part: str, *, token: str | None = None, post: bool = False) -> Any:
    """The decoded JSON answer, which has this part.

    Raises ``HmsCacheError`` with the server's words when it says no.
    """
    with _opened(url, token, post, _TIMEOUT_S) as answer:
        return _checked(json.load(answer), part)


def ask_lines(url: str, *, token: str | None) -> Iterator[Any]:
    """The decoded lines of a command's answer as they come. Raises ``HmsCacheError``."""
    with _opened(url, token, True, _SILENCE_TIMEOUT_S) as answer:
        for line in answer:
            found = json.loads(line)
            yield _checked(found, "finished" if "worker" not in found else "worker")


def _checked(answer: Any, part: str) -> Any:
    """Raises ValueError for the answer of another program."""
    if not isinstance(answer, dict) or part not in answer:
        raise ValueError("its answer is not of hms-cache")
    return answer
