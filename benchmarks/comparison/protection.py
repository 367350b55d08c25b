"""What TLS, Kerberos and authorization cost a hot read: servers on SQLite, on one processor."""

from __future__ import annotations

from benchmarks import security
from benchmarks.comparison.context import Comparison

ROUNDS, REQUESTS = 9, 500
LEAST_SHARE = 0.9
"""Least rate with a policy, as a share of the rate without one."""


def measure_protection(comparison: Comparison) -> None:
    """Adds the table of all kinds of protection, and the bar on the cost of a policy with each of them."""
    costs = security.measure(ROUNDS, REQUESTS, comparison.report)
    comparison.results.sections.append(("What protection costs a hot get_table", list(security.TITLES), costs.rows))
    comparison.results.bar(
        "get_table, hot, authorization by a policy, one client",
        f"≥ {LEAST_SHARE:.0%} of the rate without",
        ", ".join(f"{name} {share:.0%}" for name, share in costs.policy_shares),
        all(share >= LEAST_SHARE for _, share in costs.policy_shares),
    )
