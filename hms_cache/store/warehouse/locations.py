"""`Location`: where an object's files are, written as Hadoop's `Path` writes it.

`file:///x`, `file:/x` and (with a local default file system) `/x` are one location, written `file:/x`; doubled and
trailing slashes go; nothing is percent-encoded or decoded. Source: `org.apache.hadoop.fs.Path`, `Warehouse.getDnsPath`.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

_SCHEME = re.compile(r"\A([A-Za-z][A-Za-z0-9+.\-]*):")


def is_relative(text: str) -> bool:
    """Whether a path begins neither with a scheme nor with a slash."""
    return not text.startswith("/") and _SCHEME.match(text) is None


@dataclass(frozen=True, slots=True)
class Location:
    """A directory or file: scheme, authority (may be empty) and an absolute path without a trailing slash."""

    scheme: str
    authority: str
    path: str

    @classmethod
    def parse(cls, text: str, default: Location | None = None) -> Location:
        """The location that `text` names; what it leaves out (scheme, authority) comes from `default`.

        Raises MetaException for an empty text, a relative path, or no scheme and no default.
        """
        if not text:
            raise MetaException("Can not create a Path from an empty string")
        found = _SCHEME.match(text)
        scheme = found.group(1) if found else ""
        rest = text[found.end() :] if found else text
        authority = ""
        if rest.startswith("//"):
            end = rest.find("/", 2)
            authority, rest = (rest[2:], "") if end < 0 else (rest[2:end], rest[end:])
        if rest and not rest.startswith("/"):
            raise MetaException(f"java.net.URISyntaxException: Relative path in absolute URI: {text}")
        path = _normal_path(rest)
        if not scheme:
            if default is None:
                raise MetaException(f"No file system in {text}")
            scheme, authority = default.scheme, authority or default.authority
        elif default is not None and not authority and scheme == default.scheme:
            authority = default.authority
        return cls(scheme, authority, path)

    def __str__(self) -> str:
        authority = f"//{self.authority}" if self.authority else ""
        # Hadoop writes a bucket's root with its slash, and nothing else with a trailing one.
        return f"{self.scheme}:{authority}{self.path}"

    @property
    def url(self) -> str:
        """The location as fsspec reads it."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def name(self) -> str:
        """The last part of the path; empty for the root."""
        return posixpath.basename(self.path)

    @property
    def is_root(self) -> bool:
        """Whether it is the top of its file system."""
        return self.path == "/"

    @property
    def parent(self) -> Location:
        """The directory it lies in; the root is its own parent."""
        return Location(self.scheme, self.authority, posixpath.dirname(self.path) or "/")

    def child(self, *names: str) -> Location:
        """A location below this one."""
        return Location(self.scheme, self.authority, _normal_path(posixpath.join(self.path, *names)))

    def is_same_file_system(self, other: Location) -> bool:
        """Whether a rename between the two is possible."""
        return self.scheme == other.scheme and self.authority.lower() == other.authority.lower()

    def is_inside(self, other: Location) -> bool:
        """Whether it lies strictly below `other`, on the same file system."""
        if not self.is_same_file_system(other) or ".." in self.path.split("/"):
            return False
        prefix = other.path if other.path.endswith("/") else other.path + "/"
        return self.path.startswith(prefix) and self.path != other.path


def _normal_path(path: str) -> str:
    """An absolute path with single slashes and without a trailing one."""
    path = re.sub(r"/{2,}", "/", path)
    if len(path) > 1:
        path = path.rstrip("/")
    return path or "/"
