"""Measures what protection costs a hot `get_table`: one client calls servers in turns that differ only in it.

Each server is a separate process, so its CPU time can be measured. The client also does TLS, SASL and encryption, in
Python: the rate includes both ends.
"""

from __future__ import annotations

import os
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.authorization import POLICY, request_bytes
from hms_cache.cli.demo.server_process import ServerProcess
from hms_cache.thrift_gen.hive_metastore import ttypes as t

if TYPE_CHECKING:
    from tests.server.kerberos_realm import Realm
    from tests.server.test_tls import Authority

_QUALITIES = {"auth": 1, "auth-int": 2, "auth-conf": 4}
_MAX_REPLY_BYTES = 1 << 20


@dataclass(frozen=True)
class Kind:
    """How one of the servers is protected."""

    name: str
    tls: bool = False
    quality: str = ""
    """Quality of protection with Kerberos; empty without it."""
    policy: bool = False


KINDS = (
    Kind("plain"),
    Kind("policy", policy=True),
    Kind("TLS", tls=True),
    Kind("TLS, policy", tls=True, policy=True),
    Kind("Kerberos auth", quality="auth"),
    Kind("Kerberos auth, policy", quality="auth", policy=True),
    Kind("Kerberos auth-int", quality="auth-int"),
    Kind("Kerberos auth-conf", quality="auth-conf"),
    Kind("Kerberos auth-conf, policy", quality="auth-conf", policy=True),
    Kind("Kerberos auth within TLS, policy", tls=True, quality="auth", policy=True),
)


@dataclass
class _Measured:
    """One server and its measurements."""

    kind: Kind
    server: ServerProcess
    link: Any
    reply_bytes: int
    rates: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)


TITLES = ("protection", "requests/s", "of plain, round by round", "CPU of the server, us a call")


@dataclass(frozen=True)
class Costs:
    """The results of one run for each kind, in the order of KINDS; medians of all rounds."""

    rows: list[list[str]]
    """Cells under TITLES."""
    policy_shares: list[tuple[str, float]]
    """For each kind with a policy that also exists without one: the other's name, and the rate relative to it."""


def measure(rounds: int, requests: int, tell: Callable[[str], None]) -> Costs:
    """Calls all kinds of servers in turns. Raises HmsCacheError if a server does not start.

    Client and servers share one processor. On two, a server either finds many requests at once or few; this does not
    change while the process lives, and makes a call cost 15 us or 35.
    """
    from tests.server.kerberos_realm import running_realm
    from tests.server.test_tls import Authority

    request = request_bytes("get_table", dbname="default", tbl_name="t")
    with ExitStack() as stack:
        processors = os.sched_getaffinity(0)
        stack.callback(os.sched_setaffinity, 0, processors)
        os.sched_setaffinity(0, {min(processors)})
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (root / "realm").mkdir()
        realm = stack.enter_context(running_realm(root / "realm"))
        stack.enter_context(_environment("KRB5_CONFIG", str(realm.configuration)))
        realm.keytab("hive/localhost")
        realm.ticket("ann")
        authority = Authority(root)
        found = []
        for number, kind in enumerate(KINDS):
            tell(f"starting {kind.name}")
            found.append(_start(stack, root / str(number), kind, realm, authority, request))
        for number in range(rounds):
            tell(f"round {number + 1} of {rounds}")
            for one in found:
                _ask(one, request, requests)
    return _costs(found)


def _start(
    stack: ExitStack, directory: Path, kind: Kind, realm: Realm, authority: Authority, request: bytes
) -> _Measured:
    from tests.server.kerberos_realm import REALM, SaslSocket

    directory.mkdir()
    policy = directory / "policy.toml"
    policy.write_text(POLICY)
    settings: dict[str, object] = {"admin.enabled": "false", "security.accept_insecure": "true"}
    if kind.tls:
        settings |= authority.settings()
    if kind.quality:
        settings |= {
            "authentication.kerberos_enabled": "true",
            "authentication.kerberos_principal": f"hive/localhost@{REALM}",
            "authentication.kerberos_keytab_file": realm.directory / "hive_localhost.keytab",
            "authentication.quality_of_protection": kind.quality,
        }
    if kind.policy:
        settings |= {"authorization.provider": "policy", "authorization.policy_file": policy}
    server = ServerProcess(directory, f"sqlite:///{directory / 'metastore.db'}", settings)
    server.start()
    stack.callback(server.stop)
    link: Any = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if kind.tls:
        link = authority.client().wrap_socket(link, server_hostname="localhost")
    if kind.quality:
        link = SaslSocket(link)
        status, told = link.gssapi(realm.directory / "ann.cache", f"hive/localhost@{REALM}", _QUALITIES[kind.quality])
        assert status == 5, told
    descriptor = t.StorageDescriptor(
        cols=[t.FieldSchema(f"c{n}", "int") for n in range(20)], serdeInfo=t.SerDeInfo(None, "l", {})
    )
    table = t.Table("t", "default", "ann", sd=descriptor, ownerType=t.PrincipalType.USER)
    for call in (request_bytes("set_ugi", user_name="ann", group_names=[]), request_bytes("create_table", tbl=table)):
        link.sendall(call)
        link.recv(_MAX_REPLY_BYTES)
    link.sendall(request)
    reply = link.recv(_MAX_REPLY_BYTES)
    assert b"c19" in reply, "the table is shown"
    return _Measured(kind, server, link, len(reply))


def _ask(one: _Measured, request: bytes, requests: int) -> None:
    link, pid = one.link, one.server.process_id
    cpu_before_ns, started = _cpu_ns(pid), time.perf_counter()
    for _ in range(requests):
        link.sendall(request)
        left = one.reply_bytes
        while left > 0:
            left -= len(link.recv(left))
    one.rates.append(requests / (time.perf_counter() - started))
    one.cpu_us.append((_cpu_ns(pid) - cpu_before_ns) / requests / 1000)


def _cpu_ns(pid: int) -> int:
    """Returns the time for which a process's threads have run (Linux)."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _costs(found: list[_Measured]) -> Costs:
    rows = [
        [
            one.kind.name,
            f"{statistics.median(one.rates):,.0f}",
            f"{_share(one, found[0]):.0%}",
            f"{statistics.median(one.cpu_us):.0f}",
        ]
        for one in found
    ]
    shares = []
    for one in found:
        without = [other for other in found if other.kind == replace(one.kind, name=other.kind.name, policy=False)]
        if one.kind.policy and without:
            shares.append((without[0].kind.name, _share(one, without[0])))
    return Costs(rows, shares)


def _share(one: _Measured, other: _Measured) -> float:
    """Returns the rate relative to the other's, round by round."""
    return statistics.median(a / b for a, b in zip(one.rates, other.rates, strict=True))
