"""Reads with the database 0, 1, 5 and 20 ms away."""

from __future__ import annotations

from sqlalchemy.engine import make_url

from benchmarks.comparison.context import Comparison
from benchmarks.comparison.delay_proxy import DelayProxy
from benchmarks.comparison.reads import OURS_0, OURS_500, OURS_UNCACHED, operations
from benchmarks.comparison.starting import first_answer_s

CLIENTS = 16
OPERATIONS = ("get_table", "get_partition")


def measure_delays(comparison: Comparison) -> None:
    """Measures this server at `max_staleness` 0, at 500 ms and without its cache, through one proxy."""
    target = make_url(comparison.url)
    proxy = DelayProxy(target.port or 3306)
    url = target.set(port=proxy.port).render_as_string(hide_password=False)
    rows: list[list[str]] = []
    try:
        for server, settings in (
            (OURS_0, {}),
            (OURS_500, {"CACHE__MAX_STALENESS_MS": "500"}),
            (OURS_UNCACHED, {"CACHE__ENABLED": "false"}),
        ):
            proxy.delay(0)
            with comparison.own(f"delayed-{len(rows)}", url, CACHE__WARM="names", **settings) as own:
                first_answer_s(own.address)
                for delay_ms in comparison.sizes.delays_ms:
                    proxy.delay(delay_ms)
                    chosen = [one for one in operations(comparison, own.address) if one.name in OPERATIONS]
                    label = f", database {delay_ms:g} ms away"
                    found = comparison.measure(server, own.address, own.pid, chosen, lambda _: (CLIENTS,), label=label)
                    rows += [
                        [
                            row["operation"].removesuffix(label),
                            server,
                            f"{delay_ms:g}",
                            f"{row['calls_per_second']:,.0f}",
                            f"{row['p50_us'] / 1000:,.2f}",
                            f"{row['p99_us'] / 1000:,.2f}",
                        ]
                        for row in found
                    ]
                proxy.delay(0)
    finally:
        proxy.close()
        rows.sort(key=lambda row: (row[0], row[1], float(row[2])))
        titles = ["operation", "server", "delay ms", "calls/s", "p50 ms", "p99 ms"]
        comparison.results.sections.append((f"The database further away, {CLIENTS} clients", titles, rows))
