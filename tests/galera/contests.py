"""Clients of servers on different nodes that contend for the same things; what each was told is compared with the
database, by SQL.

Each contest returns what is wrong, as texts. Calls that fail without effect are counted in `Contests.failed`.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from sqlalchemy import create_engine, text
from thrift.Thrift import TException

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.consistency.history import Place
from tests.consistency.workload import Client, descriptor

DATABASE = "contests"
VALUE = "n"


class Contests:
    """Contests between clients of the servers at these ports. The truth is read at this address of the database."""

    def __init__(self, ports: Sequence[int], url: str, seconds: float) -> None:
        self.ports = tuple(ports)
        self._seconds = seconds
        self.failed: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self._guard = threading.Lock()
        self._engine = create_engine(url, isolation_level="AUTOCOMMIT")

    def close(self) -> None:
        self._engine.dispose()

    def mend(self) -> None:
        """Opens the connection to the database again, which was broken."""
        self._engine.dispose()

    def rows(self, statement: str) -> list[Any]:
        with self._engine.connect() as connection:
            return list(connection.execute(text(statement)).all())

    def prepare(self) -> None:
        client = Client(self.ports)
        connection = client.connections[0]
        connection.create_database(ttypes.Database(name=DATABASE))
        for name in ("counter_a", "counter_b"):
            connection.create_table(self._table(name, {VALUE: "0"}))
        for name in ("acid", "locked"):
            connection.create_table(
                self._table(name, {"transactional": "true", "transactional_properties": "insert_only"})
            )
        client.close()

    @staticmethod
    def _table(name: str, parameters: dict[str, str]) -> ttypes.Table:
        return ttypes.Table(
            tableName=name,
            dbName=DATABASE,
            owner="tester",
            sd=descriptor(),
            partitionKeys=[],
            parameters=parameters,
            tableType="MANAGED_TABLE",
        )

    def _beside(self, work: Callable[[Client, int, random.Random], None], clients: int) -> list[str]:
        """Runs `work` again and again in threads, each at one server, until the time is over."""
        until = time.monotonic() + self._seconds
        errors: list[str] = []

        def run(number: int) -> None:
            chance = random.Random(number)
            client = Client(self.ports)
            try:
                while time.monotonic() < until:
                    try:
                        work(client, number % len(self.ports), chance)
                    except Exception as error:
                        with self._guard:
                            self.failed[f"{type(error).__name__}: {str(error)[:160]}"] += 1
                        if not isinstance(error, TException | OSError):
                            errors.append(repr(error))
                            return
                        client.close()
                        client = Client(self.ports)
            finally:
                client.close()

        threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return errors

    def compare_and_set(self) -> list[str]:
        """Iceberg's commit: a parameter is replaced if it is still what was read. Each must count."""
        acknowledged: Counter[str] = Counter()
        unknown: Counter[str] = Counter()

        def work(client: Client, server: int, chance: random.Random) -> None:
            name = chance.choice(("counter_a", "counter_b"))
            connection = client.connections[server]
            table = connection.get_table(DATABASE, name)
            old = table.parameters[VALUE]
            table.parameters[VALUE] = str(int(old) + 1)
            context = ttypes.EnvironmentContext({"expected_parameter_key": VALUE, "expected_parameter_value": old})
            try:
                connection.alter_table_with_environment_context(DATABASE, name, table, context)
            except ttypes.MetaException as error:
                if "expected" not in str(error) and "modified" not in str(error):
                    raise
                with self._guard:
                    self.done["refused"] += 1
                return
            except Exception:
                with self._guard:
                    unknown[name] += 1
                raise
            with self._guard:
                acknowledged[name] += 1
                self.done["set"] += 1

        problems = self._beside(work, 6)
        stored = dict(
            self.rows(
                "SELECT T.TBL_NAME, P.PARAM_VALUE FROM TBLS T JOIN TABLE_PARAMS P ON P.TBL_ID = T.TBL_ID"
                f" WHERE P.PARAM_KEY = '{VALUE}' AND T.TBL_NAME LIKE 'counter%'"
            )
        )
        for name, count in acknowledged.items():
            value = int(stored[name])
            if not count <= value <= count + unknown[name]:
                problems.append(f"{name}: {count} acknowledged, {unknown[name]} unknown, {value} in the database")
        return problems

    def exclusive_locks(self) -> list[str]:
        """No two clients hold an exclusive lock on one table at a time."""
        held: list[tuple[float, float, int, int]] = []

        def work(client: Client, server: int, chance: random.Random) -> None:
            connection = client.connections[server]
            part = ttypes.LockComponent(
                type=ttypes.LockType.EXCLUSIVE,
                level=ttypes.LockLevel.TABLE,
                dbname=DATABASE,
                tablename="locked",
                operationType=ttypes.DataOperationType.NO_TXN,
            )
            answer = connection.lock(ttypes.LockRequest([part], user="tester", hostname="here", agentInfo="a"))
            while answer.state == ttypes.LockState.WAITING:
                # At any server, as after a reconnect.
                answer = client.connections[chance.randrange(len(self.ports))].check_lock(
                    ttypes.CheckLockRequest(lockid=answer.lockid)
                )
            since = time.monotonic()
            if chance.random() < 0.5:
                time.sleep(0.002)
            until = time.monotonic()
            connection.unlock(ttypes.UnlockRequest(answer.lockid))
            with self._guard:
                held.append((since, until, server, answer.lockid))
                self.done["lock"] += 1

        problems = self._beside(work, 6)
        held.sort()
        for first, second in itertools.pairwise(held):
            if second[0] < first[1]:
                problems.append(f"held by two: {first} and {second}")
        ids = Counter(one[3] for one in held)
        problems += [f"lock {one} was given {count} times" for one, count in ids.items() if count > 1]
        return problems

    def write_conflicts(self) -> list[str]:
        """Of two transactions that update one table and do not see each other, one commits."""
        names = iter(range(1_000_000))
        until = time.monotonic() + self._seconds
        problems: list[str] = []
        places = len(self.ports)
        clients = [Client(self.ports) for _ in range(places)]
        while time.monotonic() < until:
            next(names)
            txns = []
            for server in range(places):
                connection = clients[server].connections[server]
                opened = connection.open_txns(ttypes.OpenTxnRequest(1, "tester", "here"))
                txns.append(opened.txn_ids[0])
            results: list[str] = [""] * places
            barrier = threading.Barrier(places)
            for server, txn in enumerate(txns):
                connection = clients[server].connections[server]
                allocated = connection.allocate_table_write_ids(
                    ttypes.AllocateTableWriteIdsRequest(dbName=DATABASE, tableName="acid", txnIds=[txn])
                )
                connection.add_dynamic_partitions(
                    ttypes.AddDynamicPartitions(
                        txnid=txn,
                        writeid=allocated.txnToWriteIds[0].writeId,
                        dbname=DATABASE,
                        tablename="acid",
                        partitionnames=["p=1"],
                        operationType=ttypes.DataOperationType.UPDATE,
                    )
                )

            def commit(
                server: int, txn: int, results: list[str] = results, barrier: threading.Barrier = barrier
            ) -> None:
                barrier.wait()
                try:
                    clients[server].connections[server].commit_txn(ttypes.CommitTxnRequest(txn, exclWriteEnabled=False))
                    results[server] = "committed"
                except ttypes.TxnAbortedException:
                    results[server] = "aborted"
                except Exception as error:
                    results[server] = f"{type(error).__name__}: {error}"

            threads = [threading.Thread(target=commit, args=one) for one in enumerate(txns)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.done["conflict"] += 1
            if sorted(results) != ["aborted"] * (places - 1) + ["committed"]:
                problems.append(f"{txns}: {results}")
                for server, result in enumerate(results):
                    if result not in ("aborted", "committed"):
                        clients[server].close()
                        clients[server] = Client(self.ports)
        for client in clients:
            client.close()
        return problems

    def snapshots(self) -> list[str]:
        """A transaction is open in each list that was asked for after it was opened, and received before its end."""
        lists: list[tuple[float, float, int, frozenset[int]]] = []
        lives: dict[int, tuple[float, float]] = {}

        def work(client: Client, server: int, chance: random.Random) -> None:
            connection = client.connections[server]
            if chance.random() < 0.5:
                asked = time.monotonic()
                found = connection.get_open_txns()
                lists.append((asked, time.monotonic(), found.txn_high_water_mark, frozenset(found.open_txns)))
                return
            [txn] = connection.open_txns(ttypes.OpenTxnRequest(1, "tester", "here")).txn_ids
            opened = time.monotonic()
            time.sleep(chance.random() * 0.01)
            ending = time.monotonic()
            connection.abort_txn(ttypes.AbortTxnRequest(txn))
            with self._guard:
                if txn in lives:
                    lives[-txn] = lives[txn]
                lives[txn] = (opened, ending)
                self.done["open"] += 1

        problems = self._beside(work, 6)
        problems += [f"transaction {-txn} was opened twice" for txn in lives if txn < 0]
        for asked, answered, highest, is_open in lists:
            for txn, (opened, ending) in lives.items():
                if txn > 0 and opened < asked and answered < ending and (txn > highest or txn not in is_open):
                    problems.append(f"{txn} is missing among {len(is_open)} open ones below {highest}")
        self.done["lists"] += len(lists)
        return problems

    def creations(self) -> list[str]:
        """Each name is created once, and a table that is dropped while it gets partitions leaves none."""
        made: Counter[str] = Counter()
        names = iter(range(1_000_000))

        def work(client: Client, server: int, chance: random.Random) -> None:
            connection = client.connections[server]
            name = f"made_{int(time.monotonic() * 20)}"
            table = self._table(name, {})
            table.partitionKeys = [ttypes.FieldSchema("p", "string", None)]
            try:
                connection.create_table(table)
                with self._guard:
                    made[name] += 1
                    self.done["create"] += 1
            except ttypes.AlreadyExistsException:
                pass
            partition = ttypes.Partition(
                values=[str(next(names))], dbName=DATABASE, tableName=name, sd=descriptor(), parameters={}
            )
            try:
                connection.add_partition(partition)
            except (ttypes.InvalidObjectException, ttypes.NoSuchObjectException, ttypes.MetaException):
                return

        problems = self._beside(work, 4)
        problems += [f"{name} was created {count} times" for name, count in made.items() if count > 1]
        return problems

    def invariants(self) -> list[str]:
        """What holds in any database of a metastore."""
        problems = []
        log = [one[0] for one in self.rows("SELECT EVENT_ID FROM NOTIFICATION_LOG ORDER BY EVENT_ID")]
        if log != list(range(log[0], log[0] + len(log))):
            problems.append(f"event ids are not consecutive: {len(log)} from {log[0]} to {log[-1]}")
        [[following]] = self.rows("SELECT NEXT_EVENT_ID FROM NOTIFICATION_SEQUENCE")
        if following != log[-1] + 1:
            problems.append(f"the next event is {following} after {log[-1]}")
        self.done["events"] = len(log)
        for what, statement in {
            "rows of the log have one NL_ID": "SELECT NL_ID, COUNT(*) FROM NOTIFICATION_LOG GROUP BY 1"
            " HAVING COUNT(*) > 1",
            "write ids were given twice": "SELECT T2W_TABLE, T2W_WRITEID, COUNT(*) FROM TXN_TO_WRITE_ID GROUP BY 1, 2"
            " HAVING COUNT(*) > 1",
            "partitions have no table": "SELECT PART_ID FROM PARTITIONS WHERE TBL_ID NOT IN (SELECT TBL_ID FROM TBLS)",
        }.items():
            if found := self.rows(statement):
                problems.append(f"{what}: {found[:5]}")
        return problems


def reads_after_writes(ports: Sequence[int], seconds: float) -> list[str]:
    """What one server has acknowledged, the other shows at once; and no reader of both sees time go back."""
    until = time.monotonic() + seconds
    place = Place(DATABASE, "counter_seen")
    problems: list[str] = []
    acknowledged = [0]
    with ExitStack() as stack:

        def connect() -> Client:
            client = Client(ports)
            stack.callback(client.close)
            return client

        writer = connect()
        writer.connections[0].create_table(Contests._table(place.table, {VALUE: "0"}))

        def write() -> None:
            number = 0
            while time.monotonic() < until:
                number += 1
                table = Contests._table(place.table, {VALUE: str(number)})
                writer.connections[number % len(ports)].alter_table(*place, table)
                acknowledged[0] = number

        def read(client: Client, first: int) -> None:
            server, seen, count = first, 0, 0
            while time.monotonic() < until:
                least = max(seen, acknowledged[0])
                seen = int(client.connections[server].get_table(*place).parameters[VALUE])
                count += 1
                if seen < least:
                    problems.append(f"server {server} shows {seen} after {least}")
                server = (server + 1) % len(ports)

        threads = [threading.Thread(target=write, daemon=True)]
        threads += [threading.Thread(target=read, args=(connect(), one % len(ports)), daemon=True) for one in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if acknowledged[0] < 5:
        problems.append(f"only {acknowledged[0]} writes")
    return problems
