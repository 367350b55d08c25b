"""On databases of Hive 3.1, calls succeed, or say what the schema lacks: none fails because of a missing table or
column."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.conftest import ServerLookup
from tests.database_kinds import SERVER_KINDS
from tests.differential.comparison import Scenario, run
from tests.differential.metastores import Sides, our_metastore
from tests.differential.scenarios.every import SCENARIOS
from tests.store.schema.distribution import load_hive_schema

pytestmark = [pytest.mark.java]

QUICK = ("databases.drop", "partitions.one")
"""Those that run in each test run."""


@pytest.fixture(scope="module", params=SERVER_KINDS)
def sides(
    request: pytest.FixtureRequest, database_servers: ServerLookup, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sides]:
    """Ours on a schema of 4.0, instead of Hive's metastore, and on one of 3.1."""
    server = database_servers(request.param)
    with ExitStack() as stack:
        newer, older = (server.create_database() for _ in range(2))
        for url, release in ((newer, "4.0.1"), (older, "3.1.3")):
            stack.callback(server.drop_database, url)
            load_hive_schema(url, release)
        directories = [tmp_path_factory.mktemp(name) for name in ("newer", "older")]
        first, second = (
            stack.enter_context(our_metastore(url, directory))
            for url, directory in zip((newer, older), directories, strict=True)
        )
        yield Sides(first, second)


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(one, id=name, marks=() if name in QUICK else [pytest.mark.soak, pytest.mark.long])
        for name, one in SCENARIOS.items()
    ],
)
def test_nothing_fails_for_what_the_schema_lacks(sides: Sides, scenario: Scenario) -> None:
    sides.java.empty()
    sides.ours.empty()
    failed = [
        str(comparison)
        for comparison in run(scenario, sides.java, sides.ours)
        if comparison.ours.text.startswith("Internal error") and comparison.java.error != comparison.ours.error
    ]
    assert not failed, "\n".join(failed)
