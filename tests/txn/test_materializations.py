"""Whether a materialized view still has the contents of its tables."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import insert

from hms_cache.config.sections import LimitsSettings
from hms_cache.store.schema import COMPLETED_TXN_COMPONENTS
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    CompactionRequest,
    CompactionType,
    CreationMetadata,
    DataOperationType,
    Materialization,
    MetaException,
)
from hms_cache.txn import ValidTxnList
from tests.txn.client import TxnClient, write_component


def built(client: TxnClient, *tables: str) -> CreationMetadata:
    """The metadata of a view that is built now."""
    lists = "$".join(one.to_text() for one in client.valid(*tables))
    snapshot = {"validTxnList": f"5${lists}", "tableSnapshots": None}
    return CreationMetadata(
        catName="hive", dbName="d", tblName="v", tablesUsed=set(tables), validTxnList=json.dumps(snapshot)
    )


def info(client: TxnClient, view: CreationMetadata, snapshot: ValidTxnList | None = None) -> tuple[bool, bool]:
    text = (snapshot or client.snapshot()).to_text()
    answer: Materialization = client.store.get_materialization_invalidation_info(view, text)
    return answer.sourceTablesUpdateDeleteModified, answer.sourceTablesCompacted


def test_updates_invalidate_and_inserts_do_not(client: TxnClient) -> None:
    client.commit(client.write(DataOperationType.UPDATE)[0])
    open_updater, _ = client.write(DataOperationType.UPDATE)
    view = built(client, "d.t", "d.u")
    assert info(client, view) == (False, False)
    client.commit(client.write(DataOperationType.INSERT)[0])
    client.commit(client.write(DataOperationType.DELETE, "other")[0])
    assert info(client, view) == (False, False)
    before = client.snapshot()
    client.commit(open_updater)
    assert info(client, view) == (True, True)
    assert info(client, view, before) == (False, False)
    later = built(client, "d.t")
    client.commit(client.write(DataOperationType.DELETE)[0])
    assert info(client, later) == (True, False)


def test_writes_that_were_open_when_the_view_was_built(client: TxnClient) -> None:
    """A writer may get its write id, wait for the lock of one with a later id, and change rows last. Its record is
    deleted, since a later change is recorded: the view counted as one that inserts alone bring up to date. Hive 4.0.1
    (`GetMaterializationInvalidationInfoFunction`) compares the lowest open write ids."""
    late = client.open()
    client.allocate([late])
    client.commit(client.write(DataOperationType.UPDATE)[0], exclWriteEnabled=True)
    view = built(client, "d.t")
    client.lock(write_component(DataOperationType.UPDATE), txn_id=late)
    client.commit(late, exclWriteEnabled=True)
    for _ in range(52):
        client.commit(client.write(DataOperationType.INSERT)[0])
    client.store.clean()
    assert (1,) not in client.rows(COMPLETED_TXN_COMPONENTS, "CTC_WRITEID")
    assert info(client, view) == (True, True)


def test_compactions_invalidate(client: TxnClient) -> None:
    view = built(client, "d.t")
    client.store.compact2(CompactionRequest(dbname="d", tablename="u", type=CompactionType.MAJOR))
    assert info(client, view) == (False, False)
    client.store.compact2(CompactionRequest(dbname="d", tablename="t", type=CompactionType.MAJOR))
    assert info(client, view) == (False, True)


@pytest.mark.soak
@pytest.mark.long
def test_a_view_of_many_tables_and_ids(client: TxnClient) -> None:
    """As many as the limit of a request permits, each with ids that its snapshot does not see, in statements that all
    databases accept."""
    names = [f"d.t{number}" for number in range(LimitsSettings().request_tables)]
    lists = "$".join(f"{name.upper()}:10:9223372036854775807::2-9" for name in names)
    view = CreationMetadata(catName="hive", dbName="d", tblName="v", tablesUsed=set(names), validTxnList=f"5${lists}")
    assert info(client, view) == (False, False)
    rows = {"CTC_DATABASE": "d", "CTC_UPDATE_DELETE": "Y"}
    for name, write_id in (("t17", 10), ("t4711", 9)):
        client.change(
            insert(COMPLETED_TXN_COMPONENTS).values(**rows, CTC_TXNID=0, CTC_TABLE=name, CTC_WRITEID=write_id)
        )
        assert info(client, view) == (name == "t4711", False)
    client.store.compact2(CompactionRequest(dbname="d", tablename="t9999", type=CompactionType.MAJOR))
    assert info(client, view) == (True, True)


def test_what_is_not_known_counts_as_changed(client: TxnClient) -> None:
    view = built(client, "d.t")
    for text in (None, '{"validTxnList": null}', "5$d.other:1:9223372036854775807::"):
        view.validTxnList = text
        assert info(client, view) == (True, True)
    view.validTxnList = "5$d.t:0:9223372036854775807::"
    assert info(client, view) == (False, False)


@pytest.mark.parametrize("fields", [{"tablesUsed": set()}, {"validTxnList": "{"}, {"validTxnList": "x$d.t:1:1"}])
def test_metadata_that_cannot_be_read(sqlite_client: TxnClient, fields: dict[str, object]) -> None:
    view = built(sqlite_client, "d.t")
    for name, value in fields.items():
        setattr(view, name, value)
    with pytest.raises(MetaException):
        info(sqlite_client, view)
