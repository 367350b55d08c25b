"""Times and limits in site files have the same meaning as in Hive."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from hms_cache.config import Configuration, HiveValues, load
from hms_cache.config.hive_keys import hive_keys
from hms_cache.config.quantities import parse_duration_s
from hms_cache.config.settings import all_settings
from hms_cache.config.site_file import settings_by_site_key
from hms_cache.errors import ConfigurationError

_UNIT_OF_DEFAULT = re.compile(r"\d+(ns|us|ms|s|m|h|d)")
_TIMES = sorted(
    (name, found[1])
    for key in hive_keys()
    for name in {key.name, key.older_name}
    if name in settings_by_site_key() and (found := _UNIT_OF_DEFAULT.fullmatch(key.default))
)


def loaded(directory: Path, name: str, value: str) -> Configuration:
    return loaded_all(directory, {name: value})


def loaded_all(directory: Path, properties: Mapping[str, str]) -> Configuration:
    site = directory / "hive-site.xml"
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items())
    site.write_text(f"<configuration>{''.join(lines)}</configuration>", encoding="utf-8")
    return load(site_files=[site], environment={})


def setting(configuration: Configuration, name: str) -> float:
    reference = settings_by_site_key()[name]
    value: float = getattr(getattr(configuration.settings, reference.section), reference.key)
    return value


def seconds(configuration: Configuration, name: str) -> float:
    return setting(configuration, name) / (1000 if settings_by_site_key()[name].key.endswith("_ms") else 1)


def test_all_settings_that_hive_has_as_times_are_looked_at() -> None:
    """One of our settings in seconds without Hive's unit would be read in seconds, whatever Hive does."""
    ours = {reference.name for reference in all_settings() if reference.key.endswith(("_s", "_ms"))}
    of_site = {name: one.name for name, one in settings_by_site_key().items() if one.name in ours}
    assert of_site.keys() == {name for name, _ in _TIMES}


@pytest.mark.parametrize(("name", "unit"), _TIMES)
@pytest.mark.parametrize("number", ["90", "90L", " 90 "])
def test_a_number_without_a_unit_is_in_that_of_hives_default(tmp_path: Path, name: str, unit: str, number: str) -> None:
    """`MetastoreConf.getTimeVar`, and `HiveConf.unitFor`, which treats the L of a Java number as no unit."""
    assert seconds(loaded(tmp_path, name, number), name) == pytest.approx(parse_duration_s("90", unit))
    assert seconds(loaded(tmp_path, name, "2h"), name) == 7200


@pytest.mark.parametrize("name", [f"{before}metastore.event.db.listener.timetolive" for before in ("", "hive.")])
@pytest.mark.parametrize(
    ("text", "expected_s"),
    [("7", 7 * 86_400), ("3599", 3599 * 86_400), ("3600", 3600), ("86400", 86_400), ("86400s", 86_400), ("30s", 30)],
)
def test_events_are_kept_for_days_or_for_the_seconds_of_hive_3(
    tmp_path: Path, name: str, text: str, expected_s: float
) -> None:
    assert setting(loaded(tmp_path, name, text), name) == expected_s


_USUAL, _OF_REPLICATION = "metastore.event.db.listener.timetolive", "metastore.repl.event.db.listener.timetolive"


@pytest.mark.parametrize("before", ["metastore.", "hive."])
@pytest.mark.parametrize(
    ("properties", "expected_s"),
    [
        ({}, 10 * 86_400),
        ({_OF_REPLICATION: "20d"}, 20 * 86_400),
        ({_OF_REPLICATION: "3"}, 3 * 86_400),
        ({_OF_REPLICATION: "12h", _USUAL: "6h"}, 43_200),
        ({_USUAL: "2d"}, 10 * 86_400),
        ({_USUAL: "30d"}, 30 * 86_400),
        ({_USUAL: "2592000"}, 30 * 86_400),
    ],
)
def test_a_source_of_replication_keeps_events_as_long_as_hive_keeps_them_for_it(
    tmp_path: Path, before: str, properties: dict[str, str], expected_s: float
) -> None:
    """Hive 4 uses the setting for replication, Hive 3.1 the usual one: the longer of the two applies."""
    switch = f"{before}repl.cm.enabled"
    configuration = loaded_all(tmp_path, {switch: "TRUE", **properties})
    assert configuration.settings.events.retention_s == expected_s
    assert configuration.origins["events.retention_s"].startswith(str(tmp_path / "hive-site.xml"))
    off = loaded_all(tmp_path, {switch: "false", **properties})
    usual = properties.get(_USUAL)
    assert off.settings.events.retention_s == (setting(loaded(tmp_path, _USUAL, usual), _USUAL) if usual else 86_400)
    told = load(command_line={"events.retention_s": 5}, site_files=[tmp_path / "hive-site.xml"], environment={})
    assert told.settings.events.retention_s == 5


@pytest.mark.parametrize("name", [_USUAL, _OF_REPLICATION])
def test_a_retention_that_cannot_be_read_is_told_of_a_source_of_replication_too(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"events\.retention_s"):
        loaded_all(tmp_path, {"metastore.repl.cm.enabled": "true", name: "long"})


@pytest.mark.parametrize(
    ("name", "off"),
    [
        ("hive.compactor.initiator.failed.retry.time", "0"),
        ("metastore.compactor.initiator.failed.retry.time", "-1d"),
        ("hive.compactor.aborted.txn.time.threshold", "-1"),
        ("hive.compactor.aborted.txn.time.threshold", "-1h"),
    ],
)
def test_what_switches_a_time_off_in_hive_does_so_here(tmp_path: Path, name: str, off: str) -> None:
    configuration = loaded(tmp_path, name, off)
    assert setting(configuration, name) == math.inf
    # Java has no infinite times.
    told = HiveValues(configuration).get(name)
    assert told is not None
    assert re.fullmatch(r"\d+s", told)
    assert parse_duration_s(told, "s") > 30 * 365 * 86_400


def test_no_aborted_transaction_is_too_young_for_zero_hours(tmp_path: Path) -> None:
    name = "hive.compactor.aborted.txn.time.threshold"
    assert setting(loaded(tmp_path, name, "0"), name) == 0


@pytest.mark.parametrize("text", ["0", "-1"])
def test_no_limit_of_deleted_events_leaves_the_batches_of_the_default(tmp_path: Path, text: str) -> None:
    name = "hive.metastore.event.db.clean.maxevents"
    configuration = loaded(tmp_path, name, text)
    assert setting(configuration, name) == 10_000
    assert [one.name for one in configuration.site_review.ignored] == [name]


@pytest.mark.parametrize("unit", ["sec", "secs", "seconds", "SECS"])
def test_units_in_the_plural_are_taken_as_hive_takes_them(tmp_path: Path, unit: str) -> None:
    name = "hive.txn.timeout"
    assert setting(loaded(tmp_path, name, f"90{unit}"), name) == 90
