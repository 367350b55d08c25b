"""``python -m benchmarks repair``: time of `jobs repair` for one table, compared with the listing of its
directories."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import click

from benchmarks.catalog import TablePlan, partition, table
from benchmarks.client import connect
from benchmarks.cloning import multiply_partitions
from benchmarks.jobs.lake import BUCKET, S3Lake, gateway_lake, s3_lake
from benchmarks.own_metastore import OwnMetastore
from hms_cache.thrift_gen.hive_metastore import ttypes

_DATABASE, _TABLE, _COLUMNS = "repair", "t", 4
_HOURS = 24
"""Partitions in a directory of a day."""

_THREADS = 16
"""The job's default."""

_JUDGED_PARTITIONS, _MAX_TIMES = 1_000_000, 1.25
"""The bar: with at least this many partitions, and a request for each listing, a repair may take this multiple of the
listing."""


@click.command()
@click.option("--partitions", default="100000,1000000", show_default=True)
@click.option("--s3-partitions", default="", help="sizes on moto's S3: 24000")
@click.option("--gateway-partitions", default="", help="sizes on an S3 gateway over local directories: 1000000")
@click.option("--new", default=1_000, show_default=True, help="directories without a partition")
@click.option("--once", is_flag=True, help="neither through the metastore only, nor again")
def repair(partitions: str, s3_partitions: str, gateway_partitions: str, new: int, once: bool) -> None:
    """Seconds of a listing with `os.scandir`, of a plan of nothing, and of a repair, on local directories.

    *Cold*: the kernel has forgotten the directories and reads them from the disk, as each night of a job finds them.
    That takes root; otherwise these are as warm as the others. On S3 the listing alone is made with boto3, by as many
    threads as the job's. Exits with 1 if a repair of a million partitions on S3 takes longer than its listing.
    """
    missed: list[str] = []
    click.echo(
        "| partitions | new | listing alone | plan of nothing | repair, --database | repair, metastore only "
        "| listing alone, cold | repair, --database, cold | MiB |"
    )
    click.echo("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, sizes, made in (
        ("", partitions, _local_tree),
        (", S3", s3_partitions, _moto_tree),
        (", S3 gateway", gateway_partitions, _gateway_tree),
    ):
        for count in (int(one) for one in sizes.split(",") if one):
            with tempfile.TemporaryDirectory(prefix="hms-cache-repair-") as directory, made(Path(directory)) as tree:
                figures = _measured(Path(directory), tree, count, new, once=once)
            cells = ["" if figure is None else f"{figure:.1f}" for figure in figures]
            click.echo(f"| {count:,}{name} | {new:,} | {' | '.join(cells)} |")
            if count >= _JUDGED_PARTITIONS and name and figures.repair_s > _MAX_TIMES * figures.listing_s:
                missed.append(f"{count:,}{name}: {figures.repair_s:.1f} s, {figures.listing_s:.1f} s the listing")
    if missed:
        raise click.ClickException(f"a repair takes more than {_MAX_TIMES:g} times its listing: {'; '.join(missed)}")


class _Figures(NamedTuple):
    """Seconds, as in the columns, and the most memory of a process, in MiB."""

    listing_s: float
    nothing_s: float
    repair_s: float
    metastore_only_s: float | None
    listing_again_s: float | None
    again_s: float | None
    peak_mib: float


class _Tree(Protocol):
    """Directories of partitions."""

    root: str

    def make(self, names: Iterable[str]) -> None: ...

    def list(self) -> int:
        """Lists all directories and does nothing else. Returns their number."""
        ...

    def forget(self) -> None:
        """Makes the next read of the directories a cold one."""
        ...


class _LocalTree:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.root = f"file:{directory}"

    def make(self, names: Iterable[str]) -> None:
        for name in names:
            os.makedirs(self._directory / name, exist_ok=True)

    def list(self) -> int:
        found = 0
        for day in os.scandir(self._directory):
            with os.scandir(day.path) as hours:
                found += sum(1 for hour in hours if hour.is_dir())
        return found

    def forget(self) -> None:
        # The database keeps its own buffers.
        os.sync()
        with suppress(PermissionError):
            Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")


class _BucketTree:
    def __init__(self, lake: S3Lake) -> None:
        self._lake = lake
        self.root = f"{lake.root}/lake"

    def make(self, names: Iterable[str]) -> None:
        with ThreadPoolExecutor(_THREADS) as pool:
            for _ in pool.map(lambda name: self._lake.write(f"{self.root}/{name}/data", b"12345"), names):
                pass

    def list(self) -> int:
        import boto3  # type: ignore[import-untyped]

        client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])

        def children(prefix: str) -> list[str]:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix, Delimiter="/")
            return [each["Prefix"] for page in pages for each in page.get("CommonPrefixes", ())]

        with ThreadPoolExecutor(_THREADS) as pool:
            return sum(map(len, pool.map(children, children("lake/"))))

    def forget(self) -> None:
        pass  # it is asked each time


class _GatewayTree(_BucketTree):
    """Directories of partitions whose objects are files of the gateway."""

    def __init__(self, lake: S3Lake, bucket: Path) -> None:
        super().__init__(lake)
        self._bucket = bucket
        self._files = _LocalTree(bucket / "lake")

    def make(self, names: Iterable[str]) -> None:
        made = list(names)
        self._files.make(made)
        for name in made:
            (self._bucket / "lake" / name / "data").write_bytes(b"12345")

    def forget(self) -> None:
        self._files.forget()


@contextmanager
def _local_tree(directory: Path) -> Iterator[_Tree]:
    yield _LocalTree(directory / "lake")
    shutil.rmtree(directory / "lake", ignore_errors=True)


@contextmanager
def _moto_tree(directory: Path) -> Iterator[_Tree]:
    with s3_lake(directory) as (lake, _):
        yield _BucketTree(lake)


@contextmanager
def _gateway_tree(directory: Path) -> Iterator[_Tree]:
    with gateway_lake(directory) as (lake, _):
        yield _GatewayTree(lake, lake.bucket)


def _measured(directory: Path, tree: _Tree, count: int, new: int, *, once: bool) -> _Figures:
    from hms_cache.store.engine.database import Database
    from hms_cache.store.installation.init import init_schema
    from tests.databases import closing, start_mariadb

    plan = TablePlan(_DATABASE, _TABLE, _COLUMNS, count)
    mariadb = start_mariadb()
    try:
        url = mariadb.create_database()
        with closing(Database(url)) as database:
            init_schema(database)
        loading = OwnMetastore(url, directory / "loading", ADMIN__PORT="0")
        loading.start()
        try:
            _create(loading.address, plan, tree.root)
        finally:
            loading.stop()
        multiply_partitions(url, _DATABASE, _TABLE, count, _HOURS)
        tree.make(map(_name, range(count)))
        serving = OwnMetastore(url, directory / "serving", ADMIN__PORT="0")
        serving.start()
        try:
            return _runs(serving.address, url, tree, count, new, once=once)
        finally:
            serving.stop()
    finally:
        mariadb.stop()


def _create(address: str, plan: TablePlan, root: str) -> None:
    client = connect(address)
    client.create_database(ttypes.Database(name=_DATABASE, locationUri=root, parameters={}))
    made = table(plan)
    made.sd.location = root
    made.partitionKeys = [ttypes.FieldSchema(key, "string", None) for key in ("dt", "hour")]
    client.create_table(made)
    parts = [partition(plan, number) for number in range(_HOURS)]
    for number, part in enumerate(parts):
        part.values = [f"day-{0:06d}", str(number)]
        part.sd.location = f"{root}/{_name(number)}"
    client.add_partitions_req(ttypes.AddPartitionsRequest(_DATABASE, _TABLE, parts, False, False))


def _name(number: int) -> str:
    """Returns the partition's name, as `multiply_partitions` chooses it."""
    return f"dt=day-{number // _HOURS:06d}/hour={number % _HOURS}"


def _runs(address: str, url: str, tree: _Tree, count: int, new: int, *, once: bool) -> _Figures:
    listing_s = _timed(tree.list)
    options = ["--metastore", f"thrift://{address}", "--tables", f"{_DATABASE}.{_TABLE}", "--mode", "add"]
    fast = [*options, "--database", url]
    nothing_s = _timed(lambda: _repair(fast, 0))

    def repaired_s(number: int, arguments: list[str], *, cold: bool = False) -> float:
        tree.make(_name(count + number * new + extra) for extra in range(new))
        if cold:
            tree.forget()
        return _timed(lambda: _repair(arguments, new))

    fast_s = repaired_s(0, fast)
    slow_s = cold_listing_s = cold_s = None
    if not once:
        slow_s = repaired_s(1, options)
        tree.forget()
        cold_listing_s = _timed(tree.list)
        cold_s = repaired_s(2, fast, cold=True)
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return _Figures(listing_s, nothing_s, fast_s, slow_s, cold_listing_s, cold_s, peak_mib)


def _repair(arguments: list[str], expected: int) -> None:
    command = [str(Path(sys.executable).with_name("hms-cache")), "jobs", "repair", "--json", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:] or done.stdout[-2000:])
    summary: dict[str, Any] = json.loads(done.stdout)["summary"]
    if summary["added"] != expected:
        raise RuntimeError(f"not repaired: {summary}")


def _timed(run: Callable[[], object]) -> float:
    started_s = time.monotonic()
    run()
    return time.monotonic() - started_s
