"""A node of a Galera cluster that is separated or killed, and an address that moves from node to node."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from sqlalchemy import make_url
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from tests.consistency.observers import wait_until
from tests.consistency.proxy import proxy_to
from tests.galera.conftest import Cluster
from tests.galera.contests import DATABASE, VALUE, reads_after_writes
from tests.galera.test_two_nodes import SECONDS, contests
from tests.servers import metastore_client

pytestmark = [pytest.mark.soak, pytest.mark.long, pytest.mark.mariadb, pytest.mark.timeout(120)]


def test_a_separated_node_acknowledges_nothing_that_is_lost(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Clients of its server get errors after which they try again; what they were told is in the database."""
    with contests(cluster, tmp_path, seconds=14.0) as between:
        shown: list[int] = []

        def separate() -> None:
            time.sleep(2)
            cluster.tell(1, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'")
            time.sleep(5)
            cluster.tell(1, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'")

        thread = threading.Thread(target=separate, daemon=True)
        thread.start()
        problems = between.compare_and_set()
        thread.join()
        problems += between.invariants()

        def is_back() -> bool:
            shown.clear()
            with suppress(TApplicationException, TTransportException):
                for port in between.ports:
                    with metastore_client(port) as client:
                        shown.append(int(client.get_table(DATABASE, "counter_a").parameters[VALUE]))
            return len(shown) == 2

        wait_until(is_back, "both servers answer")
        with capsys.disabled():
            print(f"\n{dict(between.done)}, failed: {dict(between.failed)}, at the end {shown}")
        assert not problems, "\n".join(problems[:5])
        assert shown[0] == shown[1] > 0
        assert between.failed
        kinds = {one.partition(":")[0] for one in between.failed}
        assert kinds <= {"TTransportException", "TApplicationException", "MetaException", "ConnectionResetError"}


def test_an_address_that_moves_to_another_node(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One server after the other: meanwhile they use different nodes."""
    urls = cluster.urls()
    first, second = (make_url(url) for url in urls)
    with proxy_to("127.0.0.1", int(first.port or 0)) as one, proxy_to("127.0.0.1", int(first.port or 0)) as other:
        through = [first.set(port=proxy.port).render_as_string(hide_password=False) for proxy in (one, other)]
        with contests(cluster, tmp_path, through, seconds=10.0) as between:

            def move() -> None:
                for target in (second, first):
                    for proxy in (one, other):
                        time.sleep(1.5)
                        proxy.switch("127.0.0.1", int(target.port or 0))
                        proxy.cut()
                        proxy.mend()

            thread = threading.Thread(target=move, daemon=True)
            thread.start()
            problems = between.compare_and_set()
            thread.join()
            between.mend()
            problems += between.invariants()
            with capsys.disabled():
                print(f"\n{dict(between.done)}, failed: {dict(between.failed)}")
            assert not problems, "\n".join(problems[:5])
            assert between.done["set"] > 20


def test_a_node_that_is_killed_loses_nothing_that_was_acknowledged(
    three_nodes: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both servers use it, a third one another node. Their address then leads to the third node, which may not have
    applied all that was committed."""
    urls = three_nodes.urls()
    first, second, third = (make_url(url) for url in urls)
    with ExitStack() as stack:
        proxies = [stack.enter_context(proxy_to("127.0.0.1", int(first.port or 0))) for _ in range(2)]
        through = [first.set(port=proxy.port).render_as_string(hide_password=False) for proxy in proxies]
        addresses = [*through, second.render_as_string(hide_password=False)]
        between = stack.enter_context(contests(three_nodes, tmp_path, addresses, seconds=18.0))

        def kill() -> None:
            time.sleep(3)
            three_nodes.nodes[0].kill()
            for proxy in proxies:
                proxy.switch("127.0.0.1", int(third.port or 0))
                proxy.cut()
                proxy.mend()

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        problems = between.compare_and_set()
        thread.join()
        between.mend()
        problems += between.invariants()
        done = between.done.copy()
        problems += reads_after_writes(between.ports, SECONDS)
        with capsys.disabled():
            print(f"\n{dict(done)}, failed: {dict(between.failed)}")
        assert not problems, "\n".join(problems[:5])
        assert done["set"] > 20
