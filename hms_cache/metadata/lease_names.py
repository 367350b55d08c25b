"""Names under which jobs lock what they work on. No database can have such a name, so nothing else waits for these
locks."""

from __future__ import annotations

import hashlib

from hms_cache.metadata.object_names import DatabaseName

LONGEST = 128
"""Maximum length of a name in a lock (HIVE_LOCKS.HL_DB), in every release."""

_MARK = " (jobs)"


def lease_of(namespace: str) -> str:
    """The name for a database (``catalog.database``) or another namespace."""
    return bounded(f"{namespace}{_MARK}")


def bounded(name: str) -> str:
    """The name, or a digest of it if it is too long for a lock."""
    return name if len(name) <= LONGEST else f"jobs {hashlib.sha256(name.encode()).hexdigest()}"


def leased_database(name: str) -> DatabaseName | None:
    """The database whose lease is a lock with this name (in lower case); None if the lock is not a lease."""
    catalog, dot, database = name.removesuffix(_MARK).partition(".")
    is_lease = name.endswith(_MARK) and dot and catalog and database and " " not in catalog and "." not in database
    return DatabaseName(catalog, database) if is_lease else None
