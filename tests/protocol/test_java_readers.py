"""Hive's own classes decode our replies where the releases differ."""

from __future__ import annotations

import re

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes
from hms_cache.wire import METHODS, encode_payload
from hms_cache.wire.encodings import BINARY, COMPACT
from tests.protocol.releases import EACH_RELEASE, run_java
from tests.wire.whole_replies import failed

TABLE = ttypes.Table(tableName="t", dbName="d", catName="hive", writeId=3, ownerType=ttypes.PrincipalType.USER, id=9)
OPEN_TXNS = ttypes.GetOpenTxnsResponse(txn_high_water_mark=9, open_txns=[3, 5], min_open_txn=3, abortedBits=b"\x00")
BOO = ttypes.NoSuchObjectException("boo")
WRITE_IDS = ttypes.TableValidWriteIds("d.t", 5, [2], 2, b"\x01", tableId=7)

#: Method, result, and what its text must contain in Java if the release has the method.
REPLIES = [
    ("get_table", METHODS["get_table"].result(TABLE), r"tableName:t, dbName:d"),
    (
        "get_open_txns",
        METHODS["get_open_txns"].result(OPEN_TXNS),
        r"high_water_mark:9, open_txns:\[(3, 5|5, 3)\], min_open_txn:3",
    ),
    ("get_partition_names", failed("get_partition_names", ttypes.MetaException("boo")), r"boo"),
    ("get_partition_names", failed("get_partition_names", BOO), r"boo"),
    ("create_ischema", failed("create_ischema", BOO), r"o2:.*boo"),
    ("drop_database_req", METHODS["drop_database_req"].result(ttypes.AsyncOperationResp(id="1")), r"_result\("),
    ("drop_table_req", METHODS["drop_table_req"].result(ttypes.AsyncOperationResp(id="1")), r"_result\("),
    (
        "get_valid_write_ids",
        METHODS["get_valid_write_ids"].result(ttypes.GetValidWriteIdsResponse([WRITE_IDS])),
        r"fullTableName:d\.t, writeIdHighWaterMark:5, invalidWriteIds:\[2\], minOpenWriteId:2",
    ),
    (
        "show_locks",
        METHODS["show_locks"].result(
            ttypes.ShowLocksResponse(
                [
                    ttypes.ShowLocksResponseElement(
                        lockid=1,
                        dbname="d",
                        state=ttypes.LockState.ACQUIRED,
                        type=ttypes.LockType.EXCLUSIVE,
                        lastheartbeat=4,
                        user="u",
                        hostname="h",
                        catname="hive",
                    )
                ]
            )
        ),
        r"lockid:1, dbname:d, state:ACQUIRED, type:EXCLUSIVE",
    ),
]


@pytest.mark.java
@pytest.mark.parametrize("release", EACH_RELEASE)
def test_hive_reads_our_replies(release: str) -> None:
    lines = []
    for encoding in (BINARY, COMPACT):
        for method, result, _ in REPLIES:
            payload = encode_payload(encoding, METHODS[method], result)
            lines.append(f"{method} {encoding.name} {payload.hex()}")
    answers = run_java("ReadReplies.java", release, "-", stdin="\n".join(lines)).splitlines()
    assert len(answers) == len(lines)
    known = 0
    for (method, _, expected), answer in zip(REPLIES * 2, answers, strict=True):
        if answer != "absent":
            known += 1
            assert answer.startswith("read "), f"{method}: {answer}"
            assert re.search(expected, answer), f"{method}: {answer}"
    assert known >= 10
