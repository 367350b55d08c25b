"""Capabilities of clients, named as in `processorCapabilities`."""

from __future__ import annotations

from collections.abc import Collection, Iterable

ACCEPTS_UNMODIFIED_METADATA = "ACCEPTS_UNMODIFIED_METADATA"
CONNECTOR_READ = "CONNECTORREAD"
CONNECTOR_WRITE = "CONNECTORWRITE"
EXTERNAL_READ = "EXTREAD"
EXTERNAL_WRITE = "EXTWRITE"
BUCKETS_VERSION_2 = "HIVEBUCKET2"
CACHE_INVALIDATION = "HIVECACHEINVALIDATE"
FULL_ACID_READ = "HIVEFULLACIDREAD"
FULL_ACID_WRITE = "HIVEFULLACIDWRITE"
INSERT_ONLY_READ = "HIVEMANAGEDINSERTREAD"
INSERT_ONLY_WRITE = "HIVEMANAGEDINSERTWRITE"
STATISTICS = "HIVEMANAGESTATS"
MATERIALIZED_VIEWS = "HIVEMQT"
SQL = "HIVESQL"

RAW_METADATA = ("MANAGERAWMETADATA", "MANAGE_RAW_METADATA")
"""Clients that want untranslated metadata: `HMSHandler` checks the first spelling, its transformer the second."""

TABLE_CAPABILITIES_PARAMETER = "OBJCAPABILITIES"
"""Table parameter: the capabilities that a client needs, instead of those that the table's type requires."""

_COMMON_WRITES = (STATISTICS, CACHE_INVALIDATION, CONNECTOR_WRITE)
FULL_ACID_WRITES = (FULL_ACID_WRITE, *_COMMON_WRITES)
INSERT_ONLY_WRITES = (INSERT_ONLY_WRITE, *_COMMON_WRITES)


def wants_raw_metadata(capabilities: Collection[str] | None) -> bool:
    """Whether nothing is translated for the client: it declares no capabilities, or asks for raw metadata."""
    return not capabilities or RAW_METADATA[0] in capabilities


def reads(capabilities: Iterable[str]) -> list[str]:
    """The capabilities among these that reading requires."""
    return [each for each in capabilities if each.upper().endswith(("READ", "SQL"))]


def writes(capabilities: Iterable[str]) -> list[str]:
    """The capabilities among these that writing requires."""
    return [each for each in capabilities if each.upper().endswith(("WRITE", "STATS", "INVALIDATE"))]


def missing(required: Iterable[str], present: Collection[str]) -> list[str]:
    """The required capabilities that are not present."""
    return [each for each in required if each not in present]
