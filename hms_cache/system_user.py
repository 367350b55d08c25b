"""The user of the operating system that this process runs as."""

from __future__ import annotations

import getpass
import os


def system_user() -> str:
    """Its name, or its number where it has none: OpenShift, and a pod with `runAsUser`, run images as any user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError since Python 3.13
        return str(os.getuid())
