"""Transactions of jobs against a metastore."""

from __future__ import annotations

import pytest

from hms_cache.jobs.frame.heartbeats import timeout_s
from hms_cache.jobs.statistics.transaction import Transaction
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, Table
from tests.python_client.conftest import StartMetastore


def test_a_transaction_for_which_the_metastore_refuses_the_rest_is_aborted(start_metastore: StartMetastore) -> None:
    """It stayed open until it timed out, for example for each table to which a job may not write: cleaners waited for
    it."""
    metastore = start_metastore()
    with pytest.raises(MetaException, match="Invalid table name"):
        Transaction(metastore.uri, Table(tableName="t", dbName=""))
    answer = metastore.client.call("get_open_txns")
    assert (answer.txn_high_water_mark, answer.min_open_txn) == (1, None)


@pytest.mark.parametrize(("given", "told_s"), [("2 min", 120), ("0.5", 0.5), ("inf", 36_500 * 86_400)])
def test_jobs_know_how_long_a_lock_lives_without_a_heartbeat(
    start_metastore: StartMetastore, given: str, told_s: float
) -> None:
    metastore = start_metastore(**{"transactions.timeout_s": given})
    assert timeout_s(metastore.client) == pytest.approx(told_s)
