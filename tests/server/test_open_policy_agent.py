"""Authorization by a real Open Policy Agent, with the policy of docs/security.md, compiled from the Go module proxy."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_cache.authorization.decisions import AccessCheck, Action, SecuredObject, UndecidedError
from hms_cache.authorization.policy_service import MAX_CHECKS_PER_REQUEST, PolicyService, ServiceOptions
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.server.conftest import Serve, database, table
from tests.server.test_authorization import outcome
from tests.server.test_ldap import listens
from tests.server.test_policy_service import link
from tests.server.test_tls import wait_for

pytestmark = [pytest.mark.soak, pytest.mark.long]

VERSION = "v1.4.2"
COMPILES_WITHIN_S = 900
DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"

ROOT = """
permitted(one) if input.principal == "root"
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    go = shutil.which("go", path=f"{os.environ['PATH']}:/usr/local/go/bin")
    if go is None:
        pytest.skip("needs Go, to compile the Open Policy Agent")
    place = tmp_path_factory.mktemp("opa")
    environment = os.environ | {"GOBIN": str(place)}
    package = f"github.com/open-policy-agent/opa@{VERSION}"
    done = subprocess.run(
        [go, "install", package], env=environment, capture_output=True, text=True, timeout=COMPILES_WITHIN_S
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return place / "opa"


class Agent:
    """The agent as a process, with the documented rule and its list of analysts."""

    def __init__(self, program: Path, place: Path) -> None:
        document = DOCUMENT.read_text(encoding="utf-8")
        rules = re.search(r"```rego\n(.*?)```", document, re.DOTALL)
        assert rules is not None
        (place / "policy.rego").write_text(rules[1] + ROOT)
        (place / "data.json").write_text(json.dumps({"analysts": ["ann", "bob"]}))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        command = [program, "run", "--server", "--addr", f"127.0.0.1:{self.port}", "--log-level", "error"]
        self.log = (place / "opa.log").open("w")
        files = [place / "policy.rego", place / "data.json"]
        self.process = subprocess.Popen([*command, *files], stdout=subprocess.DEVNULL, stderr=self.log)
        wait_for(lambda: listens(self.port) or self.process.poll() is not None)
        assert self.process.poll() is None, (place / "opa.log").read_text()

    def url(self, rule: str = "allow") -> str:
        return f"http://127.0.0.1:{self.port}/v1/data/hms/{rule}"

    def analysts(self, *names: str) -> None:
        """Replaces the list from now on."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/data/analysts",
            json.dumps(names).encode(),
            {"Content-Type": "application/json"},
            method="PUT",
        )
        urllib.request.urlopen(request, timeout=30).close()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


@pytest.fixture
def agent(program: Path, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(program, tmp_path)
    yield made
    made.stop()


def test_many_questions_are_answered_in_order(agent: Agent) -> None:
    chance = random.Random(3)
    actions: list[Action | None] = [*Action, None]
    names = (None, "sales", "pub", 'x" or true', "salés")
    questions: list[AccessCheck] = [
        (chance.choice(actions), SecuredObject("hive", chance.choice(names), chance.choice((None, "t"))))
        for _ in range(3 * MAX_CHECKS_PER_REQUEST + 7)
    ]
    service = PolicyService(ServiceOptions(agent.url(), timeout_s=30))
    expected = [action in (Action.READ, None) and of.database == "sales" for action, of in questions]
    assert service.decide("ann", questions) == expected and any(expected)
    assert service.decide("eve", questions) == [False] * len(questions)
    assert service.decide("root", questions) == [True] * len(questions)
    assert service.decide("eve", questions, directory_groups=frozenset({"auditors", "x"})) == expected
    assert service.decide("eve", questions, frozenset({"auditors"})) == [False] * len(questions), (
        "another kind of groups"
    )
    assert service.outcomes == {"ok": 20, "failed": 0}


def test_what_is_no_decision_denies(agent: Agent) -> None:
    question: AccessCheck = (Action.READ, SecuredObject("hive", "sales", "t"))
    for rule in ("none", "permitted", "../../../policies", "allow/0"):
        service = PolicyService(ServiceOptions(agent.url(rule), timeout_s=10))
        with pytest.raises(UndecidedError):
            service.decide("ann", [question])
        assert service.outcomes == {"ok": 0, "failed": 1}, rule


@pytest.mark.parametrize("age_s", [0, 60])
def test_a_server_with_the_agent(agent: Agent, serve: Serve, age_s: float) -> None:
    settings: dict[str, Any] = {
        "authorization.provider": "opa",
        "authorization.opa_url": agent.url(),
        "authorization.opa_timeout_s": 20,
        "authorization.opa_max_age_s": age_s,
        "security.accept_insecure": True,
    }
    running = serve(**settings)
    root, ann, eve = (link(running, user) for user in ("root", "ann", "eve"))
    for name in ("sales", "staff"):
        root.call("create_database", database=database(name))
        for one in ("t", "u"):
            root.call("create_table", tbl=table(name, one))
    for _ in range(3):
        assert ann.call("get_all_databases") == ["sales"]
        assert ann.call("get_all_tables", db_name="sales") == ["t", "u"]
        assert ann.call("get_table", dbname="sales", tbl_name="t").tableName == "t"
        assert outcome(ann, "get_table", dbname="staff", tbl_name="t")[0] is t.NoSuchObjectException
        assert eve.call("get_all_databases") == []
        assert outcome(eve, "get_table", dbname="sales", tbl_name="t")[0] is t.NoSuchObjectException
    assert "may not drop" in outcome(ann, "drop_table", dbname="sales", name="", deleteData=False)[1]
    agent.analysts("eve")
    # A cached decision is valid until its maximum age.
    assert isinstance(outcome(ann, "get_table", dbname="sales", tbl_name="t"), t.Table) == (age_s > 0)
    running.service._authorizer.forget()  # type: ignore[union-attr]
    assert outcome(ann, "get_table", dbname="sales", tbl_name="t")[0] is t.NoSuchObjectException
    assert isinstance(outcome(eve, "get_table", dbname="sales", tbl_name="t"), t.Table)
    agent.stop()
    running.service._authorizer.forget()  # type: ignore[union-attr]
    assert "does not answer" in outcome(eve, "get_table", dbname="sales", tbl_name="t")[1]
