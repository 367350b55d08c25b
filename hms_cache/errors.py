"""The program's own exceptions.

    HmsCacheError
    ├── ConfigurationError        settings cannot be used; contains every problem, not only the first
    ├── StartupError              the settings are valid, but the server cannot start
    │   ├── PortError             a port cannot be listened on
    │   └── SchemaError           the database has no schema, or one that this program cannot use
    └── DatabaseUnavailableError  the database does not answer (retriable)

They are never sent to a client. Clients of the metastore receive the generated Thrift exceptions; ``server`` converts
into them in one place.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence


class HmsCacheError(Exception):
    """Base class of all exceptions that this program raises on purpose.

    ``retriable`` says whether the same call may succeed later without a change by anybody.
    """

    retriable: bool = False


class ConfigurationError(HmsCacheError):
    """One or more settings cannot be used.

    ``problems`` contains one sentence per problem, in the order found. Each names the setting and the source of its
    value.
    """

    def __init__(self, problems: Sequence[str] | str) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class StartupError(HmsCacheError):
    """The server cannot start: a port is taken, a directory cannot be created, …

    ``remedy`` says what to do about it, often with a command.
    """

    def __init__(self, problem: str, *, remedy: str = "") -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}\n{remedy}" if remedy else problem)


class PortError(StartupError):
    """A port cannot be listened on."""

    def __init__(self, where: str, error: OSError | UnicodeError, *, if_in_use: str) -> None:
        """Chooses the remedy by the kind of error.

        Another port does not help if the host name is misspelt, or if the address belongs to another machine, as often
        happens in containers.

        :param where: the address, and what it is for.
        :param error: a UnicodeError if the text cannot be a host name.
        :param if_in_use: what to do if another program uses the port.
        """
        number = getattr(error, "errno", None)
        if isinstance(error, socket.gaierror | UnicodeError) or number == errno.EADDRNOTAVAIL:
            remedy = "The host has to be a name or an address of this machine; 0.0.0.0 stands for all of its addresses."
        elif number == errno.EACCES:
            remedy = "Ports below 1024 are for root or a process with CAP_NET_BIND_SERVICE. " + if_in_use
        else:
            remedy = if_in_use
        super().__init__(f"cannot listen on {where}: {getattr(error, 'strerror', None) or error}", remedy=remedy)


class SchemaError(StartupError):
    """The database has no metastore schema, or one that this program cannot use."""


class DatabaseUnavailableError(HmsCacheError):
    """The metastore database cannot be reached or does not answer in time."""

    retriable = True
