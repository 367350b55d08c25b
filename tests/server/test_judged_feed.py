"""The change feed with authorization: each listener is a user, and gets what this user may see elsewhere."""

from __future__ import annotations

import http.client
import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from hms_cache.errors import StartupError
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.admin.feed.listening import Listener
from tests.server.conftest import Serve, table
from tests.server.test_authorization import POLICY, World
from tests.server.test_bearer_tokens import Issuer, issuer
from tests.server.test_policy_service import Agent, agent, decided
from tests.server.test_shown_events import HIDDEN_NAMES, events
from tests.server.test_shown_events import world as world_of_events

__all__ = ["agent", "issuer", "world_of_events"]

OPERATOR, READER = "the token of commands", "the token of reading"
USERS = ("ann", "bob", "eve", "hs2", "nobody")
WITHOUT_ANN = POLICY.replace('"ann", ', "")
WIDE = POLICY.replace('"pub*"', '"pub*", "secret*"')


def token(user: str) -> str:
    return f"a listener token: {user}".replace(" ", "_")


def settings(directory: Path) -> dict[str, Any]:
    listeners = directory / "listeners"
    listeners.write_text("# users\n\n" + "".join(f"{user}  {token(user)}\n" for user in USERS))
    return {
        "admin.token": OPERATOR,
        "admin.read_token": READER,
        "admin.listener_tokens_file": str(listeners),
        "admin.listener_heartbeat_s": 0.1,
        "events.poll_interval_s": 0.1,
    }


@pytest.fixture
def serve(serve: Serve, tmp_path: Path) -> Serve:
    return lambda **given: serve(**settings(tmp_path), **given)


@pytest.fixture
def world(serve: Serve, tmp_path: Path) -> World:
    return World(serve, tmp_path / "policy.toml")


@pytest.fixture
def listen() -> Iterator[Any]:
    with ExitStack() as stack:

        def start(world: Any, user: str = "", given: str = "", **query: Any) -> Listener:
            server = getattr(world, "server", world)
            return stack.enter_context(closing(Listener(server, token=given or (token(user) if user else ""), **query)))

        yield start


def end_of_log(world: World) -> int:
    return int(world.root.call("get_current_notificationEventId").eventId)


def read_to(listener: Listener, event_id: int) -> list[Any]:
    """The data of all events until the listener's position is reached."""
    found = []
    while int((listener.last_id or "0").partition("-")[0]) < event_id:
        one = listener.step()
        if one is not None:
            assert one.kind == "change", one
            found.append(one.data)
    return found


@pytest.mark.parametrize("messages", ["false", "true"])
def test_a_user_sees_what_the_metastore_port_shows(world_of_events: World, listen: Any, messages: str) -> None:
    world, last = world_of_events, end_of_log(world_of_events)
    for user in ("ann", "hs2", "eve"):
        shown = [one for one in events(world, user) if one.eventType != "HIDDEN"]
        assert 0 < len(shown) and (user == "hs2") == (len(shown) == last)
        listener = listen(world, user, after="oldest", messages=messages)
        expected = [
            {
                "event_id": one.eventId,
                "event_time_s": one.eventTime,
                "event_type": one.eventType,
                "catalog": one.catName,
                "database": one.dbName,
                "table": one.tableName,
                **({"message": one.message, "message_format": one.messageFormat} if messages == "true" else {}),
            }
            for one in shown
        ]
        assert read_to(listener, last) == expected
        names = HIDDEN_NAMES if user == "ann" else ("closed",)  # a key of a table in `open` is named fk_hidden
        if user != "hs2":
            assert not any(name.encode() in listener.received for name in names)


def test_filters_are_applied_to_what_may_be_seen(world: World, listen: Any) -> None:
    last = end_of_log(world)
    for query in ({"table": "secret"}, {"database": "closed"}, {"database": ["closed", "open"], "table": "hidden"}):
        assert read_to(listen(world, "hs2", after="0", **query), last), query
        listener = listen(world, "ann", after="0", **query)
        assert read_to(listener, last) == [], query
    found = read_to(listen(world, "ann", after="0", table=["pub", "secret"]), last)
    assert [one["table"] for one in found] == ["pub"]


def test_who_is_nobody_is_refused(world: World, listen: Any) -> None:
    for given in ("", "wrong", READER, "a.b.c", "\u00e9"):
        listener = listen(world, given=given)
        assert listener.status == 401 and "admin.listener_tokens_file" in listener.body(), given
        assert listener.answer.getheader("www-authenticate")
    refused = listen(world, "nobody", after="oldest")
    assert refused.status == 403 and "nothing is granted" in refused.body()
    assert listen(world, "nobody", messages="true").status == 403


def test_a_users_token_opens_nothing_else(world: World) -> None:
    assert world.server.service.management_address is not None
    for path, given, status in (
        *(("/status", token("hs2"), 401), ("/status", READER, 200), ("/metrics", token("ann"), 401)),
        ("/status", OPERATOR, 200),
    ):
        with closing(http.client.HTTPConnection(*world.server.service.management_address, timeout=30)) as connection:
            connection.request("GET", path, headers={"Authorization": f"Bearer {given}"})
            assert connection.getresponse().status == status, (path, given)
    for given, status in ((token("ann"), 200), (token("nobody"), 403), (READER, 401), (OPERATOR, 200)):
        with closing(http.client.HTTPConnection(*world.server.service.management_address, timeout=30)) as connection:
            connection.request("HEAD", "/changes", headers={"Authorization": f"Bearer {given}"})
            assert connection.getresponse().status == status, given


def test_an_operator_sees_all(world: World, listen: Any) -> None:
    last = end_of_log(world)
    assert len(read_to(listen(world, given=OPERATOR, after="0", messages="true"), last)) == last


def test_what_is_withdrawn_is_sent_no_more_on_an_open_feed(world: World, listen: Any) -> None:
    """Many changes of the policy: events written while a user may not read them never arrive, all others do."""
    draw = random.Random(21)
    ann, service = listen(world, "ann"), listen(world, "hs2")
    expected, all_names = [], []
    for turn in range(8):
        may = bool(draw.getrandbits(1))
        world.allow(WIDE if may else POLICY)
        names = [f"secret{turn}", f"pub{turn}"]
        for name in names:
            world.root.call("create_table", tbl=table("open", name))
        all_names += names
        expected += names if may else names[1:]
        found = [one["table"] for one in read_to(ann, end_of_log(world))]
        assert found == (names if may else names[1:]), turn
    assert {f"secret{turn}" in expected for turn in range(8)} == {True, False}
    assert [one["table"] for one in service.changes(len(all_names))] == all_names
    unseen = set(all_names) - set(expected)
    assert not any(f'"{name}"'.encode() in ann.received for name in unseen)


def test_an_open_feed_ends_with_the_grants_and_with_the_token(world: World, listen: Any, tmp_path: Path) -> None:
    ann, bob, operator = listen(world, "ann"), listen(world, "bob"), listen(world, given=OPERATOR)
    for listener in (ann, bob, operator):
        assert listener.step() is None
    world.allow(WITHOUT_ANN)
    assert ann.end() == {"reason": "refused", "problem": "nothing is granted to user ann"}
    tokens = tmp_path / "listeners"
    tokens.write_text(tokens.read_text().replace(token("bob"), "another_token_of_bob"))
    world.server.service.reload(world.server.service._configuration)
    assert bob.end()["reason"] == "refused"
    assert listen(world, "bob").status == 401
    assert listen(world, given="another_token_of_bob").status == 200
    ends = world.server.service.metrics.management.feed_ends.values()
    assert ends[("refused",)] == 2
    world.root.call("create_table", tbl=table("open", "pub9"))
    assert operator.changes(1)[0]["table"] == "pub9"


def test_a_file_that_cannot_be_used_changes_nothing(world: World, listen: Any, tmp_path: Path) -> None:
    tokens = tmp_path / "listeners"
    tokens.write_text("ann short\n")
    with pytest.raises(StartupError, match="line 1"):
        world.server.service.reload(world.server.service._configuration)
    assert listen(world, "ann").status == 200


def test_digests_tell_nothing_of_other_events(world: World, listen: Any) -> None:
    """A position contains the digest of a row: with a hidden row, it would confirm a guess of its contents."""
    shown = {one.eventId for one in events(world, "ann") if one.eventType != "HIDDEN"}
    last = end_of_log(world)
    hidden = next(one for one in range(last, 0, -1) if one not in shown)
    for event_id in (max(shown), hidden):
        wrong = f"{event_id}-{'0' * 32}"
        listener = listen(world, "ann", after=wrong)
        assert listener.status == (410 if event_id in shown else 200), event_id
        assert listen(world, "hs2", after=wrong).status == 410
    listener = listen(world, "ann", after="0")
    places = set()
    while int(listener.last_id.partition("-")[0] or 0) < last:
        listener.step()
        places.add(listener.last_id)
    assert {int(place.partition("-")[0]) for place in places if "-" in place} <= shown
    world.root.call("create_table", tbl=table("open", "secret2"))
    latest = listen(world, "ann")
    assert latest.step() is None and latest.last_id == str(last + 1)


def test_who_decides_is_waited_for_and_nothing_is_sent_meanwhile(serve: Serve, agent: Agent, listen: Any) -> None:
    agent.answer = decided(lambda user, one: user != "ann" or (one["action"] != "service" and one["table"] != "secret"))
    server = serve(
        **{
            "authorization.provider": "opa",
            "authorization.opa_url": agent.url,
            "authorization.opa_max_age_s": 0,
            "security.accept_insecure": True,
        }
    )
    root = server.link()
    root.call("set_ugi", user_name="root", group_names=[])
    root.call("create_database", database=t.Database(name="open", parameters={}))
    ann = listen(server, "ann")
    assert ann.step() is None
    agent.status = 500
    agent_fails = listen(server, "bob")
    assert agent_fails.status == 503 and agent_fails.answer.getheader("retry-after")
    agent.status = 200
    for name in ("pub", "secret"):
        root.call("create_table", tbl=table("open", name))
    assert [one["table"] for one in read_to(ann, root.call("get_current_notificationEventId").eventId)] == ["pub"]
    fails_before = server.service.metrics.server.policy_requests.values().get(("failed",), 0)
    all_but_ann = decided(lambda user, one: True)
    agent.answer = lambda document: b"{}" if document["input"]["principal"] == "ann" else all_but_ann(document)
    root.call("create_table", tbl=table("open", "late"))
    while server.service.metrics.server.policy_requests.values().get(("failed",), 0) < fails_before + 1:
        assert ann.step() is None, "only its place"
    agent.answer = decided(lambda user, one: one["action"] != "service")
    assert [one["table"] for one in ann.changes(1)] == ["late"]


def test_tokens_of_the_issuer_name_listeners(serve: Serve, issuer: Issuer, listen: Any, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    server = serve(
        **{
            "server.transport_mode": "http",
            "security.accept_insecure": True,
            "authentication.jwt_jwks_url": issuer.url,
            "authentication.jwt_issuer": "issuer",
            "authorization.provider": "policy",
            "authorization.policy_file": str(policy),
        }
    )
    assert listen(server, given=issuer.token(aud=None)).status == 200
    refused = listen(server, given=issuer.token(aud=None, sub="mallory"))
    assert refused.status == 403 and "mallory" in refused.body()
    for bad in (issuer.token(aud=None, exp=1), issuer.token(aud=None, iss="other"), "e30.e30.e30"):
        assert listen(server, given=bad).status == 401
    assert listen(server, "ann").status == 200, "the file counts, too"
