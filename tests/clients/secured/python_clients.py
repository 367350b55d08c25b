"""hmsclient, PyIceberg and this project's client: the transports of Thrift for Python, and what each client does with
them."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path

import pyarrow
from hmsclient import HMSClient
from hmsclient.genthrift.hive_metastore import ttypes
from hmsclient.hmsclient import INPUT_FORMAT, OUTPUT_FORMAT, SIMPLE_SERDE
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.THttpClient import THttpClient
from thrift.transport.TSocket import TSocket
from thrift.transport.TSSLSocket import TSSLSocket
from thrift.transport.TTransport import TBufferedTransport, TSaslClientTransport, TTransportBase

from hms_cache.client import MetastoreClient, authentication_of
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    Database,
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from tests.clients.secured.site import PASSWORD, USER, Mechanism, Site
from tests.server.kerberos_realm import REALM

TIMEOUT_MS = 60_000


def transport(site: Site, mechanism: Mechanism) -> TTransportBase:
    """Not open yet."""
    number = site.port(mechanism).number
    if mechanism is Mechanism.JWT:
        context = ssl.create_default_context(cafile=str(site.authority.ca_file))
        http = THttpClient(f"https://localhost:{number}/metastore", ssl_context=context)
        http.setTimeout(TIMEOUT_MS)
        http.setCustomHeaders({"Authorization": f"Bearer {site.issuer.token()}"})
        return http
    sock: TSocket = TSocket("localhost", number)
    if mechanism.by_tls:
        context = ssl.create_default_context(cafile=str(site.authority.ca_file))
        if mechanism is Mechanism.MUTUAL_TLS:
            context.load_cert_chain(site.client_file)
        sock = TSSLSocket("localhost", number, ssl_context=context)
    sock.setTimeout(TIMEOUT_MS)
    if mechanism is Mechanism.TOKEN:
        token = site.token()
        names = {
            name: base64.b64encode(value).decode()
            for name, value in (("username", token.identifier), ("password", token.password))
        }
        return TSaslClientTransport(sock, "default", "null", "DIGEST-MD5", **names)
    if mechanism is Mechanism.PLAIN:
        return TSaslClientTransport(sock, "localhost", "hive", "PLAIN", username=USER, password=PASSWORD)
    if mechanism.by_kerberos:
        return TSaslClientTransport(sock, "localhost", "hive")
    return TBufferedTransport(sock)


def hmsclient(site: Site, mechanism: Mechanism, directory: Path, database: str) -> list[object]:
    """Names of the partitions, and the table's owner."""
    with HMSClient(TBinaryProtocol(transport(site, mechanism))) as client:
        if mechanism in (Mechanism.TLS, Mechanism.MUTUAL_TLS):
            client.set_ugi(USER, [])
        client.create_database(ttypes.Database(name=database))
        descriptor = ttypes.StorageDescriptor(
            cols=client.make_schema(["a:int"]),
            inputFormat=INPUT_FORMAT,
            outputFormat=OUTPUT_FORMAT,
            serdeInfo=ttypes.SerDeInfo(name="t", serializationLib=SIMPLE_SERDE, parameters={}),
            parameters={},
        )
        keys = client.make_schema(["p:string"])
        client.create_table(
            ttypes.Table(tableName="t", dbName=database, sd=descriptor, partitionKeys=keys, parameters={})
        )
        client.add_partition(client.get_table(database, "t"), ["x"])
        return client.get_partition_names(database, "t", -1)


def own(site: Site, mechanism: Mechanism, directory: Path, database: str) -> list[object]:
    """Runs this project's client. Returns the names of the partitions that it created."""
    context = ssl.create_default_context(cafile=str(site.authority.ca_file))
    if mechanism is Mechanism.MUTUAL_TLS:
        context.load_cert_chain(site.client_file)
    (directory / "password").write_text(PASSWORD)
    (directory / "bearer").write_text(site.issuer.token())
    number = site.port(mechanism).number
    uri = f"thrift{'+tls' if mechanism.by_tls else ''}://localhost:{number}"
    auth = "none"
    if mechanism is Mechanism.JWT:
        uri, auth = f"https://localhost:{number}/metastore", f"jwt file={directory / 'bearer'}"
    elif mechanism is Mechanism.PLAIN:
        auth = f"ldap user={USER} password_file={directory / 'password'}"
    elif mechanism is Mechanism.TOKEN:
        auth = f"token file={site.token_file(directory)}"
    elif mechanism.by_kerberos:
        auth = f"kerberos server=hive/_HOST@{REALM}"
    columns, keys = [FieldSchema("a", "int")], [FieldSchema("p", "string")]
    with MetastoreClient(uri, authentication_of(auth, {}), tls_context=context) as client:
        if auth == "none":
            client.call("set_ugi", USER, [])
        client.call("create_database", Database(name=database, parameters={}))
        descriptor = StorageDescriptor(
            cols=columns,
            inputFormat=INPUT_FORMAT,
            outputFormat=OUTPUT_FORMAT,
            serdeInfo=SerDeInfo(name="t", serializationLib=SIMPLE_SERDE, parameters={}),
            parameters={},
        )
        table = Table(tableName="t", dbName=database, sd=descriptor, partitionKeys=keys, parameters={})
        client.call("create_table", table)
        client.call("add_partition", Partition(dbName=database, tableName="t", values=["x"], sd=descriptor))
        return list(client.call("get_partition_names", database, "t", -1))


def pyiceberg(site: Site, mechanism: Mechanism, directory: Path, database: str) -> list[object]:
    """The rows that it wrote."""
    properties = {
        "uri": site.port(mechanism).uri,
        "warehouse": f"file://{directory / 'warehouse'}",
        "hive.kerberos-authentication": "true",
        "hive.kerberos-service-name": "hive",
    }
    catalog = HiveCatalog("secured", **properties)
    catalog.create_namespace(database)
    table = catalog.create_table(f"{database}.t", Schema(NestedField(1, "a", LongType())))
    table.append(pyarrow.table({"a": [1, 2]}))
    found: list[object] = catalog.load_table(f"{database}.t").scan().to_arrow()["a"].to_pylist()
    return found
