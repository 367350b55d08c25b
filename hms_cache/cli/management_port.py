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

import click

from hms_cache.errors import HmsCacheError

Command = TypeVar("Command", bound=Callable[..., Any])

_TIMEOUT_S = 30.0

#: A command tells its progress as it goes; the longest silence is that of one load.
_SILENCE_TIMEOUT_S = 660.0

management_option = click.option(
    "--management",
    metavar="URL",
    envvar="HMS_CACHE_MANAGEMENT",
    default="http://127.0.0.1:9085",
    show_default=True,
    help="The server's management port. For https:// the environment's SSL_CERT_FILE names authorities of your own.",
)


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
        help="File whose first line is the token, where reading needs one.",
    )(command)


def token_of(token_file: Path | None) -> str | None:
    """Its first line; None without a file."""
    if token_file is None:
        return None
    lines = token_file.read_text(encoding="utf-8").splitlines()
    return lines[0].strip() if lines else ""


@contextmanager
def _opened(url: str, token: str | None, post: bool, timeout_s: float) -> Iterator[Any]:
    request = urllib.request.Request(url, method="POST" if post else "GET")
    request.add_header("Accept", "application/json")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            yield answer
    except urllib.error.HTTPError as error:
        if error.headers.get_content_type() == "application/json":
            yield error  # it tells what was done all the same
        else:
            raise HmsCacheError(error.read().decode(errors="replace").strip()) from error
    except (OSError, HTTPException, ValueError) as error:
        raise HmsCacheError(f"no answer from {url}: {getattr(error, 'reason', error)}") from error


def ask(url: str, *, token: str | None = None, post: bool = False) -> Any:
    """The decoded JSON answer. Raises ``HmsCacheError`` with the server's words when it says no."""
    with _opened(url, token, post, _TIMEOUT_S) as answer:
        return json.load(answer)


def ask_lines(url: str, *, token: str | None) -> Iterator[Any]:
    """The decoded lines of a command's answer as they come. Raises ``HmsCacheError``."""
    with _opened(url, token, True, _SILENCE_TIMEOUT_S) as answer:
        for line in answer:
            yield json.loads(line)
