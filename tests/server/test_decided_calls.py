"""Calls that are answered from memory: on a thread if authorization requires a request to another service."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from thrift.Thrift import TException

from hms_cache.server.authorization.rules import RULES, RuleKind
from hms_cache.server.calls import Kind
from hms_cache.server.handlers.table import all_handlers
from hms_cache.wire import METHODS
from tests.server.conftest import Link, Serve
from tests.server.test_request_fields import in_place
from tests.wire.strategies import filled

DECIDED = sorted(
    name for name, one in all_handlers().items() if one.kind is Kind.LOCAL and RULES[name].kind is not RuleKind.OPEN
)


def call_each_that_is_decided(link: Link) -> None:
    """Each gets a reply, at least a refusal, and the conversation continues."""
    for method in DECIDED:
        spec = METHODS[method]
        arguments = in_place(filled(spec.args_class, random.Random(7)))
        given = {field[2]: getattr(arguments, field[2]) for field in filter(None, arguments.thrift_spec)}
        with suppress(TException):
            link.call(method, **given)
        assert link.call("getStatus") == 2, method


@pytest.mark.parametrize("age_s", [0, 60])
def test_the_database_decides(serve: Serve, age_s: int) -> None:
    server = serve(
        **{
            "authorization.provider": "sql",
            "authorization.sql_max_age_s": age_s,
            "catalog.users_in_admin_role": ["root"],
            "security.accept_insecure": True,
        }
    )
    for user in ("root", "eve"):
        link = server.link()
        link.call("set_ugi", user_name=user, group_names=[])
        call_each_that_is_decided(link)
        if user == "root":
            assert link.call("getCounters")["set_ugi"] >= 1
