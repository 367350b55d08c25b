"""The user of the operating system that this process runs as."""

from __future__ import annotations

import getpass
import os


def system_user() -> str:
    """Returns the user's name, or the user id if there is no name: OpenShift, and pods with `runAsUser`, run images as
    an arbitrary user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError since Python 3.13
        return str(os.getuid())
