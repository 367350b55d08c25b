"""Hadoop's rules for names of principals: the expected names are those of KerberosName's documentation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_cache.authentication.local_names import LocalNames
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.authentication.negotiation import Negotiation
from hms_cache.config.sections import LimitsSettings

RULES = """
    RULE:[1:$1@$0](.*@YAHOO\\.COM)s/@.*//
    RULE:[2:$1](johndoe)s/^.*$/guest/
    RULE:[2:$1;$2](^.*;admin$)s/;admin$//
    RULE:[2:$2](root)
    RULE:[1:$1@$0](.*@LOWER\\.TEST)s/@.*///L
    DEFAULT
"""


@pytest.mark.parametrize(
    ("principal", "user"),
    [
        ("omalley@APACHE.ORG", "omalley"),
        ("hdfs/10.0.0.1@APACHE.ORG", "hdfs"),
        ("omalley@YAHOO.COM", "omalley"),
        ("johndoe/zoo@FOO.COM", "guest"),
        ("joe/admin@FOO.COM", "joe"),
        ("joe/root@FOO.COM", "root"),
        ("Joe@LOWER.TEST", "joe"),
        ("foo@ACME.COM", None),
        ("owen/owen@ACME.COM", None),
        ("a/b/c@APACHE.ORG", None),
        ("", None),
        ("a@b@c", None),
    ],
)
def test_users_of_principals(principal: str, user: str | None) -> None:
    names = LocalNames(RULES, "APACHE.ORG")
    if user is None:
        with pytest.raises(AuthenticationError):
            names.of(principal)
    else:
        assert names.of(principal) == user


def test_a_result_that_is_no_user_is_refused() -> None:
    with pytest.raises(AuthenticationError, match="not a user's name"):
        LocalNames("RULE:[1:$1@$0](.*)", "APACHE.ORG").of("ann@APACHE.ORG")


@pytest.mark.parametrize("rules", ["RULE:[1", "nonsense", "DEFAULT nonsense", "RULE:[1:$1]((x)"])
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(ValueError, match="auth_to_local"):
        LocalNames(rules, "APACHE.ORG")


class _Echo:
    user, layer, complete = "ann", None, False

    def step(self, response: bytes) -> bytes:
        return response


@given(st.lists(st.binary(max_size=40)))
def test_any_bytes_are_a_negotiation_or_an_authentication_error(pieces: list[bytes]) -> None:
    """Nothing else is raised, and no result exceeds one message."""
    negotiation = Negotiation({"ECHO": _Echo})
    try:
        for piece in pieces:
            negotiation.feed(piece)
            while negotiation.next_response() is not None:
                pass
            assert negotiation.used_bytes <= LimitsSettings().sasl_message_bytes + 5
    except AuthenticationError as error:
        assert Negotiation.refusal(error)[0] in (3, 4)


@given(st.lists(st.binary(max_size=40), max_size=10), st.integers(1, 7))
def test_messages_may_come_in_any_pieces(responses: list[bytes], size: int) -> None:
    def message(status: int, payload: bytes) -> bytes:
        return bytes([status]) + len(payload).to_bytes(4, "big") + payload

    data = message(1, b"ECHO") + b"".join(message(2, one) for one in responses)
    negotiation = Negotiation({"ECHO": _Echo})
    found = []
    for start in range(0, len(data), size):
        negotiation.feed(data[start : start + size])
        while (response := negotiation.next_response()) is not None:
            found.append(response)
    assert found == responses and not negotiation.rest()
