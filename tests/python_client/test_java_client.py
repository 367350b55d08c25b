"""Hive 4.0.1's own client runs whole transactions on a server: its requests, and its decoding of our replies."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hms_cache.client import Transaction
from tests.protocol.releases import class_path, java_program
from tests.python_client.conftest import DATABASE, StartMetastore, transactional

LIBRARIES = (
    "org.apache.hive:hive-standalone-metastore-common:4.0.1",
    "org.apache.hive:hive-storage-api:4.0.1",
    "org.apache.thrift:libthrift:0.16.0",
    "org.apache.thrift:libfb303:0.9.3",
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "org.apache.hadoop:hadoop-client-runtime:3.3.6",
    "org.apache.commons:commons-lang3:3.12.0",
    "commons-lang:commons-lang:2.6",
    "commons-io:commons-io:2.15.1",
    "commons-logging:commons-logging:1.2",
    "commons-collections:commons-collections:3.2.2",
    "com.google.guava:guava:22.0",
    "com.fasterxml.jackson.core:jackson-core:2.16.1",
    "com.fasterxml.jackson.core:jackson-databind:2.16.1",
    "com.fasterxml.jackson.core:jackson-annotations:2.16.1",
    "org.apache.httpcomponents:httpclient:4.5.14",
    "org.apache.httpcomponents:httpcore:4.4.16",
    "org.slf4j:slf4j-api:1.7.36",
)
FOREVER = 2**63 - 1


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
def test_hives_client_runs_transactions(start_metastore: StartMetastore) -> None:
    server = start_metastore()
    server.client.call("create_database", DATABASE)
    server.client.call("create_table", transactional("t"))
    jars = class_path(*LIBRARIES)
    source = Path(__file__).parent / "java" / "TransactionsOverThrift.java"
    done = subprocess.run(
        [java_program(), "-cp", jars, str(source), server.uri, "d", "t"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        "lock ACQUIRED",
        "own committed",
        f"before d.t:0:{FOREVER}::",
        f"after d.t:1:{FOREVER}::",
        "read committed",
        f"aborted d.t:2:{FOREVER}::2",
        "first ACQUIRED",
        "second ACQUIRED",
        "second ACQUIRED",
        "conflict Aborting [txnid:6,6] due to a write conflict on d/t committed by [txnid:5,6] u/u",
    ]
    with Transaction(server.client, ["d.t"]) as reader:
        assert reader.get_table("d.t").parameters["note"] == "committed"
        assert reader.version("d.t").write_ids.aborted_ids == (2, 4)
