"""Texts on a terminal that clients of the metastore chose: names of users, hosts, tables and directories.

They are shown as they are, and are neither markup of Rich nor anything that a terminal obeys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hms_cache.server.line_texts import single_line

if TYPE_CHECKING:
    from rich.console import Console


def shown(text: object) -> str:
    """Fit to be printed: control characters are escaped, as in the log."""
    return single_line(str(text))


def shown_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(map(shown, text.split("\n")))


def plain_console(*, stderr: bool = False) -> Console:
    """A console that takes texts for what they are."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)
