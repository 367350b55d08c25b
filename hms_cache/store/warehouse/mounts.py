"""Finds the mount of a path on this machine, so that a mount that hangs does not block the threads of others.

Uses the kernel's list (`proc(5)`, `/proc/self/mountinfo`), which does not access the file systems. A path belongs to
the mount on which it begins, even if a symbolic link leads to another one. Without such a list all paths are on one
mount.
"""

from __future__ import annotations

import re
import time

from hms_cache.store.warehouse.allowed import AllowedLocation

_LIST = "/proc/self/mountinfo"
_MOUNT_POINT = 4
"""Index of the field with the mount point, from 0."""

_AGE_S = 1.0
"""Maximum age of the list; mounts change rarely."""

_ESCAPED = re.compile(r"\\([0-7]{3})")

_read: tuple[float, tuple[str, ...]] = (0.0, ())
"""Time and mount points, the longest first. Replaced as a whole."""


def mount_of(path: str) -> str:
    """The mount point of an absolute path without `..`."""
    return next((point for point in _mount_points() if path == point or path.startswith(point.rstrip("/") + "/")), "/")


def file_system_of(location: AllowedLocation) -> str:
    """The unit that has threads of its own: a mount of this machine, or a host or bucket."""
    if location.is_local:
        return mount_of(location.location.path)
    return f"{location.location.scheme}://{location.location.authority.lower()}"


def _mount_points() -> tuple[str, ...]:
    global _read
    read_s, points = _read
    now_s = time.monotonic()
    if not points or now_s - read_s > _AGE_S:
        try:
            with open(_LIST, encoding="utf-8", errors="surrogateescape") as lines:
                found = {_decoded(line.split(" ")[_MOUNT_POINT]) for line in lines}
        except (OSError, IndexError):
            found = set()
        points = tuple(sorted(found | {"/"}, key=len, reverse=True))
        _read = now_s, points
    return points


def _decoded(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found.group(1), 8)), text)
