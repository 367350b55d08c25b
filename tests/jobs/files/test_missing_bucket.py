"""A bucket that does not exist, for example because the endpoint belongs to another store: its contents are unknown.

It was treated as if each directory in it were empty or gone: partitions then have no rows, and are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hms_cache.jobs.files import directories
from hms_cache.jobs.files.directories import DirectoryFiles, DirectoryLister
from hms_cache.jobs.files.repair import _is_gone
from hms_cache.jobs.repair import directories as repair
from hms_cache.jobs.repair.directories import Directories
from hms_cache.jobs.repair.plan import Change, missing
from hms_cache.jobs.statistics.data_files import FigureLister, Figures
from hms_cache.jobs.statistics.rows.small_files import Files
from hms_cache.store.warehouse.file_systems import FileSystems
from hms_cache.store.warehouse.locations import Location
from tests.moto_server import object_store
from tests.s3_objects import Buckets

pytest.importorskip("s3fs")

PLACES = ["s3a://away/w/t/p=1", "s3a://away/w/t/p=2", "s3a://away", "s3://away/w/t"]
NO_BUCKET = "There is no bucket away"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buckets]:
    with object_store(tmp_path_factory.mktemp("missing")) as made:
        made.make_bucket("lake")
        made.put("lake", "w/t/p=1/f")
        yield made


@pytest.fixture(autouse=True)
def store(server: Buckets, monkeypatch: pytest.MonkeyPatch) -> None:
    """The jobs' own drivers read their credentials from the environment."""
    options = dict.fromkeys(("s3a", "s3"), server.options)
    for module in (directories, repair):
        monkeypatch.setattr(module, "FileSystems", lambda: FileSystems(options))


def test_statistics_know_nothing_of_it() -> None:
    lister = FigureLister()
    for place in PLACES:
        figures, problem = lister.figures(place)
        assert figures is None and (problem or "").startswith(NO_BUCKET)
    assert lister.of_many(PLACES, len(PLACES)) == {}
    with Files() as files:
        for _, content in files.of_units({place: {"location": place} for place in PLACES}):
            with pytest.raises(OSError, match=NO_BUCKET):
                content()
    # In an existing bucket, a missing directory has no files.
    assert lister.figures("s3a://lake/w/t/p=2") == (Figures(0, 0, 0), None)
    assert lister.of_many(["s3a://lake/w/t/p=1", "s3a://lake/w/t/p=2"], 2)["s3a://lake/w/t/p=2"] == Figures(0, 0, 0)


def test_no_partition_in_it_is_gone() -> None:
    lister = DirectoryLister()
    root = "s3a://lake/w/t"
    for place in PLACES:
        found = lister.files(place)
        assert found == DirectoryFiles(False, problem=found.problem) and (found.problem or "").startswith(NO_BUCKET)
        assert not _is_gone(lister, place, root)
    assert _is_gone(lister, f"{root}/p=2", root) and not _is_gone(lister, f"{root}/p=1", root)
    changes = [Change(f"p={number}", place) for number, place in enumerate(PLACES[:2])]
    there, gone = Change("p=1", "s3a://lake/w/t/p=1"), Change("p=2", "s3a://lake/w/t/p=2")
    with ThreadPoolExecutor(1) as pool:
        none, unknown = missing([*changes, there, gone], Directories(), pool, Location.parse(root))
    assert none == [gone] and [change for change, _ in unknown] == changes
    assert all(reason.startswith(NO_BUCKET) for _, reason in unknown)
    assert Directories().exists(Location.parse("s3a://lake")) and not Directories().exists(Location.parse("s3a://away"))
