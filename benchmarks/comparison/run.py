"""The parts in their order."""

from __future__ import annotations

import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.engine import make_url

from benchmarks.catalog import ROOT, CatalogPlan
from benchmarks.cloning import copy_partitions
from benchmarks.comparison import coherence, reads, starting, writes
from benchmarks.comparison.context import Comparison, Sizes
from benchmarks.comparison.delays import measure_delays
from benchmarks.comparison.events import measure_events
from benchmarks.comparison.hot_reads import measure_hot_reads
from benchmarks.comparison.large_table import measure_large_table
from benchmarks.comparison.leases import measure_leases
from benchmarks.comparison.protection import measure_protection
from benchmarks.comparison.reads import JAVA, JAVA_UNCACHED, OURS_0, OURS_500, OURS_INF, OURS_UNCACHED
from benchmarks.comparison.results import Results
from benchmarks.comparison.write_id_reads import measure_trusted
from benchmarks.comparison.writing import machine_facts, markdown, plots, write
from benchmarks.java_metastore import fetch, load_schema, server_process_id, statement_counter
from benchmarks.load import load
from benchmarks.processes import resident_bytes

FULL = Sizes(1.0, (1, 4, 16, 64), (1, 4, 16), (0, 1, 5, 20), 1_000_000, 1500)
QUICK = Sizes(0.5, (4, 16), (4,), (0, 5), 200_000, 300)

PLAN = CatalogPlan(databases=14, tables=51, large=10_000, copies_1000=78, copies_100=102)
"""897 tables, 99,300 partitions: large enough that no single table determines the result."""

SMALL_PLAN = CatalogPlan(databases=14, tables=10, large=10_000, copies_1000=10, copies_100=10)

WRONG_READS_S = 6.0
FEW_TABLES = {"metastore.cached.rawstore.cached.object.whitelist": "bench_13\\..*"}


class Run:
    """One comparison: runs `parts` in order, catches the failures of each, and writes the report after each."""

    def __init__(self, comparison: Comparison, command: str, out: Path | None, only: Sequence[str] = ()) -> None:
        self._c = comparison
        self._command = command
        self._out = out
        self._only = only
        self._answers: dict[str, dict[str, int]] = {}
        self._warm_s: float | None = None
        self._warm_bytes = 0
        self.facts = ""

    def parts(self) -> list[tuple[str, Callable[[], None]]]:
        """Returns the parts; the longest and least important ones are last."""
        return [
            ("the prewarm", self._prewarm),
            ("memory", self._memory),
            ("hot reads", lambda: measure_hot_reads(self._c)),
            ("our server at staleness 0", self._ours_0),
            ("Hive with its cache", self._hive),
            ("our server at 500 ms", self._ours_500),
            ("our server without its cache", self._ours_uncached),
            ("Hive without its cache", self._hive_uncached),
            ("wrong reads, ours", self._wrong_ours),
            ("wrong reads, Hive", self._wrong_hive),
            ("our server at inf", self._ours_inf),
            ("events", lambda: measure_events(self._c)),
            ("write-id reads", lambda: measure_trusted(self._c)),
            ("delays", lambda: measure_delays(self._c)),
            ("exact reads by lease", lambda: measure_leases(self._c)),
            ("protection", lambda: measure_protection(self._c)),
            ("a very large table", lambda: measure_large_table(self._c)),
        ]

    def run(self) -> None:
        """All parts."""
        comparison = self._c
        for name, part in self.parts():
            if self._only and not any(word in name for word in self._only):
                continue
            if comparison.elapsed_s() > comparison.sizes.limit_s:
                comparison.results.failures.append(f"{name}: left out, {comparison.sizes.limit_s:g} s were over")
                continue
            comparison.report(f"{comparison.elapsed_s():5.0f} s  {name}")
            try:
                part()
            except Exception as error:
                comparison.report(traceback.format_exc())
                comparison.results.failures.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
            self.write()
        comparison.report(self.write())

    def write(self) -> str:
        """Writes the report of the results so far."""
        c = self._c
        judged = Results(list(c.results.rows), list(c.results.bars), list(c.results.sections))
        judged.notes, judged.failures = list(c.results.notes), list(c.results.failures)
        early, judged.bars = judged.bars, []
        reads.judge(judged, c.plan.large)
        reads.judge_uncached(judged, c.plan.large)
        reads.judge_checks(judged)
        judged.bars += early
        tables, partitions = c.plan.size()
        catalog = f"{tables:,} tables, {partitions:,} partitions"
        stem = self._out.stem if self._out is not None else "benchmarks"
        text = markdown(judged, self._command, self.facts, catalog, c.elapsed_s(), list(plots(judged, stem)))
        if self._out is not None:
            write(judged, text, self._out)
        return text

    # Parts

    def _prewarm(self) -> None:
        self._warm_s, self._warm_bytes = starting.prewarm_undisturbed(self._c)

    def _memory(self) -> None:
        starting.memory(self._c, self._warm_bytes)

    def _ours_0(self) -> None:
        c = self._c
        with c.own("own-0", CACHE__WARM="full") as server:
            hot = reads.operations(c, server.address)[0]
            busy_s = starting.warm_up(c, server, hot)
            c.results.notes.append(f"Prewarm of ours with 4 clients that read all the time: {busy_s:.1f} s.")
            reads.measure_all(c, OURS_0, server.address, server.pid)
            self._answers[OURS_0] = coherence.answers(c, server.address)
            peak = reads.peak_under_large_answers(c, server.address, server.pid)
        c.results.bar(
            "memory under 16 clients that read 15 MB answers, after all other reads",
            "≤ 600 MB",
            f"{peak / 1e6:,.0f} MB",
            peak <= 600e6,
        )

    def _ours_500(self) -> None:
        with self._c.own("own-500", CACHE__WARM="full", CACHE__MAX_STALENESS_MS="500") as server:
            starting.wait_until_warm(server)
            reads.measure_all(self._c, OURS_500, server.address, server.pid)

    def _ours_inf(self) -> None:
        with self._c.own("own-inf", CACHE__WARM="full", CACHE__MAX_STALENESS_MS="inf") as server:
            starting.wait_until_warm(server)
            reads.measure_some(self._c, OURS_INF, server.address, server.pid, reads.INF)

    def _hive(self) -> None:
        c = self._c
        with c.java("java", cached=True) as server:
            hive_s = starting.java_prewarm_s(server)
            tables, partitions = c.plan.size()
            what = f"prewarm of {tables:,} tables and {partitions:,} partitions"
            if self._warm_s:
                text = f"{self._warm_s:.1f} s (Hive {hive_s:.1f} s): {hive_s / self._warm_s:.1f} ×"
                c.results.bar(what, "≥ 4 × faster than Hive", text, hive_s >= 4 * self._warm_s)
            else:
                c.results.bar(what, "≥ 4 × faster than Hive", f"Hive {hive_s:.1f} s, ours not measured", None)
            c.results.notes.append(f"Hive with its cache, warm: {resident_bytes(server.pid) / 1e6:,.0f} MB resident.")
            reads.warm_the_compiler(c, server.address, 4 * c.sizes.seconds)
            reads.measure_all(c, JAVA, server.address, server.pid, warm_s=1.0)
            self._answers[JAVA] = coherence.answers(c, server.address)
            c.results.notes.append(f"After the reads: {resident_bytes(server.pid) / 1e6:,.0f} MB.")

    def _ours_uncached(self) -> None:
        c = self._c
        with c.own("own-off", CACHE__ENABLED="false") as server:
            self._answers[OURS_UNCACHED] = coherence.answers(c, server.address)
            reads.measure_some(c, OURS_UNCACHED, server.address, server.pid, reads.UNCACHED)
            reads.more_clients_than_connections(c, OURS_UNCACHED, server.address, server.pid)
            writes.measure_additions(c, OURS_UNCACHED, server.address, server.pid)
        differing = coherence.different(self._answers.get(OURS_0, {}), self._answers[OURS_UNCACHED])
        c.results.bar(
            "answers with cache = answers without",
            "equal, always",
            f"{len(self._answers[OURS_UNCACHED])} operations compared, "
            + (f"different: {', '.join(differing)}" if differing else "none different"),
            not differing if OURS_0 in self._answers else None,
        )

    def _hive_uncached(self) -> None:
        c = self._c
        with c.java("java-off", cached=False) as server:
            starting.first_answer_s(server.address)
            reads.measure_some(c, JAVA_UNCACHED, server.address, server.pid, reads.UNCACHED)
            writes.measure_additions(c, JAVA_UNCACHED, server.address, server.pid)
            self._answers[JAVA_UNCACHED] = coherence.answers(c, server.address)
        writes.judge_additions(c, OURS_UNCACHED, JAVA_UNCACHED)
        if JAVA in self._answers:
            differing = coherence.different(self._answers[JAVA], self._answers[JAVA_UNCACHED])
            c.results.notes.append(f"Hive's answers that differ with its cache: {', '.join(differing) or 'none'}.")

    def _wrong_ours(self) -> None:
        c = self._c
        with c.own("own-a", CACHE__WARM="off") as a, c.own("own-b", CACHE__WARM="off") as b:
            wrong, all_reads = coherence.wrong_reads(c, a.address, b.address, WRONG_READS_S)
        c.results.bar(
            "read on B after a write on A",
            "0 wrong at `max_staleness` 0",
            f"{wrong:,} wrong of {all_reads:,}",
            wrong == 0,
        )

    def _wrong_hive(self) -> None:
        c = self._c
        with (
            c.java("java-a", cached=True, properties=FEW_TABLES) as a,
            c.java("java-b", cached=True, properties=FEW_TABLES) as b,
        ):
            for server in (a, b):
                starting.java_prewarm_s(server)
            wrong, all_reads = coherence.wrong_reads(c, a.address, b.address, WRONG_READS_S)
        c.results.notes.append(f"Hive, read on B after a write on A: {wrong:,} wrong of {all_reads:,}.")


@contextmanager
def _database(directory: Path) -> Iterator[str]:
    from tests.databases import start_server

    server = start_server("mariadb", directory)
    try:
        url = server.create_database()
        connection = statement_counter(url)
        with connection, connection.cursor() as cursor:
            cursor.execute("SET GLOBAL innodb_buffer_pool_size = 1073741824")  # the test servers' is small
            # Hive takes an empty password for none given, and then its default one.
            cursor.execute("GRANT ALL ON *.* TO bench@'127.0.0.1' IDENTIFIED BY 'bench'")
        yield make_url(url).set(username="bench", password="bench").render_as_string(hide_password=False)
    finally:
        server.stop()


def run(
    sizes: Sizes,
    plan: CatalogPlan,
    command: str,
    out: Path | None,
    report: Callable[[str], None],
    only: Sequence[str] = (),
) -> bool:
    """Runs all parts, or those whose names contain one of the words in `only`. Returns whether all of them ran."""
    with tempfile.TemporaryDirectory() as temporary, _database(Path(temporary)) as url:
        load_schema(fetch(), url)
        counter = statement_counter(url)
        comparison = Comparison(url, server_process_id(url), counter, Path(temporary), plan, sizes, report)
        with counter.cursor() as cursor:
            cursor.execute("SELECT VERSION()")
            database_version = str(cursor.fetchone()[0])
        measured = Run(comparison, command, out, only)
        measured.facts = machine_facts(database_version)
        try:
            with comparison.own("own-load", CACHE__WARM="off") as server:
                figures = load(server.address, plan, report)
            for source, names in plan.copies_planned().items():
                if names:
                    copy_partitions(url, "bench_00", source, names)
            comparison.results.notes.append(
                f"Load through our server: {figures['partitions_per_second']:,.0f} partitions/s in batches of 100."
            )
            measured.run()
        finally:
            comparison.generator.close()
            counter.close()
            shutil.rmtree(ROOT, ignore_errors=True)
        return not comparison.results.failures
