"""The errors of the program itself, as a tree.

    HmsCacheError
    ├── ConfigurationError      what an operator wrote cannot be used; carries every problem found, not only the first
    ├── StartupError            the configuration is fine, but the server cannot start with what it finds
    │   ├── PortError           a port cannot be listened on
    │   └── SchemaError         the database has no schema, or one this program cannot work with
    └── DatabaseUnavailableError  the database does not answer (retriable)

What a metastore client sees is another matter: those are the generated Thrift exceptions, and ``server`` translates
into them in one place. A class of this module never travels over the wire.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence


class HmsCacheError(Exception):
    """Base of all errors that this program raises on purpose.

    ``retriable`` says whether the same call may succeed later without anybody changing anything.
    """

    retriable: bool = False


class ConfigurationError(HmsCacheError):
    """One or more settings cannot be used.

    ``problems`` holds one sentence for each, in the order found, each naming the setting and where its value came from.
    """

    def __init__(self, problems: Sequence[str] | str) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class StartupError(HmsCacheError):
    """The server cannot start: a port is taken, a directory cannot be made, …

    ``remedy`` is what to do about it, often a command.
    """

    def __init__(self, problem: str, *, remedy: str = "") -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}\n{remedy}" if remedy else problem)


class PortError(StartupError):
    """A port cannot be listened on."""

    def __init__(self, where: str, error: OSError | UnicodeError, *, if_taken: str) -> None:
        """`where`: the address and what it is for. `error`: a UnicodeError for what can be no
        host's name. `if_taken`: what to do where another program has the port.

        What an operator has to do differs: a name that is misspelt, or an address of another machine (which a container
        often is given), is not mended by another port.
        """
        number = getattr(error, "errno", None)
        if isinstance(error, socket.gaierror | UnicodeError) or number == errno.EADDRNOTAVAIL:
            remedy = "The host has to be a name or an address of this machine; 0.0.0.0 stands for all of its addresses."
        elif number == errno.EACCES:
            remedy = "Ports below 1024 are for root or a process with CAP_NET_BIND_SERVICE. " + if_taken
        else:
            remedy = if_taken
        super().__init__(f"cannot listen on {where}: {getattr(error, 'strerror', None) or error}", remedy=remedy)


class SchemaError(StartupError):
    """The database has no metastore schema, or one that this program cannot work with."""


class DatabaseUnavailableError(HmsCacheError):
    """The metastore database cannot be reached or does not answer in time."""

    retriable = True
