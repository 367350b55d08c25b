"""What clients can do, in the words of `processorCapabilities`."""

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
"""Clients that want things as they are: `HMSHandler` looks for the first spelling, its transformer for the second."""

TABLE_CAPABILITIES_PARAMETER = "OBJCAPABILITIES"
"""Table parameter: what a client must be able to do, in place of what the table's type asks for."""

_COMMON_WRITES = (STATISTICS, CACHE_INVALIDATION, CONNECTOR_WRITE)
FULL_ACID_WRITES = (FULL_ACID_WRITE, *_COMMON_WRITES)
INSERT_ONLY_WRITES = (INSERT_ONLY_WRITE, *_COMMON_WRITES)


def wants_raw_metadata(capabilities: Collection[str] | None) -> bool:
    """Whether nothing is translated for the client: it names no capabilities, or says so."""
    return not capabilities or RAW_METADATA[0] in capabilities


def reads(capabilities: Iterable[str]) -> list[str]:
    """Those that reading asks for."""
    return [each for each in capabilities if each.upper().endswith(("READ", "SQL"))]


def writes(capabilities: Iterable[str]) -> list[str]:
    """Those that writing asks for."""
    return [each for each in capabilities if each.upper().endswith(("WRITE", "STATS", "INVALIDATE"))]


def missing(wanted: Iterable[str], present: Collection[str]) -> list[str]:
    """Those wanted that are not there."""
    return [each for each in wanted if each not in present]
