"""What clients are told under Hive's names."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.config import HiveValues, load


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
