"""Renamed partitions: the answers of Hive 4.0.1 and ours, the location of files afterwards, and what readers of the old
name still find.

Each combination of what a client may say about the rename, for each kind of table; partitions with files, without, and
at a location of their own.
"""

from __future__ import annotations

import copy
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
OLD, ABSENT, ELSEWHERE = "x", "no-files", "else where"


@dataclass(frozen=True)
class Renaming:
    """The client's options."""

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
#: Java copies files of tables without transactions, too, and does not hide the old ones: ours moves them. And it queues
#: a directory that it has moved, without a write id: another partition may be there by then.
JAVA_ALONE = "only tables with transactions are written under write ids"


def cases() -> Iterator[Any]:
    for kind in KINDS:
        for renaming in RENAMINGS:
            if kind in ("plain", "external") and renaming.has_write_id:
                continue  # JAVA_ALONE
            yield kind, renaming


def _files(root: Path) -> dict[str, str]:
    """All files but Hadoop's check sums."""
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.endswith(".crc")
    }


def _renamed(side: Side, name: str, kind: str, renaming: Renaming, root: Path) -> dict[str, Any]:
    """Renames the partition of a new table on one side. Returns the state afterwards."""
    side.call("create_table", table(name, keys=("part:string",), **KINDS[kind]))
    sd = copy.deepcopy(KINDS[kind].get("sd", descriptor()))
    own = root / "external" / "own" / name
    sd.location = str(own) if renaming.partition == ELSEWHERE else None
    side.call("add_partition", partition(renaming.partition, of=name, sd=sd))
    new = side.call("get_partition", "d", name, [renaming.partition])
    place = Path(new.sd.location.removeprefix("file:"))
    if renaming.partition == ABSENT:
        place.rmdir()
    else:
        (place / "delta_0000001_0000001").mkdir(parents=True)
        (place / "delta_0000001_0000001" / "bucket_00000").write_text("rows")
        (place / "_orc_acid_version").write_text("2")
    txn_id, writer = side.call("open_txns", t.OpenTxnRequest(2, "u", "h")).txn_ids
    write_id = -1
    if renaming.has_write_id:
        request = t.AllocateTableWriteIdsRequest("d", name, [txn_id if renaming.has_txn else writer])
        write_id = side.call("allocate_table_write_ids", request).txnToWriteIds[0].writeId
    new.values, new.writeId = [renaming.new], write_id
    valid = f"d.{name}:{max(write_id, 0)}:9223372036854775807::" if renaming.has_list else None
    answer: object = None
    try:
        side.call(
            "rename_partition_req",
            t.RenamePartitionRequest(
                *("hive", "d", name, [renaming.partition], new, valid),
                txnId=txn_id if renaming.has_txn else None,
                clonePart=renaming.makes_copy,
            ),
        )
    except (t.InvalidOperationException, t.MetaException) as error:
        answer = type(error).__name__, error.message.replace(str(root), "ROOT")
        side.begin_anew()
    with side.engine.connect() as connection:
        queue = connection.execute(
            text(
                "SELECT CQ_PARTITION, CQ_STATE, CQ_TYPE, CQ_RUN_AS, CQ_HIGHEST_WRITE_ID, CQ_TXN_ID, CQ_TBLPROPERTIES"
                " FROM COMPACTION_QUEUE WHERE CQ_DATABASE = 'd' AND CQ_TABLE = :name"
            ),
            {"name": name},
        )
        queued = [(*map(str, row[:-1]), _map(row[-1], str(root))) for row in queue]
    [found] = side.call("get_partitions", "d", name, -1)
    warehouses = [path for path in root.glob("*/d.db") if (path / name).is_dir()]
    files = {key: text for path in warehouses for key, text in _files(path / name).items()}
    return {
        "answer": answer,
        "partition": (found.values, found.sd.location.replace(str(root), "ROOT"), found.writeId),
        "files": files | {f"own/{key}": text for key, text in _files(own).items()},
        "queued": queued,
    }


def _map(counted: str, root: str) -> dict[str, str]:
    """What Hive writes as `2:8:location…`: the number of keys, and each text after its length."""
    rest, texts = counted.partition(":")[2], []
    while rest:
        length, _, rest = rest.partition(":")
        texts.append(rest[: int(length)].replace(root, "ROOT"))
        rest = rest[int(length) :]
    return dict(zip(texts[::2], texts[1::2], strict=True))


@pytest.mark.timeout(1400)
def test_what_is_left_of_the_old_name(sides: Sides) -> None:
    differing: list[str] = []
    copied = queued = seen = 0
    for side in (sides.java, sides.ours):
        side.empty()
        side.call("create_database", database())
    for number, (kind, renaming) in enumerate(cases()):
        java, ours = (
            _renamed(side, f"p{number}", kind, renaming, Path(side.warehouse_uri.removeprefix("file:")))
            for side in (sides.java, sides.ours)
        )
        if renaming.makes_copy and renaming.has_txn and not renaming.has_write_id:
            assert all(row[4] == "-1" for row in java.pop("queued"))  # JAVA_ALONE
            assert not ours["queued"]
        seen += 1
        copied += any("_metadata_acid" in name for name in java["files"])
        queued += bool(java.get("queued"))
        differing += [
            f"{kind} {renaming} {key}:\n  java {java[key]}\n  ours {ours[key]}"
            for key in java
            if java[key] != ours[key]
        ]
    assert not differing, f"{len(differing)} of {seen}\n" + "\n".join(differing[:10])
    assert copied > 10
    assert queued > 10
