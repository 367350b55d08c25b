"""Delegation tokens and master keys."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from hms_cache.store.schema import SEQUENCE_TABLE
from hms_cache.thrift_gen.hive_metastore.ttypes import NoSuchObjectException
from tests.store.auxiliary.conftest import World


def test_tokens(world: World) -> None:
    tokens = world.stores.tokens
    assert (tokens.get_token("b"), tokens.get_all_token_identifiers()) == ("", [])
    assert tokens.add_token("b", "1")
    assert tokens.add_token("a", "2")
    assert not tokens.add_token("b", "3")
    assert [tokens.get_token(name) for name in "ab"] == ["2", "1"]
    assert tokens.get_all_token_identifiers() == ["a", "b"]
    assert [tokens.remove_token("b"), tokens.remove_token("b")] == [True, False]
    assert tokens.get_all_token_identifiers() == ["a"]


def test_master_keys(world: World) -> None:
    tokens = world.stores.tokens
    first, second = tokens.add_master_key("k1"), tokens.add_master_key("k2")
    assert first < second
    # Numbers that a Java server assigns later are different.
    model = SEQUENCE_TABLE.c.SEQUENCE_NAME == "org.apache.hadoop.hive.metastore.model.MMasterKey"
    with world.database.loading() as connection:
        assert connection.execute(select(SEQUENCE_TABLE.c.NEXT_VAL).where(model)).scalar_one() > second
    tokens.update_master_key(first, "k3")
    tokens.update_master_key(first, "k3")
    assert tokens.get_master_keys() == ["k3", "k2"]
    with pytest.raises(NoSuchObjectException, match=f"No key found with keyId: {second + 1}"):
        tokens.update_master_key(second + 1, "k")
    assert [tokens.remove_master_key(first), tokens.remove_master_key(first)] == [True, False]
    assert tokens.get_master_keys() == ["k2"]
