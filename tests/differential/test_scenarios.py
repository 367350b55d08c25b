"""Hive 4.0.1's standalone metastore and ours answer the same calls equally."""

from __future__ import annotations

import pytest

from tests.differential.comparison import Scenario, run
from tests.differential.metastores import Sides
from tests.differential.scenarios.every import SCENARIOS

pytestmark = [pytest.mark.java, pytest.mark.mariadb, pytest.mark.soak, pytest.mark.long]


@pytest.mark.parametrize("scenario", [pytest.param(one, id=name) for name, one in SCENARIOS.items()])
def test_answers_are_equal(sides: Sides, scenario: Scenario) -> None:
    sides.java.empty()
    sides.ours.empty()
    comparisons = run(scenario, sides.java, sides.ours)
    unexplained = [str(comparison) for comparison in comparisons if not comparison.is_as_expected]
    assert not unexplained, "\n".join(unexplained)
