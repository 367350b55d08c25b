"""How many files the system lets this process open, which clients' connections are some of."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)

FILES_FOR_OTHERS = 256
"""Not for clients: connections to the database, the management port, logs, files of the warehouse. Clients that take
all of theirs keep nobody from `/livez`."""


def connections_allowed(wanted: int) -> int:
    """``server.max_connections``, or what there is room for. Raises this process's limit as far as it may."""
    raised = _limit_for(wanted + FILES_FOR_OTHERS)
    if raised >= wanted + FILES_FOR_OTHERS:
        return wanted
    allowed = max(1, raised - FILES_FOR_OTHERS)
    _log.warning(
        "%d connections are served, not the %d of server.max_connections: this process may open %d files only "
        "(ulimit -n, LimitNOFILE), and %d are kept for the database and the management port",
        allowed,
        wanted,
        raised,
        FILES_FOR_OTHERS,
    )
    return allowed


def files_to_spare(wanted: int, connections: int) -> int:
    """How many of so many files this process may open beside those of its connections and others. Raises this process's
    limit as far as it may."""
    others = connections + FILES_FOR_OTHERS
    return max(0, min(wanted, _limit_for(others + wanted) - others))


def _limit_for(needed: int) -> int:
    """The limit of open files, raised where it is below what is needed and may be."""
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
