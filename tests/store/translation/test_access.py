"""How clients may access tables: the rules of Hive 4.0.1's `MetastoreDefaultTransformer`, a case each."""

from __future__ import annotations

import copy

import pytest

from hms_cache.store.translation.access import translate_partitions, translate_table
from hms_cache.thrift_gen.hive_metastore import ttypes

NONE, READ, READ_WRITE = 1, 2, 8

ACID_WRITES = ["HIVEFULLACIDWRITE", "HIVEMANAGESTATS", "HIVECACHEINVALIDATE", "CONNECTORWRITE"]
INSERT_WRITES = ["HIVEMANAGEDINSERTWRITE", "HIVEMANAGESTATS", "HIVECACHEINVALIDATE", "CONNECTORWRITE"]
ACID = {"transactional": "true"}
INSERT_ONLY = {"transactional": "TRUE", "transactional_properties": "insert_only"}


def table(kind: str, buckets: int = -1, **parameters: str) -> ttypes.Table:
    descriptor = ttypes.StorageDescriptor(cols=[], numBuckets=buckets, bucketCols=["a"])
    return ttypes.Table("t", "d", sd=descriptor, tableType=kind, parameters=parameters, catName="hive")


@pytest.mark.parametrize(
    ("given", "has", "access", "reads", "writes"),
    [
        (table("EXTERNAL_TABLE"), ["EXTREAD", "EXTWRITE"], READ_WRITE, None, None),
        (table("EXTERNAL_TABLE"), ["EXTREAD"], READ, None, ["EXTWRITE"]),
        (table("EXTERNAL_TABLE"), ["EXTWRITE"], NONE, ["EXTREAD"], ["EXTWRITE"]),
        (table("EXTERNAL_TABLE", 2), ["HIVEBUCKET2"], READ_WRITE, None, None),
        (table("EXTERNAL_TABLE", 2), ["EXTREAD", "EXTWRITE"], READ, None, ["HIVEBUCKET2"]),
        (table("MANAGED_TABLE"), ["X"], READ_WRITE, None, None),
        (table("MANAGED_TABLE", transactional="maybe"), ["X"], None, None, None),
        (table("MANAGED_TABLE", **ACID), ["HIVEFULLACIDWRITE"], READ_WRITE, None, None),
        (table("MANAGED_TABLE", **ACID), ["CONNECTORWRITE"], READ_WRITE, None, None),
        (table("MANAGED_TABLE", **ACID), ["CONNECTORREAD"], READ, None, ACID_WRITES),
        (table("MANAGED_TABLE", **ACID), ["EXTREAD"], NONE, ["CONNECTORREAD", "HIVEFULLACIDREAD"], ACID_WRITES),
        (table("MANAGED_TABLE", **INSERT_ONLY), ["HIVEMANAGEDINSERTWRITE"], READ_WRITE, None, None),
        (table("MANAGED_TABLE", **INSERT_ONLY), ["HIVEMANAGEDINSERTREAD"], READ, None, INSERT_WRITES),
        (
            table("MANAGED_TABLE", **INSERT_ONLY),
            ["HIVEFULLACIDREAD"],
            NONE,
            ["CONNECTORREAD", "HIVEMANAGEDINSERTREAD"],
            INSERT_WRITES,
        ),
        (table("VIRTUAL_VIEW"), ["HIVESQL"], READ, None, None),
        (table("VIRTUAL_VIEW"), ["EXTREAD"], NONE, ["HIVESQL", "CONNECTORREAD"], None),
        (table("MATERIALIZED_VIEW"), ["CONNECTORREAD", "HIVEMQT"], READ, None, None),
        (table("MATERIALIZED_VIEW"), ["CONNECTORREAD"], NONE, ["CONNECTORREAD", "HIVEMQT"], None),
        (table("INDEX_TABLE"), ["EXTREAD"], NONE, None, None),
        # Tables that list what they require.
        (table("EXTERNAL_TABLE", OBJCAPABILITIES="extread, extwrite"), ["EXTREAD", "EXTWRITE"], READ_WRITE, None, None),
        (table("EXTERNAL_TABLE", OBJCAPABILITIES="EXTREAD,EXTWRITE"), ["EXTREAD"], READ, None, ["EXTWRITE"]),
        (table("EXTERNAL_TABLE", OBJCAPABILITIES="EXTREAD,EXTWRITE"), ["X"], NONE, ["EXTREAD"], ["EXTWRITE"]),
        (
            table("EXTERNAL_TABLE", 2, OBJCAPABILITIES="EXTREAD,EXTWRITE,HIVEBUCKET2"),
            ["EXTREAD", "EXTWRITE"],
            READ,
            None,
            ["HIVEBUCKET2", "EXTWRITE"],
        ),
        (table("MANAGED_TABLE", OBJCAPABILITIES="A,BWRITE"), ["A"], READ, None, ["BWRITE"]),
        (
            table("MANAGED_TABLE", OBJCAPABILITIES="HIVEFULLACIDREAD,HIVEFULLACIDWRITE", **ACID),
            ["CONNECTORREAD"],
            READ,
            None,
            ["HIVEFULLACIDWRITE"],
        ),
        (
            table("MANAGED_TABLE", OBJCAPABILITIES="HIVEFULLACIDREAD,HIVEFULLACIDWRITE", **ACID),
            ["X"],
            NONE,
            ["HIVEFULLACIDREAD"],
            ["HIVEFULLACIDWRITE"],
        ),
        (
            table("MANAGED_TABLE", OBJCAPABILITIES="HIVEMANAGEDINSERTREAD,HIVEMANAGEDINSERTWRITE", **INSERT_ONLY),
            ["HIVEMANAGEDINSERTREAD"],
            READ,
            None,
            ["HIVEMANAGEDINSERTWRITE"],
        ),
        (table("MANAGED_TABLE", OBJCAPABILITIES="A", **INSERT_ONLY), ["CONNECTORWRITE"], READ_WRITE, None, None),
        (table("VIRTUAL_VIEW", OBJCAPABILITIES="HIVESQL"), ["HIVESQL"], READ, None, None),
        (table("MATERIALIZED_VIEW", OBJCAPABILITIES="HIVESQL"), ["X"], NONE, ["HIVESQL"], None),
    ],
)
def test_access(
    given: ttypes.Table, has: list[str], access: int | None, reads: list[str] | None, writes: list[str] | None
) -> None:
    before = copy.deepcopy(given)
    seen = translate_table(given, has)
    assert (seen.accessType, seen.requiredReadCapabilities, seen.requiredWriteCapabilities) == (access, reads, writes)
    assert given == before, "what others may hold has been changed"


def test_buckets_are_hidden_from_clients_that_do_not_know_them() -> None:
    given = table("EXTERNAL_TABLE", 4)
    assert translate_table(given, ["EXTREAD"]).sd.numBuckets == -1
    assert translate_table(given, ["HIVEBUCKET2"]).sd.numBuckets == 4
    assert translate_table(given, ["ACCEPTS_UNMODIFIED_METADATA"]).sd.numBuckets == 4
    assert given.sd.numBuckets == 4


@pytest.mark.parametrize(
    ("of", "has", "buckets"),
    [
        (table("EXTERNAL_TABLE"), ["EXTREAD"], -1),
        (table("EXTERNAL_TABLE"), ["HIVEBUCKET2"], 4),
        (table("EXTERNAL_TABLE"), ["ACCEPTS_UNMODIFIED_METADATA"], 4),
        (table("EXTERNAL_TABLE", OBJCAPABILITIES="EXTREAD"), ["EXTREAD"], 4),
        (table("EXTERNAL_TABLE", OBJCAPABILITIES="HIVEBUCKET2"), ["EXTREAD"], -1),
        (table("MANAGED_TABLE"), ["EXTREAD"], -1),
        (table("MANAGED_TABLE", **ACID), ["EXTREAD"], 4),
        (table("VIRTUAL_VIEW"), ["EXTREAD"], 4),
    ],
)
def test_buckets_of_partitions(of: ttypes.Table, has: list[str], buckets: int) -> None:
    partition = ttypes.Partition(["1"], "d", "t", sd=ttypes.StorageDescriptor(numBuckets=4))
    bare = ttypes.Partition(["2"], "d", "t", sd=None)
    seen = translate_partitions([partition, bare], of, has)
    assert [each.sd.numBuckets if each.sd else None for each in seen] == [buckets, None]
    assert partition.sd.numBuckets == 4


def test_other_catalogs_are_left_alone() -> None:
    given = table("EXTERNAL_TABLE", 4)
    given.catName = "other"
    assert translate_table(given, ["X"]) is given
    partition = ttypes.Partition(["1"], "d", "t", sd=ttypes.StorageDescriptor(numBuckets=4))
    assert translate_partitions([partition], given, ["X"]) == [partition]
