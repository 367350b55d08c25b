"""Output of texts that clients of the metastore chose: names of users, hosts, tables and directories.

They are printed literally: neither Rich's markup nor control characters in them have an effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hms_cache.server.line_texts import single_line

if TYPE_CHECKING:
    from rich.console import Console


def shown(text: object) -> str:
    """Returns the text with control characters escaped, as in the log."""
    return single_line(str(text))


def shown_lines(text: str) -> str:
    """Like `shown`, for a text of several lines."""
    return "\n".join(map(shown, text.split("\n")))


def plain_console(*, stderr: bool = False) -> Console:
    """Returns a console that prints texts literally."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)
