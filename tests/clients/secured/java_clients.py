"""Spark, Hive's engine and Trino: their settings for each mechanism, and what each does with it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.clients.hive import engine
from tests.clients.secured.site import USER, Mechanism, Site, environment
from tests.clients.spark.hive_clients import hive_client
from tests.clients.spark.session import SparkProcess, remote
from tests.clients.spark.test_kerberos import SERVICE, class_path
from tests.clients.spark.test_secure_port import TRUST_PASSWORD
from tests.clients.trino.coordinator import Coordinator
from tests.server.kerberos_realm import REALM

Run = Callable[[Site, Mechanism, Path, str], list[object]]
"""What a client does over a mechanism in a database of its own, and has read in the end."""


def hive_keys(site: Site, mechanism: Mechanism) -> dict[str, str]:
    """Of Hive's metastore clients, 2.3 to 4.1."""
    keys: dict[str, str] = {}
    if mechanism.by_tls:
        keys |= {
            "hive.metastore.use.SSL": "true",
            "hive.metastore.truststore.path": str(site.trust_store),
            "hive.metastore.truststore.password": TRUST_PASSWORD,
            "hive.metastore.truststore.type": "JKS",
            "hive.metastore.trustmanagerfactory.algorithm": "PKIX",
        }
    if mechanism.by_kerberos:
        keys |= {
            "hive.metastore.sasl.enabled": "true",
            "hive.metastore.kerberos.principal": SERVICE,
            "hadoop.rpc.protection": mechanism.protection,
        }
    if mechanism is Mechanism.PLAIN:
        keys |= {
            "hive.metastore.client.auth.mode": "PLAIN",
            "hive.metastore.client.plain.username": USER,
            "hadoop.security.credential.provider.path": site.password_store(
                engine.class_path(site.directory, engine.fetch()), site.directory
            ),
        }
    if mechanism is Mechanism.JWT:
        keys |= {
            "hive.metastore.client.thrift.transport.mode": "http",
            "hive.metastore.client.thrift.http.path": "metastore",
            "hive.metastore.client.auth.mode": "JWT",
        }
    return keys


def java_options(site: Site, mechanism: Mechanism) -> str:
    """Of the JVM. The key store is not one of Hive's settings: the matrix shows whether a client uses it."""
    if mechanism is Mechanism.MUTUAL_TLS:
        return (
            f"-Djavax.net.ssl.keyStore={site.client_store} -Djavax.net.ssl.keyStorePassword={TRUST_PASSWORD}"
            " -Djavax.net.ssl.keyStoreType=PKCS12"
        )
    return f"-Djava.security.krb5.conf={site.realm.configuration}" if mechanism.by_kerberos else ""


def secrets(site: Site, mechanism: Mechanism, directory: Path) -> dict[str, str]:
    """The client's environment variables."""
    if mechanism is Mechanism.TOKEN:
        return {"HADOOP_TOKEN_FILE_LOCATION": str(site.token_file(directory))}
    if mechanism is Mechanism.JWT:
        return {"HMS_JWT": site.issuer.token()}
    return {"KRB5CCNAME": f"FILE:{site.ticket}"} if mechanism.by_kerberos else {"HADOOP_USER_NAME": USER}


def spark(version: str | None) -> Run:
    """PySpark with this metastore client; None: its own."""

    def run(site: Site, mechanism: Mechanism, directory: Path, database: str) -> list[object]:
        conf = remote(directory, site.port(mechanism).uri)
        conf |= {f"spark.hadoop.{name}": value for name, value in hive_keys(site, mechanism).items()}
        conf["spark.driver.extraJavaOptions"] += f" {java_options(site, mechanism)}"
        if version is not None:
            conf |= hive_client(version)
        jars = (class_path(directory, mechanism.protection),) if mechanism.by_kerberos else ()
        if mechanism.quality:
            conf |= {
                "spark.kerberos.principal": f"{USER}@{REALM}",
                "spark.kerberos.keytab": str(site.realm.directory / f"{USER}.keytab"),
            }
        told = secrets(site, mechanism, directory)
        if mechanism.quality:
            told = {}
        with pytest.MonkeyPatch.context() as patch:
            for name, value in told.items():
                patch.setenv(name, value)
            process = SparkProcess(directory, jars)
        with closing(process):
            process.session(conf)
            process.sql(f"create database {database}")
            process.sql(f"create table {database}.t (a int) partitioned by (p string) stored as parquet")
            process.sql(f"insert into {database}.t values (1, 'x'), (2, 'y')")
            return list(process.sql(f"select a from {database}.t where p = 'y'"))

    return run


def hive(site: Site, mechanism: Mechanism, directory: Path, database: str) -> list[object]:
    """Hive's engine. It loads a file: a task of Tez requires directories that the system's user of this name owns."""
    keys = hive_keys(site, mechanism)
    if mechanism.by_kerberos:
        keys |= {"hadoop.security.authentication": "kerberos", "yarn.resourcemanager.principal": SERVICE}
    told = environment(**secrets(site, mechanism, directory), JAVA_TOOL_OPTIONS=java_options(site, mechanism))
    shared = directory / "shared"
    shared.mkdir()
    (shared / "rows").write_text("1\n2\n")
    session = engine.Session(site.port(mechanism).uri, directory / "hive", shared, properties=keys, environment=told)
    with closing(session):
        printed = session.execute(f"create database {database}")
        printed += session.execute(f"create external table {database}.t (a int) partitioned by (p string)")
        load = f"load data local inpath '{{directory}}/rows' into table {database}.t partition (p='y')"
        printed += session.execute(load)
        rows = session.execute(f"select a from {database}.t where p = 'y'")
        assert rows[-2:] == ["1", "2"], "\n".join(printed + rows)
    return list(rows[-2:])


def trino_catalog(site: Site, mechanism: Mechanism) -> dict[str, str]:
    """Its catalog over the mechanism's port."""
    port = site.port(mechanism)
    properties = {
        "connector.name": "hive",
        "hive.metastore.uri": port.uri,
        "fs.hadoop.enabled": "true",
        "hive.non-managed-table-writes-enabled": "true",
    }
    if mechanism in (Mechanism.TLS, Mechanism.MUTUAL_TLS):
        properties |= {
            "hive.metastore.thrift.client.ssl.enabled": "true",
            "hive.metastore.thrift.client.ssl.trust-certificate": str(site.authority.ca_file),
        }
    if mechanism is Mechanism.MUTUAL_TLS:
        properties["hive.metastore.thrift.client.ssl.key"] = str(site.client_file)
    if mechanism.by_kerberos:
        user = "trino" if mechanism is Mechanism.TOKEN else USER
        properties |= {
            "hive.metastore.authentication.type": "KERBEROS",
            "hive.metastore.service.principal": SERVICE,
            "hive.metastore.client.principal": f"{user}@{REALM}",
            "hive.metastore.client.keytab": str(site.realm.directory / f"{user}.keytab"),
        }
    if mechanism is Mechanism.TOKEN:
        properties["hive.metastore.thrift.impersonation.enabled"] = "true"
    return properties


def trino_coordinator(site: Site, directory: Path, mechanisms: tuple[Mechanism, ...]) -> Coordinator:
    """Started, with a catalog for each."""
    trino = Coordinator(
        directory,
        site.port(None).uri,
        {mechanism.name.lower(): trino_catalog(site, mechanism) for mechanism in mechanisms},
        (f"-Djava.security.krb5.conf={site.realm.configuration}",),
    )
    trino.start()
    return trino


def trino(coordinator: Coordinator) -> Run:
    """Statements of the user in the mechanism's catalog."""

    def run(site: Site, mechanism: Mechanism, directory: Path, database: str) -> list[object]:
        session, schema = coordinator.session(USER), f"{mechanism.name.lower()}.{database}"
        session.execute(f"CREATE SCHEMA {schema} WITH (location = 'file:{directory / 'trino'}')")
        session.execute(f"CREATE TABLE {schema}.t (a bigint, p varchar) WITH (partitioned_by = ARRAY['p'])")
        session.execute(f"INSERT INTO {schema}.t VALUES (1, 'x'), (2, 'y')")
        return list(session.rows(f"SELECT a FROM {schema}.t WHERE p = 'y'"))

    return run
