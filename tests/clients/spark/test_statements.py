"""Everything that Spark requests from a metastore: the same results as with Spark's own embedded one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import create_engine, func, select

from hms_cache.store.schema import NOTIFICATION_LOG
from tests.clients.conftest import ServerStarter
from tests.clients.spark.comparison import Answers, differences, memory_table
from tests.clients.spark.hive_clients import hive_client
from tests.clients.spark.odd_statements import ODD_STEPS
from tests.clients.spark.session import SparkProcess, embedded, remote
from tests.clients.spark.statements import STEPS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Reference:
    """Spark's results with its embedded metastore."""

    scratch: Path
    answers: Answers


@pytest.fixture(scope="session")
def reference(spark: SparkProcess, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    scratch = tmp_path_factory.mktemp("embedded")
    spark.session(embedded(scratch))
    return Reference(scratch, spark.steps(scratch))


@pytest.fixture(scope="session")
def odd_reference(spark: SparkProcess, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    scratch = tmp_path_factory.mktemp("embedded_odd")
    spark.session(embedded(scratch))
    return Reference(scratch, spark.steps(scratch, odd=True))


def databases_and_caches() -> list[object]:
    on, off = {}, {"cache.enabled": "false"}
    mariadb, postgresql, soak = pytest.mark.mariadb, pytest.mark.postgresql, pytest.mark.soak
    return [
        pytest.param("sqlite", on, id="sqlite", marks=soak),
        pytest.param("mariadb", on, id="mariadb", marks=[mariadb, soak, pytest.mark.long]),
        pytest.param("mariadb", off, id="mariadb, cache off", marks=[mariadb, soak]),
        pytest.param("sqlite", off, id="sqlite, cache off", marks=soak),
        pytest.param("postgresql", on, id="postgresql", marks=[postgresql, soak]),
        pytest.param("sqlite", {"cache.max_staleness_ms": "inf"}, id="sqlite, any staleness", marks=soak),
    ]


@pytest.mark.parametrize(("kind", "settings"), databases_and_caches())
def test_results_are_those_of_sparks_own_metastore(
    spark: SparkProcess,
    reference: Reference,
    start_server: ServerStarter,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    settings: dict[str, str],
) -> None:
    server = start_server(kind, **settings)
    spark.session(remote(tmp_path, server.uri))
    answers = spark.steps(tmp_path, server.port)
    found = differences(reference.answers, reference.scratch, answers, tmp_path)
    assert not found, "\n".join(found)
    assert "ERROR" not in server.log
    outcomes = Counter[str]()
    for answer in answers:
        outcomes.update({name: count for name, count in answer["calls"].items() if name.startswith("cache_reads.")})
    if "cache.enabled" in settings:
        assert not outcomes
        return
    with capsys.disabled():
        print(f"\nSpark's {len(STEPS)} statements on {kind}\n" + "\n".join(memory_table(answers)))
    # A version of an object is loaded once; each event creates at most a new version of the object, of the names around
    # it and of its partitions.
    with create_engine(server.database_url).connect() as connection:
        events = connection.execute(select(func.count()).select_from(NOTIFICATION_LOG)).scalar_one()
    assert outcomes["cache_reads.hit"] > 5 * outcomes["cache_reads.miss"]
    assert outcomes["cache_reads.miss"] <= 3 * events


@pytest.mark.java
@pytest.mark.parametrize(
    "version",
    [
        pytest.param("4.1.0", marks=[pytest.mark.soak, pytest.mark.short]),
        pytest.param("4.0.1", marks=pytest.mark.soak),
        pytest.param("3.1.3", marks=pytest.mark.soak),
    ],
)
def test_results_are_the_same_through_a_client_of_another_hive(
    spark: SparkProcess, reference: Reference, start_server: ServerStarter, tmp_path: Path, version: str
) -> None:
    server = start_server("sqlite")
    spark.session(remote(tmp_path, server.uri) | hive_client(version))
    answers = spark.steps(tmp_path, server.port)
    found = differences(reference.answers, reference.scratch, answers, tmp_path)
    assert not found, "\n".join(found)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def test_odd_values_and_tables_are_answered_as_by_sparks_own_metastore(
    spark: SparkProcess, odd_reference: Reference, start_server: ServerStarter, tmp_path: Path, kind: str
) -> None:
    server = start_server(kind)
    spark.session(remote(tmp_path, server.uri))
    answers = spark.steps(tmp_path, server.port, odd=True)
    found = differences(odd_reference.answers, odd_reference.scratch, answers, tmp_path, steps=ODD_STEPS)
    assert not found, "\n".join(found)
    assert "ERROR" not in server.log
