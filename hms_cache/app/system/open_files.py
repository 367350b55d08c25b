"""Limits of open files, which include clients' connections."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)

FILES_FOR_OTHERS = 256
"""Files reserved for other purposes: connections to the database, the management port, logs, files of the warehouse.
Clients that use all of their connections do not block `/livez`."""


def connections_allowed(requested: int) -> int:
    """``server.max_connections``, or fewer if the limit is lower. Raises this process's limit as far as possible."""
    raised = _limit_for(requested + FILES_FOR_OTHERS)
    if raised >= requested + FILES_FOR_OTHERS:
        return requested
    allowed = max(1, raised - FILES_FOR_OTHERS)
    _log.warning(
        "%d connections are served, not the %d of server.max_connections: this process may open %d files only "
        "(ulimit -n, LimitNOFILE), and %d are kept for the database and the management port",
        allowed,
        requested,
        raised,
        FILES_FOR_OTHERS,
    )
    return allowed


def files_to_spare(requested: int, connections: int) -> int:
    """How many of `requested` files this process may open in addition to its connections and reserved files. Raises
    this process's limit as far as possible."""
    others = connections + FILES_FOR_OTHERS
    return max(0, min(requested, _limit_for(others + requested) - others))


def _limit_for(needed: int) -> int:
    """The limit of open files, raised if it is too low and may be raised."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return needed
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return needed
    raised = hard if hard != resource.RLIM_INFINITY else needed
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    except (OSError, ValueError) as error:  # macOS has a limit below the hard one
        _log.warning("cannot raise the limit of open files from %d to %d: %s", soft, raised, error)
        return soft
    return raised
