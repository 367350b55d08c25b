"""Calls that keep a server busy: patterns, filters, expressions, and other calls that have an effect alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from thrift.Thrift import TException

from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.thrift_gen.hive_metastore.ThriftHiveMetastore import Client

WHITELIST = "metastore.partition.name.whitelist.pattern"

TABLE = "a" * 100 + "0"
"""One of those that the attacks are aimed at."""


def make_tables(client: Client) -> None:
    """Creates the tables for the attacks, in the database `default`."""
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
    client.get_partitions_by_filter("default", TABLE, "p = '" + "\\'" * 200_000, -1)


def attack_by_long_words(client: Client) -> None:
    most = 1_000_000
    for text in ("p = '" + "a" * most, "p = '1'" + " " * most, "a" * most + " = 1", "p = " + "1" * most):
        with contextlib.suppress(ttypes.MetaException):
            client.get_partitions_by_filter("default", TABLE, text, -1)


def attack_by_likes(client: Client) -> None:
    client.get_partitions_by_filter("default", TABLE, " or ".join(["p like '%a%a%b'"] * 20_000), -1)


def attack_by_expression(client: Client) -> None:
    nulls = b"\x01\x00\x01\x98\x75\x00" * 4_000
    name = b"\x01\x00java.util.Arrays$ArrayLis\xf4\x01\xa0\x1f\x01\x01java.lang.Objec\xf4"
    client.get_partitions_by_expr(ttypes.PartitionsByExprRequest("default", TABLE, name + nulls, maxParts=-1))


def attack_by_properties(client: Client) -> None:
    protocol: Any = vars(client)["_iprot"]  # the other client does not have these methods
    client = Client(protocol)
    maps = {"tableA1.x": "a" * 4_000}
    client.set_properties(ttypes.PropertySetRequest("hms", maps))
    assert client.get_properties(ttypes.PropertyGetRequest("hms", "tableA1", "x =~ 'a*'", None)).properties
    for predicate in ("x =~ '(a*)*b'", "x =~ '(a|a)*b'", "x =~ '" + "a?" * 500 + "a" * 500 + "b'", "(" * 2_000 + "x"):
        with contextlib.suppress(ttypes.MetaException):
            client.get_properties(ttypes.PropertyGetRequest("hms", "tableA1", predicate, None))


CallAttack = Callable[[Client], None]
"""Sends a few requests. Where it refuses them, the server says so by MetaException."""

PATTERN_ATTACKS: tuple[CallAttack, ...] = (
    attack_by_names,
    attack_by_many_alternatives,
    attack_by_whitelist,
    attack_by_escaped_quotes,
    attack_by_long_words,
    attack_by_likes,
    attack_by_expression,
    attack_by_properties,
)


def attack_by_tokens(client: Client) -> None:
    """Requests the keys of delegation tokens, and tokens."""
    for ask in (
        client.get_master_keys,
        client.get_all_token_identifiers,
        lambda: client.get_token("x" * 10_000),
        lambda: client.get_delegation_token("hive", "hive"),
        lambda: client.add_master_key("k" * 10_000),
    ):
        with contextlib.suppress(TException):
            ask()


def attack_by_forged_lines(client: Client) -> None:
    """Names that forge lines of the audit log or fill it."""
    forged = "x\n2026-01-01 00:00:00,000 INFO audit ugi=root\tip=1.1.1.1\tcmd=drop_database\t"
    client.set_ugi(forged * 50, [forged] * 50)
    with contextlib.suppress(TException):
        client.get_table(forged * 100, forged)


def attack_by_locations(client: Client) -> None:
    """Tables above their directory, at two colons, and on hosts that are not allowed."""
    for location in (
        "x/..",
        "../../..",
        "ev::v2",
        "/",
        "ftp://127.0.0.1:9/x",
        "hdfs://127.0.0.1:9/x",
        "file:/::memory",
    ):
        name = f"at_{location}"[:100].replace("/", "_").replace(":", "_").replace(".", "_")
        descriptor = ttypes.StorageDescriptor(
            [], location, "i", "o", False, 0, ttypes.SerDeInfo("s", "x", {}), [], [], {}
        )
        table = ttypes.Table(name, "default", "o", sd=descriptor, parameters={})
        with contextlib.suppress(TException):
            client.create_table(table)
        with contextlib.suppress(TException):
            client.drop_table("default", name, True)


CALL_ATTACKS: tuple[CallAttack, ...] = (
    *PATTERN_ATTACKS,
    attack_by_tokens,
    attack_by_forged_lines,
    attack_by_locations,
)
