"""One Trino with one of this project's servers for all of its tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.clients.trino.coordinator import Coordinator, Session
from tests.clients.trino.distribution import TrinoMissing, fetch, java
from tests.clients.trino.engines import METASTORES, Engine, EngineLookup, checked, engine_lookup
from tests.conftest import ServerLookup

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def engines(database_servers: ServerLookup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineLookup]:
    """Trino over a server on a kind of database, started at its first use."""
    try:
        java()
        fetch()
    except TrinoMissing as missing:
        pytest.skip(str(missing))
    with engine_lookup(Coordinator, database_servers, lambda: tmp_path_factory.mktemp("trino")) as found:
        yield found


@pytest.fixture(params=METASTORES)
def engine(request: pytest.FixtureRequest, engines: EngineLookup) -> Iterator[Engine]:
    """Trino with each metastore in turn. No call of the test may have met an internal error of the server."""
    with checked(engines, request.param) as found:
        yield found


@pytest.fixture
def trino(engine: Engine) -> Session:
    """A session of the user admin."""
    return engine.session()


@pytest.fixture
def schema(trino: Session) -> str:
    """A new schema of this test's own, of Hive and of Iceberg, for the statements to name."""
    name = f"s{next(_NUMBERS)}"
    trino.execute(f"CREATE SCHEMA hive.{name}")
    return name
