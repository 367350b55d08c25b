"""`hms-cache check` on directories: those without a row, and rows without a directory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_cache.app.checks import Findings, run_checks
from hms_cache.app.service import Service
from hms_cache.store.installation import directories
from hms_cache.thrift_gen.hive_metastore.ttypes import Database, FieldSchema, Partition, Table
from tests.app.test_service import configured
from tests.processes.writers import connected, descriptor


def table(database: str, name: str, *keys: str) -> Table:
    columns = [FieldSchema(key, "string", "") for key in keys]
    return Table(name, database, "me", sd=descriptor(), partitionKeys=columns, parameters={}, tableType="MANAGED_TABLE")


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with a table of two partitions, one without any, and a database elsewhere."""
    tmp_path = tmp_path_factory.mktemp("installation")
    service = Service(configured(tmp_path))
    uri = service.start()
    with connected(int(uri.rpartition(":")[2])) as metastore:
        metastore.create_database(Database(name="shop"))
        metastore.create_database(Database(name="far", locationUri=f"file:{tmp_path}/far"))
        metastore.create_table(table("shop", "parted", "day", "hour"))
        for hour in ("1", "2"):
            metastore.add_partition(Partition(["x", hour], "shop", "parted", sd=descriptor(), parameters={}))
        metastore.create_table(table("shop", "plain"))
        metastore.create_table(table("far", "away"))
    service.stop()
    root = tmp_path / "warehouse" / "shop.db"
    (root / "plain" / "part-0").write_text("data")
    (root / "plain" / "sub=1").mkdir()
    (root / "parted" / "day=x" / "hour=1" / "deep").mkdir()
    (root / "parted" / "_temporary").mkdir()
    return tmp_path


@pytest.fixture
def warehouse(installation: Path, tmp_path: Path) -> Iterator[Path]:
    """The same, restored before each test."""
    for name in ("warehouse", "far"):
        shutil.copytree(installation / name, tmp_path / name)
    yield installation
    for name in ("warehouse", "far"):
        shutil.rmtree(installation / name)
        shutil.copytree(tmp_path / name, installation / name)


def found(tmp_path: Path, **settings: object) -> list[str]:
    findings: Findings = run_checks(configured(tmp_path, **settings).settings)
    return [finding.problem for finding in findings.found]


def listing(root: Path) -> list[str]:
    return sorted(str(path) for path in root.rglob("*") if path.suffix not in (".db-wal", ".db-shm"))


def test_a_sound_warehouse_has_nothing_to_tell(warehouse: Path) -> None:
    assert found(warehouse) == []


@pytest.mark.parametrize(
    "orphan",
    [
        "warehouse/old.db",
        "warehouse/shop.db/old",
        "warehouse/shop.db/parted/day=y",
        "warehouse/shop.db/parted/day=x/hour=3",
        "warehouse/shop.db/.deleted-0123",
        "far/old",
    ],
)
def test_a_directory_without_a_row_is_named_with_its_size_and_age(warehouse: Path, orphan: str) -> None:
    (warehouse / orphan / "below").mkdir(parents=True)
    (warehouse / orphan / "below" / "data").write_text("12345")
    before = listing(warehouse)
    (problem,) = found(warehouse)
    assert "no row names 1 directory" in problem
    assert f"{warehouse / orphan} (5 bytes, changed" in problem
    assert listing(warehouse) == before


def test_rows_without_their_directory_are_named(warehouse: Path) -> None:
    shutil.rmtree(warehouse / "warehouse" / "shop.db" / "parted" / "day=x" / "hour=2")
    shutil.rmtree(warehouse / "far" / "away")
    (problem,) = found(warehouse)
    assert "2 directories that tables or partitions name are not there" in problem
    assert "hour=2" in problem
    assert "far/away" in problem


def test_a_move_that_was_cut_short_is_seen_from_both_sides(warehouse: Path) -> None:
    root = warehouse / "warehouse" / "shop.db"
    (root / "plain").rename(root / "renamed")
    (root / ".hms-cache-move-0123").write_text("{}")
    orphans, missing = found(warehouse)
    assert "renamed" in orphans
    assert ".hms-cache-move-0123" in orphans
    assert "shop.db/plain" in missing


@pytest.mark.parametrize("limits", [{"warehouse__listing_max_entries": 2}, {"warehouse__listing_timeout_s": 1e-9}])
def test_a_listing_that_is_cut_short_says_so(warehouse: Path, limits: dict[str, object]) -> None:
    assert any("not all directories were compared" in problem for problem in found(warehouse, **limits))


def test_too_many_partitions_are_left_out_and_that_is_said(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories, "_MAX_PARTITIONS", 1)
    (problem,) = found(warehouse)
    assert "partitions: there are more than 1" in problem


@pytest.mark.parametrize(("most", "is_authorized"), [(2, True), (0, False)])
def test_a_directory_of_a_partition_elsewhere_is_somebodys_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, is_authorized: bool
) -> None:
    """A user may delete a directory that is reported as unused."""
    service = Service(configured(tmp_path))
    uri = service.start()
    root = tmp_path / "warehouse" / "shop.db"
    with connected(int(uri.rpartition(":")[2])) as metastore:
        metastore.create_database(Database(name="shop"))
        metastore.create_table(table("shop", "parted", "day"))
        for day in ("1", "2", "3"):
            metastore.add_partition(Partition([day], "shop", "parted", sd=descriptor(), parameters={}))
        elsewhere = descriptor()
        elsewhere.location = f"file:{root}/beside/deep"
        metastore.add_partition(Partition(["4"], "shop", "parted", sd=elsewhere, parameters={}))
    service.stop()
    (root / "nobodys").mkdir()
    monkeypatch.setattr(directories, "_MAX_PARTITIONS", most)
    *orphans, unfinished = found(tmp_path)
    assert ["1 directory" in problem and "nobodys" in problem for problem in orphans] == [True] * is_authorized
    assert "not all directories were compared" in unfinished
