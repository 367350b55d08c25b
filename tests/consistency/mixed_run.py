"""Clients that write sequences, and others that read, on two servers with a cache and one without."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.consistency.all_reads import of_database, of_partitions, of_table, outcome
from tests.consistency.mixed_clients import OTHER_CATALOG, AnyForm, Gate, shared_reads
from tests.consistency.mixed_sequences import Sequences


class Mixed:
    """Clients that write, and others that send random reads and keep the servers' memory filled, until a given time."""

    def __init__(self, ports: Sequence[int], seed: int, clients: int, readers: int = 2) -> None:
        """`ports`: of the servers, the one without a cache last."""
        self._ports, self._seed, self._readers = ports, seed, readers
        self._gate = Gate()
        self._ended = threading.Event()
        self.errors: list[BaseException] = []
        first = AnyForm(ports, 0)
        made = t.Catalog(OTHER_CATALOG, None, "file:/warehouse/mixed")
        outcome(lambda c: c.create_catalog(t.CreateCatalogRequest(made)), first.connections[0])
        first.close()
        self.clients = [Sequences(number, ports, self._gate, seed) for number in range(clients)]
        for client in self.clients:
            client.prepare()

    @property
    def wrong(self) -> list[str]:
        """Differences so far."""
        return [one for client in self.clients for one in client.wrong]

    def close(self) -> None:
        """Closes all connections."""
        for client in self.clients:
            client.close()

    def run(self, is_over: Callable[[], bool], quiet_every: int = 20) -> None:
        """Runs until the end; the first client makes sure that there are moments without writes."""
        threads = [threading.Thread(target=self._guarded, args=(self._write, one, is_over)) for one in self.clients[1:]]
        threads += [threading.Thread(target=self._guarded, args=(self._read, one)) for one in range(self._readers)]
        for thread in threads:
            thread.start()
        steps = 0

        def first() -> None:
            nonlocal steps
            while not is_over() and not self.errors:
                self.clients[0].step()
                steps += 1
                if steps % quiet_every == 0:
                    self._look()

        self._guarded(first)
        self._ended.set()
        for thread in threads:
            thread.join(120)
        if self.errors:
            raise self.errors[0]
        self._look()

    def _look(self) -> None:
        with self._gate.alone():
            self.clients[0].look_at_shared()
            for client in self.clients:
                client.look_at_all(0.08)

    def _guarded(self, go: Callable[..., None], *arguments: Any) -> None:
        try:
            go(*arguments)
        except BaseException as error:
            self.errors.append(error)

    def _write(self, client: Sequences, is_over: Callable[[], bool]) -> None:
        while not is_over() and not self.errors and not self._ended.is_set():
            client.step()

    def _read(self, number: int) -> None:
        """Random reads of any client's objects, so that loads overlap with writes."""
        chance = random.Random(number)
        client = AnyForm(self._ports[:-1], number + 1)
        try:
            while not self._ended.is_set() and not self.errors:
                place = chance.choice(chance.choice(self.clients).places)
                asks = [*of_table(place), *of_partitions(place, chance), *of_database(place, chance)]
                for _, ask in [*chance.sample(asks, 10), *chance.sample(list(shared_reads()), 1)]:
                    outcome(ask, chance.choice(client.connections))
        finally:
            client.close()


def until(seconds: float) -> Callable[[], bool]:
    """Whether this much time has passed since this call."""
    ends_s = time.monotonic() + seconds
    return lambda: time.monotonic() > ends_s
