"""`hms_events` as a stream of a real Spark: a query that is stopped in the middle of a batch, again and again, delivers
each event exactly once."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from hms_cache.jobs.sources import register
from tests.clients.spark.session import SparkProcess
from tests.conftest import ServerStarter
from tests.jobs.catalogs import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

EVENTS = 500


class Stopped(Exception):
    """Ends a query from within a batch."""


def follow(spark: Any, options: dict[str, str], checkpoint: str, failing: list[int]) -> dict[str, Any]:
    """In Spark's process: one query after the other from the same checkpoint; those of `failing` end inside the batch
    of that number, before or after its events are delivered. What is delivered replaces what that batch delivered
    before, as in a sink that writes exactly once."""
    register(spark)
    delivered: dict[int, list[int]] = {}
    runs: list[list[int]] = []

    def query(fail_in: int | None, number: int) -> None:
        batches: list[int] = []

        def take(batch: Any, batch_id: int) -> None:
            ids = [row.event_id for row in batch.select("event_id").collect()]
            if batch_id == fail_in and number % 2:
                raise Stopped
            if batch_id in delivered and delivered[batch_id] != ids:
                raise AssertionError(f"batch {batch_id} held {delivered[batch_id]}, and now {ids}")
            delivered[batch_id] = ids
            batches.append(batch_id)
            if batch_id == fail_in:
                raise Stopped

        stream = spark.readStream.format("hms_events").options(**options).load()
        running = stream.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint).start()
        try:
            running.processAllAvailable()
        except Exception as error:
            if "Stopped" not in str(error):
                raise
        finally:
            running.stop()
            runs.append(batches)

    for number, fail_in in enumerate([*failing, None]):
        query(fail_in, number)
    return {"events": [event for batch in sorted(delivered) for event in delivered[batch]], "runs": runs}


@pytest.mark.parametrize(
    ("kind", "through", "failing", "expected"),
    [
        pytest.param("sqlite", "metastore", [1, 2], [[0, 1], [1], [2, 3, 4]], id="sqlite", marks=pytest.mark.soak),
        pytest.param(
            "mariadb",
            "database",
            [0, 2, 3, 3],
            [[0], [0, 1], [2, 3], [], [3, 4]],
            id="mariadb",
            marks=[pytest.mark.mariadb, pytest.mark.soak],
        ),
    ],
)
def test_each_event_once(
    start_server: ServerStarter,
    job_spark: SparkProcess,
    tmp_path: Path,
    kind: str,
    through: str,
    failing: list[int],
    expected: list[list[int]],
) -> None:
    server = start_server(kind)
    with closing(Catalog(server.uri)) as catalog:
        catalog.database("d")
        table = catalog.table("d", "t")
        for number in range(EVENTS - 2):
            table.parameters["n"] = str(number)
            catalog.client.call("alter_table", "d", "t", table)
    with closing(create_engine(server.database_url).connect()) as connection:
        quote = '"' if kind == "postgresql" else ""
        statement = text(f"SELECT {quote}EVENT_ID{quote} FROM {quote}NOTIFICATION_LOG{quote} ORDER BY 1")
        stored = list(connection.execute(statement).scalars())
    where = {"metastore": server.uri} if through == "metastore" else {"database": server.database_url}
    options = {**where, "max_events_per_batch": "110", "events_per_slice": "60", "message": "none"}
    answer = job_spark.call(follow, options=options, checkpoint=str(tmp_path / "checkpoint"), failing=failing)
    assert len(stored) == EVENTS
    assert answer["events"] == stored
    # Each query continued where the previous one was stopped.
    assert answer["runs"] == expected
