"""The clients that do not support a mechanism, with the class that lacks it; each reason is verified in the class."""

from __future__ import annotations

import inspect
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pyiceberg.catalog.hive import _HiveClient

from tests.clients.hive import engine
from tests.clients.secured.site import Mechanism
from tests.clients.trino import distribution
from tests.protocol.releases import jar


class Reason(NamedTuple):
    """Why a client does not support a mechanism."""

    told: str
    holds: Callable[[], bool]
    """Whether it is so, by the client's own classes."""


def _texts(archive: Path, name: str) -> bytes:
    """Returns the bytes of a class and its inner classes, which contain the names of called methods and constants."""
    with zipfile.ZipFile(archive) as packed:
        found = [packed.read(one) for one in packed.namelist() if one.startswith((f"{name}.class", f"{name}$"))]
    assert found, f"{archive} has no {name}"
    return b"".join(found)


def _lacks(archive: Callable[[], Path], name: str, text: bytes) -> Callable[[], bool]:
    return lambda: text not in _texts(archive(), name)


_CLIENT = "org/apache/hadoop/hive/metastore/HiveMetaStoreClient"


SHOWS_NO_CERTIFICATE = (
    "the socket of SecurityUtils (Hive 2.3: HiveAuthUtils).getSSLSocket has a trust store only, and takes no"
    " javax.net.ssl.keyStore"
)
REFUSED = {
    ("spark-2.3", Mechanism.MUTUAL_TLS): SHOWS_NO_CERTIFICATE,
    ("spark-4.1", Mechanism.MUTUAL_TLS): SHOWS_NO_CERTIFICATE,
    ("hive-4.0.1", Mechanism.MUTUAL_TLS): SHOWS_NO_CERTIFICATE,
}
"""Cells in which the client tries with all that it can be given, and is refused for showing no certificate."""


def _hive_2() -> Path:
    return jar("org.apache.hive:hive-metastore:2.3.10")


def _hive_4(version: str) -> Callable[[], Path]:
    return lambda: jar(f"org.apache.hive:hive-standalone-metastore-common:{version}")


def _engine() -> Path:
    return engine.fetch() / f"hive-standalone-metastore-common-{engine.VERSION}.jar"


def _trino() -> Path:
    return next((distribution.fetch() / "plugin" / "hive").glob("*trino-hive-476.jar"))


_TRINO = "io/trino/plugin/hive/metastore/thrift"
_SOURCE = inspect.getsource(_HiveClient)

CANNOT: dict[tuple[str, Mechanism], Reason] = {
    ("spark-2.3", Mechanism.PLAIN): Reason(
        "Hive 2.3's HiveMetaStoreClient has no client.auth.mode", _lacks(_hive_2, _CLIENT, b"PLAIN")
    ),
    ("spark-2.3", Mechanism.JWT): Reason(
        "Hive 2.3's HiveMetaStoreClient has no HTTP", _lacks(_hive_2, _CLIENT, b"THttpClient")
    ),
    ("trino-476", Mechanism.KERBEROS_INT): Reason(
        "KerberosHiveMetastoreAuthentication asks for auth-conf,auth",
        _lacks(_trino, f"{_TRINO}/KerberosHiveMetastoreAuthentication", b"auth-int"),
    ),
    ("trino-476", Mechanism.PLAIN): Reason(
        "ThriftMetastoreAuthenticationConfig knows NONE and KERBEROS",
        _lacks(_trino, f"{_TRINO}/ThriftMetastoreAuthenticationConfig", b"PLAIN"),
    ),
    ("trino-476", Mechanism.JWT): Reason(
        "DefaultThriftMetastoreClientFactory has no HTTP; earlier releases had HttpThriftMetastoreClientFactory",
        _lacks(_trino, f"{_TRINO}/DefaultThriftMetastoreClientFactory", b"THttpClient"),
    ),
    ("pyiceberg", Mechanism.TLS): Reason(
        "_HiveClient opens a TSocket, no TSSLSocket", lambda: "TSSLSocket" not in _SOURCE
    ),
    ("pyiceberg", Mechanism.MUTUAL_TLS): Reason(
        "_HiveClient opens a TSocket, no TSSLSocket", lambda: "TSSLSocket" not in _SOURCE
    ),
    ("pyiceberg", Mechanism.TOKEN): Reason("_HiveClient's SASL is GSSAPI", lambda: "DIGEST" not in _SOURCE),
    ("pyiceberg", Mechanism.PLAIN): Reason("_HiveClient's SASL is GSSAPI", lambda: "PLAIN" not in _SOURCE),
    ("pyiceberg", Mechanism.JWT): Reason("_HiveClient has no HTTP", lambda: "THttpClient" not in _SOURCE),
}
