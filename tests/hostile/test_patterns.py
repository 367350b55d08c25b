"""Patterns, filters and expressions that are meant to keep a server busy: others are answered meanwhile."""

from __future__ import annotations

import contextlib
import socket
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from thrift.Thrift import TException

from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.thrift_gen.hive_metastore.ThriftHiveMetastore import Client
from tests.servers import PATIENCE_S, ServerProcess, metastore_client, server_process

WHITELIST = "metastore.partition.name.whitelist.pattern"
ROUNDS = 5
"""Questions of the second client for each attack; each is sent while attacks go on, and has PATIENCE_S."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, int]]:
    directory = tmp_path_factory.mktemp("patterns")
    with socket.create_server(("127.0.0.1", 0)) as free:
        admin_port = free.getsockname()[1]
    settings: dict[str, object] = {"admin.port": admin_port}
    with server_process(directory, f"sqlite:///{directory / 'metastore.db'}", settings) as running:
        with metastore_client(running.port) as client:
            for number in range(3):
                columns = [ttypes.FieldSchema("c", "int", None)]
                serde = ttypes.SerDeInfo("s", "x", {})
                descriptor = ttypes.StorageDescriptor(columns, None, "i", "o", False, 0, serde, [], [], {})
                client.create_table(
                    ttypes.Table(
                        "a" * 100 + str(number),
                        "default",
                        "o",
                        sd=descriptor,
                        partitionKeys=[ttypes.FieldSchema("p", "string", None)],
                        parameters={},
                    )
                )
        yield running, admin_port


def attack_by_names(client: Client) -> None:
    client.get_tables("default", "*a" * 40 + "*b")
    client.get_databases("*a" * 40 + "*b")
    client.get_functions("default", "*a" * 40 + "*b")


def attack_by_many_alternatives(client: Client) -> None:
    client.get_tables("default", "|".join(f"*{number}*a" for number in range(20_000)))


def attack_by_whitelist(client: Client) -> None:
    with contextlib.suppress(ttypes.MetaException):
        client.setMetaConf(WHITELIST, "(a*)*b")
    client.partition_name_has_valid_characters(["a" * 40], False)


def attack_by_escaped_quotes(client: Client) -> None:
    client.get_partitions_by_filter("default", "a" * 100 + "0", "p = '" + "\\'" * 200_000, -1)


def attack_by_likes(client: Client) -> None:
    client.get_partitions_by_filter("default", "a" * 100 + "0", " or ".join(["p like '%a%a%b'"] * 20_000), -1)


def attack_by_expression(client: Client) -> None:
    nulls = b"\x01\x00\x01\x98\x75\x00" * 4_000
    name = b"\x01\x00java.util.Arrays$ArrayLis\xf4\x01\xa0\x1f\x01\x01java.lang.Objec\xf4"
    client.get_partitions_by_expr(ttypes.PartitionsByExprRequest("default", "a" * 100 + "0", name + nulls, maxParts=-1))


def attack_by_properties(client: Client) -> None:
    protocol: Any = vars(client)["_iprot"]  # the other client does not know these methods
    client = Client(protocol)
    maps = {"tableA1.x": "a" * 4_000}
    client.set_properties(ttypes.PropertySetRequest("hms", maps))
    assert client.get_properties(ttypes.PropertyGetRequest("hms", "tableA1", "x =~ 'a*'", None)).properties
    for predicate in ("x =~ '(a*)*b'", "x =~ '(a|a)*b'", "x =~ '" + "a?" * 500 + "a" * 500 + "b'", "(" * 2_000 + "x"):
        with contextlib.suppress(ttypes.MetaException):
            client.get_properties(ttypes.PropertyGetRequest("hms", "tableA1", predicate, None))


ATTACKS = [
    attack_by_names,
    attack_by_many_alternatives,
    attack_by_whitelist,
    attack_by_escaped_quotes,
    attack_by_likes,
    attack_by_expression,
    attack_by_properties,
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_others_are_answered(server: tuple[ServerProcess, int], attack: object) -> None:
    running, admin_port = server
    livez = f"http://127.0.0.1:{admin_port}/livez"
    over, began = threading.Event(), threading.Event()
    ended: list[str] = []

    def attacker() -> None:
        with metastore_client(running.port) as client:
            while not over.is_set():
                began.set()
                try:
                    attack(client)  # type: ignore[operator]
                    ended.append("answered")
                except TException as error:
                    ended.append(type(error).__name__)

    thread = threading.Thread(target=attacker)
    thread.start()
    try:
        assert began.wait(PATIENCE_S)
        with metastore_client(running.port) as client:
            for _ in range(ROUNDS):
                assert client.getName() == "new db based metaserver"
                with urllib.request.urlopen(livez, timeout=PATIENCE_S) as answer:
                    assert answer.status == 200
    finally:
        over.set()
        thread.join(PATIENCE_S)
    assert not thread.is_alive(), "the attack still runs"
    assert ended and set(ended) <= {"answered", "MetaException"}, set(ended)
