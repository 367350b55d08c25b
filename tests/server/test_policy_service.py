"""Authorization by a policy service over HTTP: its requests, how long decisions are valid, and that silence denies."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hms_cache.authorization import external
from hms_cache.authorization.cached_groups import Principal
from hms_cache.authorization.decisions import Action, SecuredObject, UndecidedError
from hms_cache.authorization.external import ExternalAuthorizer
from hms_cache.authorization.policy_service import (
    MAX_CHECKS_PER_REQUEST,
    PolicyService,
    ServiceDecisionSource,
    ServiceOptions,
)
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.manual_clock import ManualClock
from tests.server.answering import TLS_RECORD, answering
from tests.server.conftest import Link, Serve, database, table
from tests.server.test_authorization import outcome

Answer = Callable[[dict[str, Any]], bytes]
TABLE = SecuredObject("hive", "open", "t")


def decided(rule: Callable[[str, dict[str, Any]], bool]) -> Answer:
    """The answer of an agent with this rule."""

    def answer(document: dict[str, Any]) -> bytes:
        requested = document["input"]
        return json.dumps({"result": [rule(requested["principal"], one) for one in requested["checks"]]}).encode()

    return answer


class Agent:
    """A service at an address of its own; `answer` is its reply."""

    def __init__(self) -> None:
        self.answer: Answer = decided(lambda user, one: True)
        self.requested: list[dict[str, Any]] = []
        self.status = 200
        self.gate = threading.Event()
        self.gate.set()
        agent = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                agent.requested.append(document["input"])
                agent.gate.wait(30)
                body = agent.answer(document)
                self.send_response(agent.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/data/hms/allow"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def agent() -> Iterator[Agent]:
    made = Agent()
    yield made
    made.stop()


def service(agent: Agent, **options: Any) -> PolicyService:
    return PolicyService(ServiceOptions(agent.url, **{"timeout_s": 5.0, **options}))


def test_questions_go_together_and_are_answered_in_order(agent: Agent) -> None:
    agent.answer = decided(lambda user, one: one["table"] == "t7" or one["action"] == "show")
    judge = ServiceDecisionSource(service(agent), Principal("ann"))
    objects = [TABLE._replace(table=f"t{n}") for n in range(MAX_CHECKS_PER_REQUEST + 5)]
    judge.prepare([(Action.READ, one) for one in objects] + [(None, TABLE._replace(table=None))])
    assert [len(one["checks"]) for one in agent.requested] == [MAX_CHECKS_PER_REQUEST, 6]
    assert [one.table for one in objects if judge.allow(Action.READ, one)] == ["t7"]
    assert judge.show(TABLE._replace(table=None)) and judge.allow(Action.DROP, objects[7])
    assert len(agent.requested) == 3
    question = {"action": "drop", "catalog": "hive", "database": "open", "table": "t7"}
    who = {"principal": "ann", "groups": [], "directory_groups": []}
    assert agent.requested[-1] == {**who, "checks": [question]}


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"{}", b"[true]", b'{"result": true}', b'{"result": []}', b'{"result": [true, true]}'),
        *(b'{"result": [1]}', b'{"result": ["true"]}', b'{"result": [null]}', b'{"result": [true]', b"\xff"),
        *(b'{"result": [true], "x": "' + b"x" * 70_000 + b'"}', b"[" * 50_000),
    ],
)
def test_whatever_is_no_answer_denies(agent: Agent, answer: bytes) -> None:
    agent.answer = lambda document: answer
    made = service(agent)
    with pytest.raises(UndecidedError):
        ServiceDecisionSource(made, Principal("ann")).allow(Action.READ, TABLE)
    assert made.outcomes == {"ok": 0, "failed": 1}


def test_a_status_of_failure_silence_and_nobody_deny(agent: Agent) -> None:
    agent.status = 500
    with pytest.raises(UndecidedError):
        service(agent).decide("ann", [(Action.READ, TABLE)])
    agent.status = 200
    agent.gate.clear()
    made = service(agent, timeout_s=0.2, max_at_once=1)
    with pytest.raises(UndecidedError):
        made.decide("ann", [(Action.READ, TABLE)])
    with pytest.raises(UndecidedError):
        PolicyService(ServiceOptions("http://127.0.0.1:1/", 0.2)).decide("ann", [(Action.READ, TABLE)])
    agent.gate.set()
    assert service(agent).decide("ann", [(Action.READ, TABLE)]) == [True]


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nx: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n",
    ],
)
def test_an_answer_in_drops_ends_in_time(head: bytes) -> None:
    """The limit is for the whole answer, not for each of its bytes; this one would take twenty minutes."""
    with answering(head + b" " * 60_000, in_drops=True) as url, pytest.raises(UndecidedError):
        PolicyService(ServiceOptions(url, timeout_s=0.5)).decide("ann", [(Action.READ, TABLE)])


def test_a_handshake_in_drops_ends_in_time() -> None:
    with answering(TLS_RECORD, in_drops=True) as url, pytest.raises(UndecidedError):
        options = ServiceOptions(url.replace("http:", "https:"), timeout_s=0.5)
        PolicyService(options).decide("ann", [(Action.READ, TABLE)])


def test_a_decision_is_no_older_than_its_age(agent: Agent) -> None:
    clock = ManualClock()
    made = service(agent)
    authorizer = ExternalAuthorizer(
        lambda user, groups: ServiceDecisionSource(made, Principal(user, groups)), 5.0, clock.monotonic_s
    )
    first = authorizer.decisions("ann")
    assert first.allow(Action.READ, TABLE) and len(agent.requested) == 1
    agent.answer = decided(lambda user, one: False)
    clock.advance(4.9)
    assert authorizer.policy is first.policy and authorizer.decisions("ann") is first
    assert authorizer.decide("ann", Action.READ, TABLE) and authorizer.decisions_of(first.tag) is first
    assert not authorizer.decide("bob", Action.READ, TABLE)
    clock.advance(0.2)
    assert authorizer.policy is not first.policy and authorizer.decisions_of(first.tag) is None
    second = authorizer.decisions("ann")
    assert second.tag != first.tag and not second.allow(Action.READ, TABLE)


def test_what_is_remembered_of_all_users_together_is_bounded(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each user has a limit; a service that acts for others makes requests in as many names as it likes."""
    monkeypatch.setattr(external, "MAX_HELD", 100)
    made = service(agent)
    authorizer = ExternalAuthorizer(lambda user, groups: ServiceDecisionSource(made, Principal(user, groups)), 3600.0)
    questions = [(Action.READ, TABLE._replace(table=f"t{number}")) for number in range(30)]
    held = []
    for number in range(20):
        decided = authorizer.decisions(f"user{number}")
        decided.prepare(questions)
        assert all(decided.allow(*one) for one in questions)
        epoch = authorizer.policy
        assert isinstance(epoch, external.Epoch)
        held.append(len(epoch.by_principal) * len(questions))
    assert max(held) < 100 and held.count(90) == 5
    assert len(agent.requested) == 20


def link(running: Any, user: str) -> Link:
    made: Link = running.link()
    made.call("set_ugi", user_name=user, group_names=[])
    return made


@pytest.mark.parametrize("age_s", [0, 60])
def test_a_server_asks_and_refuses_when_nobody_answers(agent: Agent, serve: Serve, age_s: float) -> None:
    agent.answer = decided(lambda user, one: user == "root" or one["table"] == "pub" or one["action"] == "show")
    running = serve(
        **{
            "authorization.provider": "opa",
            "authorization.opa_url": agent.url,
            "authorization.opa_max_age_s": age_s,
            "security.accept_insecure": True,
        }
    )
    root, ann = link(running, "root"), link(running, "ann")
    root.call("create_database", database=database("open"))
    for name in ("pub", "secret"):
        root.call("create_table", tbl=table("open", name))
    for _ in range(3):
        assert ann.call("get_all_tables", db_name="open") == ["pub"]
        assert ann.call("get_table", dbname="open", tbl_name="pub").tableName == "pub"
        hidden = outcome(ann, "get_table", dbname="open", tbl_name="secret")
        assert hidden == (t.NoSuchObjectException, "hive.open.secret table not found")
        for place, of, told in (("Open", "Secret", "hive.Open.Secret"), ("@HIVE#open", "SECRET", "HIVE.open.SECRET")):
            assert outcome(ann, "get_table", dbname=place, tbl_name=of)[1] == f"{told} table not found"
            in_struct = outcome(ann, "get_table_req", req=t.GetTableRequest("OPEN", of, catName="Hive"))
            assert in_struct[1] == f"Hive.OPEN.{of} table not found"
            unknown = outcome(ann, "get_fields", db_name=place, table_name=f"{of}.x")
            assert unknown == (t.UnknownTableException, f"{told} table not found")
    assert "may not drop" in outcome(ann, "drop_table", dbname="open", name="nothing", deleteData=True)[1]
    agent.status = 503
    assert "does not answer" in outcome(ann, "get_table", dbname="open", tbl_name="other")[1]
    assert "does not answer" in outcome(link(running, "new"), "get_all_databases")[1]
    found = outcome(ann, "get_table", dbname="open", tbl_name="pub")
    assert isinstance(found, t.Table) == (age_s > 0)
    metric = running.service.metrics.server.policy_requests.values()
    assert metric[("failed",)] >= 2 and metric[("ok",)] > 3
