"""The notification log."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from hms_cache.config.quantities import Seconds, SizeBytes
from hms_cache.config.setting import Section, setting


class EventSettings(Section):
    """The notification log: what is written to it, how it is followed and how long it is kept."""

    poll_interval_s: Seconds = setting(
        1.0,
        "How often the log is read for changes when no call needs to know sooner; 0: only when a call does.",
        reason="One indexed read of one row; Impala recommends less than 5.",
        ge=0,
    )
    batch_size: int = setting(
        1000,
        "Most events fetched with one statement.",
        unit="events",
        reason="About 2 MB of typical messages, applied in well under a second.",
        ge=1,
        le=100_000,
    )
    message_format: Literal["json-0.2", "gzip(json-2.0)"] = setting(
        "json-0.2",
        "Format of the messages written. Both are read.",
        reason="Every reader of Hive 2.3 and later, Impala included, takes json-0.2.",
        site_keys=("metastore.event.message.factory", "hive.metastore.event.message.factory"),
    )
    max_message_bytes: SizeBytes = setting(
        4 * 1024 * 1024,
        "A message that would be larger is split into several events of the same transaction.",
        reason="A quarter of MariaDB's default max_allowed_packet of 16 MiB: quoting and the rest of the row stay"
        " below it.",
        ge=64 * 1024,
    )
    single_alter_partitions_event: bool = setting(
        False,
        "One ALTER_PARTITIONS event for all partitions of a call, in place of one for each.",
        reason="Readers older than Hive 4.1 do not know the event.",
        site_keys=("metastore.alterPartitions.notification.v2.enabled",),
    )
    retention_s: Seconds = setting(
        86400.0,
        "Events older than this are deleted; inf: never.",
        reason="Hive's default. A reader that was away for longer starts anew.",
        site_keys=("metastore.event.db.listener.timetolive", "hive.metastore.event.db.listener.timetolive"),
        gt=0,
    )
    clean_interval_s: Seconds = setting(
        7200.0,
        "How often old events are looked for.",
        reason="Hive's default.",
        site_keys=("metastore.event.db.listener.clean.interval", "hive.metastore.event.db.listener.clean.interval"),
        gt=0,
    )
    clean_batch_size: int = setting(
        10_000,
        "Most events deleted in one transaction.",
        unit="events",
        reason="Hive's default.",
        site_keys=("metastore.event.db.clean.maxevents", "hive.metastore.event.db.clean.maxevents"),
        ge=1,
    )
    max_response: int = setting(
        1_000_000,
        "Most events in the answer to one get_next_notification.",
        unit="events",
        reason="Hive's default.",
        site_keys=("metastore.max.event.response", "hive.metastore.max.event.response"),
        ge=1,
    )

    @field_validator("message_format", mode="before")
    @classmethod
    def _factory_class_or_format(cls, value: object) -> object:
        """Site files name Hive's encoder classes."""
        classes = {"JSONMessageEncoder": "json-0.2", "GzipJSONMessageEncoder": "gzip(json-2.0)"}
        return classes.get(value.rpartition(".")[2], value) if isinstance(value, str) else value
