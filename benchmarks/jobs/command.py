"""``python -m benchmarks jobs``."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from sqlalchemy import text

from benchmarks.client import connect
from benchmarks.jobs.catalog import JobCatalog, copy_all, create, make_directories, make_events
from benchmarks.jobs.lake import LocalLake, gateway_lake, s3_class_path, s3_lake
from benchmarks.jobs.measures import MEASURES, Measure, Place
from benchmarks.jobs.processor_time import SparkProcessorTime, children
from benchmarks.jobs.report import Figure, Report
from benchmarks.own_metastore import OwnMetastore

DRIVER_MEMORY = "2g"
BUFFER_POOL_BYTES = 4 << 30
"""Large enough for a notification log of a million events."""


@click.command()
@click.option(
    "--partitions", default="1000,10000", show_default=True, help="sizes: partitions, events; 1000000 takes an hour"
)
@click.option("--cores", default="1,2", show_default=True, help="each n runs as local[n]")
@click.option("--only", multiple=True, help="only what is named so, or begins so: files, hms_catalog …")
@click.option("--limit-s", default=300.0, show_default=True, help="a size expected to take longer is left out")
@click.option("--s3-partitions", default="", help="sizes on moto's S3, for what looks at files: 1000")
@click.option("--gateway-partitions", default="", help="the same on an S3 gateway over local directories: 1000000")
@click.option("--out", type=click.Path(path_type=Path), help="Markdown file, written after each measure")
def jobs(
    partitions: str,
    cores: str,
    only: tuple[str, ...],
    limit_s: float,
    s3_partitions: str,
    gateway_partitions: str,
    out: Path | None,
) -> None:
    """Rows per second of data sources and jobs on Spark, and how time grows with the catalog.

    Exits with 1 if a bar is missed.
    """
    sizes = _sizes(partitions)
    stores = {S3: (_sizes(s3_partitions), s3_lake), S3_GATEWAY: (_sizes(gateway_partitions), gateway_lake)}
    stores = {name: each for name, each in stores.items() if each[0]}
    all_sizes = sorted({*sizes, *(size for each, _ in stores.values() for size in each)})
    counts = [int(one) for one in cores.split(",")]
    command = f"python -m benchmarks jobs --partitions {partitions} --cores {cores} --limit-s {limit_s:g}"
    command += f" --s3-partitions {s3_partitions}" if s3_partitions else ""
    command += f" --gateway-partitions {gateway_partitions}" if gateway_partitions else ""
    report = Report(command + "".join(f" --only '{one}'" for one in only))
    chosen = [one for one in MEASURES if not only or any(one.name.startswith(name) for name in only)]

    def markdown() -> str:
        return report.markdown(all_sizes, counts, list(stores))

    def keep() -> None:
        if out is not None:
            out.write_text(markdown())

    with tempfile.TemporaryDirectory(prefix="hms-cache-jobs-") as temporary:
        class_path = s3_class_path() if stores else {}
        if sizes:
            local = JobCatalog(LocalLake(Path(temporary) / "lake"), sizes)
            with _catalog(local, Path(temporary), with_files=any(one.has_files for one in chosen)) as place:
                place = replace(place, settings=class_path)
                for is_hive in (False, True):
                    for count in counts:
                        some = [one for one in chosen if one.is_hive is is_hive]
                        if some:
                            _measure_all(some, place, count, limit_s, report, keep)
        with_files = [one for one in chosen if one.has_files]
        for store, (store_sizes, store_lake) in stores.items():
            directory = Path(temporary) / store.replace(" ", "-")
            directory.mkdir()
            with (
                store_lake(directory) as (lake, settings),
                _catalog(JobCatalog(lake, store_sizes), directory, with_files=True) as place,
            ):
                place = replace(place, settings=settings, store=store)
                _measure_all(with_files, place, counts[0], limit_s, report, keep)
        click.echo(markdown())
    if missed := report.missed():
        raise click.ClickException(f"a bar is missed: {'; '.join(missed)}")


S3, S3_GATEWAY = "S3", "S3 gateway"


def _sizes(text: str) -> list[int]:
    return sorted(int(one) for one in text.split(",") if one)


@contextmanager
def _catalog(catalog: JobCatalog, directory: Path, *, with_files: bool) -> Iterator[Place]:
    """Yields a database, a server on it, and the catalog of all sizes in it."""
    from hms_cache.store.engine.database import Database
    from hms_cache.store.installation.init import init_schema
    from tests.databases import closing, start_mariadb

    server = start_mariadb()
    try:
        url = server.create_database()
        with closing(Database(url)) as database:
            with (
                database.load_engine.connect() as connection
            ):  # the test servers' is small: reads would wait for the disk
                connection.execute(text(f"SET GLOBAL innodb_buffer_pool_size = {BUFFER_POOL_BYTES}"))
            init_schema(database)
        with _serving(url, directory / "loading") as loading:
            create(catalog, loading.address, click.echo)
            make_events(catalog, loading.address)
        copy_all(catalog, url, max(catalog.sizes), click.echo)
        if with_files:
            make_directories(catalog, click.echo)
        with _serving(url, directory / "serving") as serving:
            last = connect(serving.address).get_current_notificationEventId().eventId
            # But for the JVM of a session before this one, the children are the servers.
            watch = SparkProcessorTime(set(children(os.getpid())) - _of_spark())
            try:
                yield Place(catalog, f"thrift://{serving.address}", url, last, directory, watch)
            finally:
                watch.stop()
    finally:
        server.stop()
        # Faster than what the temporary directory's own end does.
        shutil.rmtree(directory / "lake", ignore_errors=True)


def _of_spark() -> set[int]:
    """Returns the process of the JVM, which outlives its sessions."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    return set() if process is None else {process.pid}


@contextmanager
def _serving(url: str, directory: Path) -> Iterator[OwnMetastore]:
    server = OwnMetastore(url, directory, ADMIN__PORT="0")
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _measure_all(
    measures: Sequence[Measure], place: Place, cores: int, limit_s: float, report: Report, keep: Callable[[], None]
) -> None:
    """Measures all sizes of each measure in one Spark session with this many cores."""
    from hms_cache.jobs.frame.session import job_session

    conf = {"spark.driver.memory": DRIVER_MEMORY, "spark.sql.warehouse.dir": str(place.scratch / "warehouse")}
    conf |= place.settings
    if any(one.is_hive for one in measures):
        conf |= {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": place.metastore,
        }
    with job_session("benchmark", f"local[{cores}]", conf) as spark:
        _warm_up(spark, place)
        for measure in measures:
            before: Figure | None = None
            for size in place.catalog.sizes:
                if before is not None and before.seconds * size / before.size > limit_s:
                    report.notes.append(
                        f"{measure.name}, {size:,}, {cores} core{'s' * (cores > 1)}: left out, {before.size:,} took "
                        f"{before.seconds:.0f} s"
                    )
                    break
                before = _measure(measure, spark, place, size, cores)
                report.figures.append(before)
                keep()


def _measure(measure: Measure, spark: Any, place: Place, size: int, cores: int) -> Figure:
    if measure.before is not None:
        measure.before(place, size)
    before, started = place.processor_time.seconds(), time.perf_counter()
    rows = measure.run(spark, place, size)
    seconds, cpu = time.perf_counter() - started, place.processor_time.seconds() - before
    if measure.after is not None:
        measure.after(place, size)
    click.echo(
        f"local[{cores}]  {measure.name}: {rows:,} {measure.rows} in {seconds:.1f} s ({cpu:.1f} s of CPU), "
        f"{rows / seconds:,.0f}/s"
    )
    return Figure(measure.name, measure.rows, size, cores, rows, seconds, cpu, place.store)


def _warm_up(spark: Any, place: Place) -> None:
    """The session's first query loads classes and starts Python's workers."""
    spark.read.format("hms_catalog").option("metastore", place.metastore).load("databases").collect()
    spark.range(1000).repartition(4).groupBy().count().collect()
