"""The notification log."""

from __future__ import annotations

import math
import string
from typing import Literal

from pydantic import field_validator

from hms_cache.config.quantities import Seconds, SizeBytes
from hms_cache.config.setting import Section, hive_setting, metastore_keys, setting

_FIRST_OF_HIVE_3 = 3600
"""A smaller number without a unit is a time in days, as in Hive 4; others are in seconds, as in Hive 3.1."""


def _from_time_to_live(text: str) -> str:
    """Converts Hive's retention time. With the wrong unit, 7 days would be 7 seconds, and events would be deleted
    before they are read."""
    number = text.strip().rstrip("lL")
    return f"{number}s" if number.isdecimal() and int(number) >= _FIRST_OF_HIVE_3 else text


def _from_most_events(text: str) -> str | None:
    """Converts Hive's limit. Zero and less mean no limit in Hive, which deletes all events in one transaction; here
    there always is a limit."""
    return None if text.strip().startswith("-") or text.strip() == "0" else text


def _from_expiry_duration(text: str) -> str:
    """Converts Hive's expiry time. Zero and less, the default, disable Hive's cleaner."""
    number = text.strip().rstrip(string.ascii_letters).rstrip()
    return "inf" if number.startswith("-") or not number.strip("0") else text


class EventSettings(Section):
    """The notification log: what is written to it, how it is followed and how long it is kept."""

    poll_interval_s: Seconds = setting(1.0, reason="One indexed read of one row; Impala recommends less than 5.", ge=0)
    """Time between two reads of the notification log when no call needs its changes sooner. 0: the log is read only
    when a call needs it."""
    batch_size: int = setting(
        1000, unit="events", reason="About 2 MB of typical messages, applied in well under a second.", ge=1, le=100_000
    )
    """Maximum number of events fetched with one statement."""
    message_format: Literal["json-0.2", "gzip(json-2.0)"] = setting(
        "json-0.2",
        reason="Every reader of Hive 2.3 and later, including Impala, supports json-0.2.",
        site_keys=metastore_keys("event.message.factory"),
    )
    """Format of the messages that this server writes. It reads both formats."""
    max_message_bytes: SizeBytes = setting(
        4 * 1024 * 1024,
        reason="A quarter of MariaDB's default max_allowed_packet of 16 MiB: quoting and the rest of the row stay"
        " below it.",
        ge=64 * 1024,
    )
    """A change whose message would be larger than this is split into several events of the same transaction."""
    single_alter_partitions_event: bool = setting(
        False,
        reason="Readers older than Hive 4.1 do not know this event.",
        site_keys=("metastore.alterPartitions.notification.v2.enabled",),
    )
    """Whether a call that alters several partitions writes one ALTER_PARTITIONS event instead of one event for each
    partition."""
    retention_s: Seconds = setting(
        86400.0,
        reason="Hive's default. A reader that was away for longer has to start again.",
        site_keys=metastore_keys("event.db.listener.timetolive"),
        from_site=_from_time_to_live,
        gt=0,
    )
    """Events older than this are deleted; inf: never. If a site file sets `metastore.repl.cm.enabled`, they are kept
    for `metastore.repl.event.db.listener.timetolive`, whose default is 10 days, if that is longer."""
    marker_retention_s: Seconds = setting(
        math.inf,
        reason="Hive's default: markers are kept.",
        site_keys=metastore_keys("event.expiry.duration"),
        from_site=_from_expiry_duration,
        gt=0,
    )
    """Markers on partitions (markPartitionForEvent) that are older than this are ignored, and deleted; inf:
    never."""
    clean_interval_s: Seconds = hive_setting(7200.0, "event.db.listener.clean.interval", gt=0)
    """Time between two runs that delete old events and markers. inf: one run, after the start."""
    clean_batch_size: int = hive_setting(
        10_000, "event.db.clean.maxevents", from_site=_from_most_events, unit="events", ge=1
    )
    """Maximum number of events deleted in one transaction."""
    max_response: int = hive_setting(1_000_000, "max.event.response", unit="events", ge=1)
    """Maximum number of events in the answer to one get_next_notification."""

    @field_validator("message_format", mode="before")
    @classmethod
    def _factory_class_or_format(cls, value: object) -> object:
        """Converts the encoder classes that site files name."""
        classes = {"JSONMessageEncoder": "json-0.2", "GzipJSONMessageEncoder": "gzip(json-2.0)"}
        return classes.get(value.rpartition(".")[2], value) if isinstance(value, str) else value
