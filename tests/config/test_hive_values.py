"""The values that clients get under Hive's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hms_cache.config import HiveValues, load
from hms_cache.config.secrets import is_secret_name
from hms_cache.config.setting import facts_of
from hms_cache.config.settings import SettingReference, all_settings, section_types


@pytest.fixture
def values(tmp_path: Path) -> HiveValues:
    site = tmp_path / "hive-site.xml"
    site.write_text(
        "<configuration>"
        "<property><name>hive.metastore.transactional.event.listeners</name><value>a.B</value></property>"
        "<property><name>metastore.keystore.password</name><value>hush</value></property>"
        "<property><name>hive.of.the.site</name><value>yes</value></property>"
        "<property><name>hive.of.another.database</name><value>jdbc:mysql://u:hush@h/d?password=hush&amp;x=1</value>"
        "</property>"
        "</configuration>"
    )
    return HiveValues(
        load(
            site_files=[site],
            command_line={"transactions.timeout_s": "2 min", "warehouse.directory": "hdfs://nn/w"},
            environment={},
        )
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metastore.txn.timeout", "120s"),
        ("hive.txn.timeout", "120s"),
        ("hive.metastore.warehouse.dir", "hdfs://nn/w"),
        ("metastore.batch.retrieve.max", "300"),
        ("hive.metastore.disallow.incompatible.col.type.changes", "true"),
        ("metastore.event.message.factory", "org.apache.hadoop.hive.metastore.messaging.json.JSONMessageEncoder"),
        ("hive.of.the.site", "yes"),
        ("metastore.transactional.event.listeners", "org.apache.hive.hcatalog.listener.DbNotificationListener"),
        ("metastore.client.socket.timeout", "600s"),
        ("hive.metastore.client.socket.timeout", "600s"),
        ("hive.of.another.database", "jdbc:mysql://u:***@h/d?password=***&x=1"),
        ("hive.nobody.knows.this", None),
        ("metastore.keystore.password", None),
        ("javax.jdo.option.ConnectionPassword", None),
    ],
)
def test_a_value_is_ours_then_the_sites_then_hives_default(values: HiveValues, name: str, value: str | None) -> None:
    assert values.get(name) == value


NUMBERS = [one for one in all_settings() if facts_of(one.field).site_keys and one.field.annotation in (float, int)]


def unusual_value(setting: SettingReference) -> Any:
    """A value other than the default, and not an integer if this is allowed."""
    section = section_types()[setting.section]
    for value in (0.25, 90.125) if setting.field.annotation is float else (setting.field.default + 1, 1):
        try:
            return getattr(section.model_validate({setting.key: value}), setting.key)
        except ValidationError:
            continue
    raise AssertionError(setting.name)


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda setting: setting.name)
def test_a_number_that_is_told_means_in_a_site_file_what_is_in_force(setting: SettingReference, tmp_path: Path) -> None:
    """Times below a second, and the tuner between 0 and 1, were returned as 0."""
    value = unusual_value(setting)
    told = HiveValues(load(command_line={setting.name: value}, environment={}))
    for key in facts_of(setting.field).site_keys:
        text = told.get(key)
        if text is None:
            assert key.startswith("datanucleus.") or is_secret_name(key), "of these, clients are told nothing"
            continue
        site = tmp_path / "hive-site.xml"
        site.write_text(f"<configuration><property><name>{key}</name><value>{text}</value></property></configuration>")
        settings = load(site_files=[site], environment={}).settings
        assert getattr(getattr(settings, setting.section), setting.key) == pytest.approx(value)
