"""Times and numbers without an upper bound: infinity, values beyond any clock, and the largest numbers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from hms_cache.app.database import ensure_first_rows, open_database, require_schema
from hms_cache.app.housekeeping import Housekeeping
from hms_cache.app.security.delegation import token_manager
from hms_cache.app.service import Service
from hms_cache.app.stores import build_database_stores
from hms_cache.authentication.delegation.token_manager import Caller
from hms_cache.config.setting import LARGEST_NUMBER
from hms_cache.config.settings import SettingReference, all_settings, section_types
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.app.test_service import client, configured
from tests.cache.world import partition, table
from tests.databases import closing

HUGE = 1e18
"""As many seconds as the universe is old, twice; in milliseconds no database's number holds it."""


def is_unbounded(setting: SettingReference, value: float) -> bool:
    is_time = setting.field.annotation is float and setting.key.endswith(("_s", "_ms", "_min"))
    if not (is_time if isinstance(value, float) else setting.field.annotation is int):
        return False
    try:
        section_types()[setting.section].model_validate({setting.key: value})
    except ValidationError:
        return False
    return True


UNBOUNDED = [one.name for one in all_settings() if is_unbounded(one, math.inf)]
NUMBERS = [one.name for one in all_settings() if is_unbounded(one, LARGEST_NUMBER)]


def test_they_are_found() -> None:
    assert {"events.clean_interval_s", "warehouse.file_timeout_s"} <= {*UNBOUNDED}
    assert "lease.length_s" not in UNBOUNDED


def all_set_to(value: float) -> dict[str, object]:
    if isinstance(value, int):
        return dict.fromkeys(NUMBERS, value)
    return {**dict.fromkeys(UNBOUNDED, value), "warehouse.trash_interval_min": 0}


@pytest.mark.parametrize("value", [math.inf, HUGE, LARGEST_NUMBER])
def test_a_server_works_with_all_of_them(
    request: pytest.FixtureRequest,
    initialized_database_url: str,
    value: float,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Waiting for a file system, for a connection, or for the last calls at the end failed with an OverflowError."""
    given = {**all_set_to(value), "database.url": initialized_database_url, "cache.dump_file": str(tmp_path / "dump")}
    service = Service(configured(tmp_path, admin__enabled=True, admin__port=0, **given))
    uri = service.start()
    request.addfinalizer(service.stop)
    with client(uri) as metastore:
        partitioned = table("default", "p", keys=(("day", "string"),))
        metastore.create_table(partitioned)
        metastore.add_partitions([partition(partitioned, (str(day),)) for day in range(3)])
        for _ in range(3):
            assert len(metastore.get_partitions("default", "p", -1)) == 3
        metastore.drop_table("default", "p", True)
    service.stop()
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR" or one.exc_info] == []


@pytest.mark.parametrize(
    "setting", [one for one in all_settings() if one.field.annotation is int], ids=lambda one: one.name
)
def test_no_whole_number_is_too_large_for_a_database(setting: SettingReference) -> None:
    """A limit of 2**63 - 1 partitions made each read of partitions fail with an OverflowError."""
    with pytest.raises(ValidationError, match="less than or equal to"):
        section_types()[setting.section].model_validate({setting.key: 2**63 - 1})


@pytest.mark.parametrize("value", [math.inf, HUGE, LARGEST_NUMBER])
def test_housekeeping_works_with_all_of_them(
    initialized_database_url: str, value: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kerberos = {"kerberos_enabled": True, "kerberos_principal": "hive/_HOST@EXAMPLE.TEST", "kerberos_keytab_file": "k"}
    settings = configured(
        tmp_path,
        **{f"authentication.{name}": one for name, one in kerberos.items()},
        **all_set_to(value),
        database__url=initialized_database_url,
        compactions__initiator=True,
    ).settings
    with closing(open_database(settings)) as database:
        require_schema(database, settings)
        ensure_first_rows(database, settings)
        stores = build_database_stores(settings, database)
        tokens = token_manager(settings, stores.auxiliary.tokens, lambda user: frozenset(), is_hive_3=False)
        assert tokens is not None
        token = tokens.issue(Caller("ann", "ann@EXAMPLE.TEST", "10.0.0.1", True), "ann", "ann")
        [txn_id] = stores.transactions.open_txns(ttypes.OpenTxnRequest(1, "ann", "host")).txn_ids
        housekeeping = Housekeeping(settings, stores, tokens)
        works = (
            *(housekeeping._time_out, housekeeping._keep_transactions, housekeeping._clean_events),
            *(housekeeping._clean_scheduled_queries, housekeeping._clean_reports, housekeeping._clean_tokens),
        )
        for work in works:
            work()
        assert tokens.renew(Caller("ann", "ann@EXAMPLE.TEST", "10.0.0.1", False), token) > 0
        stores.transactions.commit_txn(ttypes.CommitTxnRequest(txn_id))
    assert [one.getMessage() for one in caplog.records if one.levelname in ("WARNING", "ERROR")] == []
