"""The database goes down under load: reads within `max_staleness` continue, the others fail with errors to retry."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.consistency.history import VERSION, Place
from tests.consistency.observers import wait_until
from tests.consistency.proxy import proxy_to
from tests.consistency.raw_writer import RawWriter
from tests.consistency.workload import Client, new_partition, new_table
from tests.servers import server_process

T = Place("d", "t")
LIMIT_S = 60

READS: dict[str, Callable[[Any], Any]] = {
    "table": lambda metastore: metastore.get_table(*T).parameters[VERSION],
    "names": lambda metastore: metastore.get_all_tables("d"),
    "partitions": lambda metastore: len(metastore.get_partitions(*T, -1)),
    "partition": lambda metastore: metastore.get_partition(*T, ["1"]).values,
    "absent": lambda metastore: _absent(metastore),
    "database": lambda metastore: metastore.get_database("d").name,
}
ANSWERS = {"table": "1", "names": ["t"], "partitions": 2, "partition": ["1"], "absent": "absent", "database": "d"}
UNSEEN = {
    "another database": lambda metastore: metastore.get_all_tables("other"),
    "another table": lambda metastore: metastore.get_table("other", "t"),
    "all functions": lambda metastore: metastore.get_all_functions(),
    "catalogs": lambda metastore: metastore.get_catalogs(),
}


def _absent(metastore: Any) -> str:
    try:
        return str(metastore.get_table("d", "nowhere"))
    except ttypes.NoSuchObjectException:
        return "absent"


class Reader:
    """Reads repeatedly on one connection, which is opened again when it breaks; records the results."""

    def __init__(self, port: int, kind: str) -> None:
        self.outcomes: list[tuple[float, float, Any]] = []
        """(began, ended, answer or exception)"""
        self.stopping = threading.Event()
        self._port, self._kind = port, kind
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        client = Client([self._port])
        while not self.stopping.is_set():
            began_s = time.monotonic()
            try:
                outcome: Any = READS[self._kind](client.connections[0])
            except Exception as error:
                outcome = error
            self.outcomes.append((began_s, time.monotonic(), outcome))
            if isinstance(outcome, TTransportException):
                client.close()
                client = Client([self._port])
            if isinstance(outcome, Exception):
                self.stopping.wait(0.05)  # a client does not retry at once
        client.close()

    def count(self) -> int:
        return len(self.outcomes)


@pytest.mark.mariadb
@pytest.mark.parametrize(
    "setting", ["0", pytest.param("500", marks=pytest.mark.soak), pytest.param("inf", marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("database_kind", ["mariadb"], indirect=True)
def test_an_outage_of_the_database(setting: str, database_url: str, initialize: None, tmp_path: Path) -> None:
    real = make_url(database_url)
    with proxy_to(str(real.host), int(real.port or 3306)) as proxy:
        url = real.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        settings: dict[str, object] = {
            "cache.max_staleness_ms": setting,
            "cache.warm": "off",
            "events.poll_interval_s": 0.2,
            "database.connect_timeout_s": 2,
            "warehouse.files": "leave",
        }
        with server_process(tmp_path, url, settings) as server:
            client = Client([server.port])
            metastore = client.connections[0]
            metastore.create_database(ttypes.Database(name="d"))
            metastore.create_table(new_table(T, "1"))
            metastore.add_partitions([new_partition(T, value, "1") for value in "12"])
            for kind, ask in READS.items():
                for _ in range(3):
                    assert ask(metastore) == ANSWERS[kind]

            readers = [Reader(server.port, kind) for kind in READS]
            for reader in readers:
                reader.thread.start()
            wait_until(lambda: all(reader.count() > 20 for reader in readers), "the readers read")

            proxy.cut()
            cut_s = time.monotonic()
            marks = [reader.count() for reader in readers]
            wait_until(lambda: time.monotonic() > cut_s + 1.0, "max_staleness has passed")
            wait_until(
                lambda: all(reader.count() > mark + 10 for reader, mark in zip(readers, marks, strict=True)),
                "everybody is answered, one way or the other, while the database is away",
            )
            for label, ask in UNSEEN.items():
                with pytest.raises((TApplicationException, TTransportException, ttypes.MetaException)) as caught:
                    ask(metastore)
                assert not isinstance(caught.value, ttypes.NoSuchObjectException), label
            with pytest.raises((TApplicationException, TTransportException, ttypes.MetaException)):
                metastore.create_table(new_table(Place("d", "never"), "1"))
            mended_s = time.monotonic()
            proxy.mend()

            def healed() -> bool:
                return all(not isinstance(reader.outcomes[-1][2], Exception) for reader in readers) and all(
                    reader.outcomes[-1][0] > mended_s for reader in readers
                )

            wait_until(healed, "it heals itself")
            raw = RawWriter(database_url)
            assert raw.alter(T, "2")
            raw.close()
            wait_until(lambda: READS["table"](metastore) == "2", "events are followed again")
            assert _absent(metastore) == "absent"
            assert metastore.get_all_tables("d") == ["t"], "the write that failed left nothing"
            for reader in readers:
                reader.stopping.set()
                reader.thread.join(LIMIT_S)

            failed = served = 0
            for reader, kind in zip(readers, READS, strict=True):
                for began_s, ended_s, outcome in reader.outcomes:
                    if isinstance(outcome, Exception):
                        assert isinstance(outcome, TApplicationException | TTransportException), (kind, outcome)
                        assert began_s > cut_s - 1, "only the outage fails reads"
                        failed += 1
                    else:
                        assert outcome == ANSWERS[kind] or (kind == "table" and outcome == "2"), "never a wrong answer"
                        served += cut_s + 0.6 < began_s and ended_s < mended_s
            if setting == "inf":
                assert failed == 0, "who needs no proof is served from memory"
                assert served > 0
            else:
                assert failed > 0
                assert served == 0, "without a proof nothing is served as if it were recent"
            client.close()
