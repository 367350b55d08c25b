"""One Presto with one of this project's servers for all of its tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.clients.presto.coordinator import PrestoCoordinator
from tests.clients.presto.distribution import PrestoMissing, fetch, java
from tests.clients.trino.coordinator import Session
from tests.clients.trino.engines import OWN_METASTORES, Engine, EngineLookup, checked, engine_lookup
from tests.conftest import ServerLookup

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def engines(database_servers: ServerLookup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineLookup]:
    """Presto over a server on a kind of database, started at its first use."""
    try:
        java()
        fetch()
    except PrestoMissing as missing:
        pytest.skip(str(missing))
    with engine_lookup(PrestoCoordinator, database_servers, lambda: tmp_path_factory.mktemp("presto")) as found:
        yield found


@pytest.fixture(params=OWN_METASTORES)
def engine(request: pytest.FixtureRequest, engines: EngineLookup) -> Iterator[Engine]:
    """Presto with a server on each database in turn. No call of the test may have met an internal error."""
    with checked(engines, request.param) as found:
        yield found


@pytest.fixture
def presto(engine: Engine) -> Session:
    """A session of the user admin."""
    return engine.session()


@pytest.fixture
def schema(presto: Session) -> str:
    """A new schema of this test's own, for the statements to name."""
    name = f"s{next(_NUMBERS)}"
    presto.execute(f"CREATE SCHEMA hive.{name}")
    return name
