"""Tokens and their keys over time, with two servers on one database."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from sqlalchemy import insert

from hms_cache.authentication.delegation.proxy_users import ProxyUsers
from hms_cache.authentication.delegation.token_format import MasterKey, Token, TokenIdentifier, from_base64, to_base64
from hms_cache.authentication.delegation.token_manager import Caller, Cleaned, TokenError, TokenManager, TokenOptions
from hms_cache.authentication.local_names import LocalNames
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.store.schema import DELEGATION_TOKENS
from hms_cache.store.security.tokens import TOKENS_IN_A_STATEMENT
from tests.databases import count_statements
from tests.store.auxiliary.conftest import World

DAY_S = 86_400.0
ANN = Caller("ann", "ann@EXAMPLE.TEST", "10.0.0.1", True)
YARN = Caller("yarn", "yarn/host@EXAMPLE.TEST", "10.0.0.2", True)


class Server:
    """A server's manager, and the clock of all of them."""

    def __init__(self, world: World, clock_s: list[float], *, padded: bool = True) -> None:
        self.store = world.stores.tokens
        self.manager = TokenManager(
            self.store,
            TokenOptions(padded=padded),
            ProxyUsers("", lambda user: frozenset()),
            LocalNames("DEFAULT", "EXAMPLE.TEST"),
            lambda: clock_s[0],
        )

    def is_good(self, token: Token) -> bool:
        try:
            return self.manager.password(token.identifier)[1] == token.password
        except AuthenticationError:
            return False


def test_time_ends_tokens_and_keys(world: World) -> None:
    clock_s = [1_000_000.0]
    one, two = Server(world, clock_s), Server(world, clock_s)
    token = Token.from_url(one.manager.issue(ANN, "ann", "yarn"))
    assert one.is_good(token) and two.is_good(token)
    assert len(one.store.master_keys()) == 1
    two.manager.issue(ANN, "ann", "")
    assert len(one.store.master_keys()) == 1, "servers share keys"
    assert two.manager.renew(YARN, token.to_url()) == int((clock_s[0] + DAY_S) * 1000)
    clock_s[0] += 6.5 * DAY_S
    # It has not been renewed since: it is valid, as in Hive.
    assert two.is_good(token)
    assert one.manager.renew(YARN, token.to_url()) == TokenIdentifier.decoded(token.identifier).max_ms
    later = Token.from_url(two.manager.issue(ANN, "ann", ""))
    assert len(one.store.master_keys()) == 2
    clock_s[0] += 0.6 * DAY_S
    assert not one.is_good(token) and two.is_good(later)
    with pytest.raises(TokenError, match="expired"):
        one.manager.renew(YARN, token.to_url())
    assert one.manager.clean() == Cleaned(2, 0)
    clock_s[0] += DAY_S
    assert two.manager.clean() == Cleaned(0, 1)
    assert two.is_good(later)
    clock_s[0] += 8 * DAY_S
    assert one.manager.clean() == Cleaned(1, 1)
    assert (one.store.get_all_token_identifiers(), one.store.master_keys()) == ([], [])


def test_both_forms_of_base64_are_found(world: World) -> None:
    clock_s = [1_000_000.0]
    of_hive_3, of_hive_4 = Server(world, clock_s, padded=False), Server(world, clock_s)
    for server in (of_hive_3, of_hive_4):
        for owner in ("a", "ab", "abc"):
            token = Token.from_url(server.manager.issue(ANN._replace(user=owner), owner, "yarn"))
            assert of_hive_3.is_good(token) and of_hive_4.is_good(token)
            other = of_hive_4 if server is of_hive_3 else of_hive_3
            other.manager.renew(YARN, token.to_url())
            other.manager.cancel(ANN._replace(user=owner), token.to_url())
            assert not server.is_good(token)
    assert of_hive_4.store.get_all_token_identifiers() == []


def test_texts_of_others_stay_and_harm_nobody(world: World) -> None:
    server = Server(world, [1_000_000.0])
    server.store.add_token("not a token", "x")
    server.store.add_master_key("not a key")
    # A server that stopped between adding a key and writing its number.
    server.store.add_master_key(to_base64(MasterKey(0, 10**15, b"s" * 32).encoded()))
    token = Token.from_url(server.manager.issue(ANN, "ann", ""))
    key_id = TokenIdentifier.decoded(token.identifier).master_key_id
    assert MasterKey.decoded(from_base64(dict(server.store.master_keys())[key_id])).key_id == key_id
    assert server.manager.clean() == Cleaned(0, 0)
    assert "not a token" in server.store.get_all_token_identifiers()


def test_names_that_no_column_holds(sqlite_world: World) -> None:
    server = Server(sqlite_world, [1_000_000.0])
    name = "ä" * 400
    with pytest.raises(TokenError, match="too long"):
        server.manager.issue(ANN._replace(user=name), name, "")
    with pytest.raises(TokenError, match="no rule"):
        server.manager.issue(ANN, "ann", "yarn/host@ELSEWHERE")
    huge = TokenIdentifier(name, "", "", 0, 10**15, 1, 1).encoded()
    with pytest.raises(AuthenticationError, match="does not exist"):
        server.manager.password(huge)


def test_many_ask_at_once(world: World) -> None:
    """One key signs all of them, and no two are equal."""
    server = Server(world, [1_000_000.0])
    tokens: list[str] = []
    threads = [
        threading.Thread(target=lambda: tokens.append(server.manager.issue(ANN, "ann", "yarn"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(tokens)) == 8 == len(server.store.get_all_token_identifiers())
    assert len(server.store.master_keys()) == 1


def test_many_tokens_end_in_few_statements(world: World) -> None:
    """A cluster issues a token for each of its jobs; two base64 texts that differ only in case are two tokens."""

    def ended(sequence: int) -> str:
        return to_base64(TokenIdentifier("ann", "", "", 0, 1000, sequence, 1).encoded())

    server = Server(world, [1_000_000.0])

    def statements(names: Sequence[str]) -> int:
        with world.database.writing() as connection:
            connection.execute(insert(DELEGATION_TOKENS), [{"TOKEN_IDENT": name, "TOKEN": "x"} for name in names])
            connection.commit()
        with count_statements(world.database) as seen:
            assert server.manager.clean() == Cleaned(len(names), 0)
        return len(seen.statements)

    few = statements([ended(1), ended(2)])
    assert statements([ended(number) for number in range(400)]) == few
    assert statements([ended(number) for number in range(2 * TOKENS_IN_A_STATEMENT)]) <= 3 * few


def test_a_text_that_a_collation_takes_for_that_of_an_ended_token_stays(world: World) -> None:
    ended = to_base64(TokenIdentifier("ann", "", "", 0, 1000, 7, 1).encoded())
    server = Server(world, [1_000_000.0])
    assert server.store.add_token(ended, "x")
    others = [other for other in (ended.lower(), ended.swapcase()) if server.store.add_token(other, "x")]
    assert server.store.remove_tokens([ended, "none"]) == 1
    assert server.store.get_all_token_identifiers() == sorted(others)
