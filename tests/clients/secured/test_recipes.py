"""Each key that docs/security.md sets for clients exists in the client's own classes."""

from __future__ import annotations

import inspect
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyiceberg.catalog.hive
import pyspark
import pytest

from tests.clients.hive import engine
from tests.clients.trino import distribution

pytestmark = [pytest.mark.java, pytest.mark.spark, pytest.mark.soak, pytest.mark.long]

DOCUMENT = Path(__file__).parents[3] / "docs" / "security.md"
KEY = re.compile(r"`((?:spark|hive|hadoop)\.[A-Za-z0-9_.-]+)")
MADE = {
    "spark.security.credentials.hive.enabled": "spark.security.credentials.%s.enabled",
    "spark.yarn.appMasterEnv.HMS_JWT": "spark.yarn.appMasterEnv.",
    "spark.kubernetes.driver.secretKeyRef.HMS_JWT": "spark.kubernetes.driver.secretKeyRef.",
    "hadoop.proxyuser.NAME.users": "hadoop.proxyuser",
}
"""Keys that a client puts together, and what of them stands in its classes."""


def classes(archives: list[Path]) -> bytes:
    found = []
    for archive in archives:
        with zipfile.ZipFile(archive) as packed:
            found += [packed.read(name) for name in packed.namelist() if name.endswith(".class")]
    assert found, archives
    return b"\0".join(found)


def spark() -> bytes:
    jars = Path(pyspark.__file__).parent / "jars"
    kinds = ("spark-core_*", "spark-hive_*", "spark-kubernetes_*", "spark-yarn_*", "spark-sql_*", "spark-catalyst_*")
    more = ("hive-common-2*", "hive-metastore-2*", "hive-shims-common*", "hadoop-client-api-*")
    return classes([one for kind in (*kinds, *more) for one in jars.glob(f"{kind}.jar")])


def hive() -> bytes:
    return classes(list(engine.fetch().glob("hive-standalone-metastore*.jar")))


def trino() -> bytes:
    return classes(list((distribution.fetch() / "plugin" / "hive").glob("*trino-hive*.jar")))


def keys(text: str) -> Iterator[str]:
    for found in KEY.findall(text):
        key = found.rstrip(".").removeprefix("spark.hadoop.")
        if key not in ("spark.hadoop", "hive.metastore", "hadoop.proxyuser"):
            yield key


def test_each_key_is_known_to_a_client() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    known = b"\0".join((spark(), hive(), trino(), inspect.getsource(pyiceberg.catalog.hive).encode()))
    named = sorted(set(keys(document)))
    assert len(named) > 35
    assert [key for key in named if MADE.get(key, key).encode() not in known] == []
    assert b"hive.metastore.no.such.key" not in known
