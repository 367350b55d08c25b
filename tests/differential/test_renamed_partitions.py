"""Renamed partitions: what Hive 4.0.1 and ours answer, where files are then, what readers of the old name are left.

Every combination of what a client may say about the rename, for each kind of table; partitions with files, without,
and at a place of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.differential.metastores import Side, Sides
from tests.differential.objects import database, descriptor, partition, table

pytestmark = [pytest.mark.java, pytest.mark.mariadb, pytest.mark.soak, pytest.mark.long]

ORC = {
    "inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
    "serdeInfo": t.SerDeInfo("serde", "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {}),
}
KINDS: dict[str, dict[str, Any]] = {
    "rows": {"parameters": {"transactional": "true"}, "sd": descriptor(**ORC)},
    "inserts": {"parameters": {"transactional": "true", "transactional_properties": "insert_only"}},
    "purged": {"parameters": {"transactional": "true", "auto.purge": "true"}, "sd": descriptor(**ORC)},
    "plain": {},
    "external": {"parameters": {"EXTERNAL": "TRUE"}, "tableType": "EXTERNAL_TABLE"},
}
OLD, ABSENT, ELSEWHERE, NESTED = "x", "no-files", "else where", "deep"


@dataclass(frozen=True)
class Renaming:
    """What a client says."""

    makes_copy: bool | None
    has_txn: bool
    has_write_id: bool
    has_list: bool
    partition: str

    @property
    def new(self) -> str:
        return f"new of {self.partition}"


RENAMINGS = [
    Renaming(*case)
    for case in product((None, False, True), (False, True), (False, True), (False, True), (OLD, ABSENT, ELSEWHERE))
]
#: Java copies files of tables without transactions, too, and hides the old ones from nobody: ours moves them.
#: And it queues a directory that it has moved.
JAVA_ALONE = "only tables with transactions are written under write ids"


def cases() -> Iterator[Any]:
    for kind in KINDS:
        for renaming in RENAMINGS:
            if kind in ("plain", "external") and renaming.has_write_id:
                continue  # JAVA_ALONE
            yield kind, renaming


def _files(root: Path) -> dict[str, str]:
    """All files but those of our own and Hadoop's check sums."""
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.endswith(".crc")
    }


def _in_turn(side: Side, kind: str, renaming: Renaming, root: Path) -> dict[str, Any]:
    """Renames a partition of a new table on one side; what is there afterwards."""
    side.call("create_database", database())
    side.call("create_table", table("p", keys=("part:string",), **KINDS[kind]))
    place = Path(
        side.call(
            "get_table_req",
            t.GetTableRequest(
                dbName="d", tblName="p", capabilities=t.ClientCapabilities([t.ClientCapability.INSERT_ONLY_TABLES])
            ),
        ).table.sd.location.removeprefix("file:")
    )
    kept = KINDS[kind].get("sd", descriptor())
    own = {"sd": t.StorageDescriptor(**{name: getattr(kept, name) for name in kept.__slots__})}
    for name in (OLD, ABSENT, ELSEWHERE):
        own["sd"].location = str(root / "external" / "own" / name) if name == ELSEWHERE else None
        added = partition(name, **own)
        side.call("add_partition", added)
        where = Path(side.call("get_partition", "d", "p", [name]).sd.location.removeprefix("file:"))
        if name == ABSENT:
            where.rmdir()
        else:
            (where / "delta_0000001_0000001").mkdir(parents=True)
            (where / "delta_0000001_0000001" / "bucket_00000").write_text(f"rows of {name}")
            (where / "_orc_acid_version").write_text("2")
    txn_id = side.call("open_txns", t.OpenTxnRequest(1, "u", "h")).txn_ids[0] if renaming.has_txn else None
    write_id = None
    if renaming.has_write_id:
        request = t.AllocateTableWriteIdsRequest("d", "p", [txn_id] if txn_id else None)
        if txn_id is None:
            other = side.call("open_txns", t.OpenTxnRequest(1, "u", "h")).txn_ids[0]
            request.txnIds = [other]
        write_id = side.call("allocate_table_write_ids", request).txnToWriteIds[0].writeId
    new = side.call("get_partition", "d", "p", [renaming.partition])
    new.values = [renaming.new]
    new.writeId = write_id if write_id is not None else -1
    answer: object = None
    try:
        side.call(
            "rename_partition_req",
            t.RenamePartitionRequest(
                "hive",
                "d",
                "p",
                [renaming.partition],
                new,
                f"d.p:{write_id or 0}:9223372036854775807::" if renaming.has_list else None,
                txn_id,
                renaming.makes_copy,
            ),
        )
    except (t.InvalidOperationException, t.MetaException) as error:
        answer = type(error).__name__, error.message.replace(str(root), "ROOT")
    with side.engine.connect() as connection:
        queue = connection.execute(
            text(
                "SELECT CQ_DATABASE, CQ_TABLE, CQ_PARTITION, CQ_STATE, CQ_TYPE, CQ_RUN_AS, CQ_HIGHEST_WRITE_ID,"
                " CQ_TXN_ID, CQ_TBLPROPERTIES FROM COMPACTION_QUEUE"
            )
        )
        queued = [tuple(str(value).replace(str(root), "ROOT") for value in row) for row in queue]
    found = side.call("get_partitions", "d", "p", -1)
    place.mkdir(exist_ok=True)
    return {
        "answer": answer,
        "partitions": sorted((one.values[0], one.sd.location.replace(str(root), "ROOT"), one.writeId) for one in found),
        "files": _files(root / "managed") | _files(root / "external"),
        "queued": [(*row[:8], sorted(part.partition(":")[2] or part for part in row[8].split(","))) for row in queued],
    }


@pytest.mark.timeout(1400)
def test_what_is_left_of_the_old_name(sides: Sides) -> None:
    differing, copied, queued, seen = [], 0, 0, 0
    for kind, renaming in cases():
        found = []
        for side in (sides.java, sides.ours):
            side.empty()
            found.append(_in_turn(side, kind, renaming, Path(side.warehouse_uri.removeprefix("file:"))))
        java, ours = found
        seen += 1
        copied += any("_metadata_acid" in name for name in java["files"])
        queued += bool(java["queued"])
        differing += [
            f"{kind} {renaming} {key}:\n  java {java[key]}\n  ours {ours[key]}"
            for key in java
            if java[key] != ours[key]
        ]
    assert not differing, f"{len(differing)} of {seen}\n" + "\n".join(differing[:10])
    assert copied > 10
    assert queued > 10
