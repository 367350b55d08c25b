"""What the rest of the program assumes about the generated classes."""

from __future__ import annotations

import contextlib
import copy
import pickle
from collections.abc import Iterator

import pytest
from thrift.Thrift import TException

from hms_cache.thrift_gen.hive_metastore import ttypes


def table() -> ttypes.Table:
    return ttypes.Table(tableName="t", sd=ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("a", "int")]))


def test_structs_are_values() -> None:
    assert table() == table()
    assert copy.deepcopy(table()) == table()
    shallow = copy.copy(table())
    assert shallow == table()
    shallow.tableName = "u"
    assert shallow != table()
    assert not hasattr(table(), "__dict__")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_exceptions_survive_copying(again: object) -> None:
    error = ttypes.NoSuchObjectException("hive.d.t table not found")
    same = again(error)  # type: ignore[operator]
    assert same == error
    assert hash(same) == hash(error)
    assert same.message == "hive.d.t table not found"


def test_exceptions_pass_through_context_managers() -> None:
    @contextlib.contextmanager
    def managed() -> Iterator[None]:
        yield

    with pytest.raises(ttypes.MetaException) as caught, managed():
        raise ttypes.MetaException("boo") from ValueError("cause")
    assert isinstance(caught.value, TException)
    assert "boo" in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)


def test_defaults_are_those_of_hive() -> None:
    assert ttypes.Table().writeId == -1
    assert ttypes.Table().ownerType == ttypes.PrincipalType.USER
    assert ttypes.GetTableRequest().engine == "hive"
    assert ttypes.LockComponent().operationType == ttypes.DataOperationType.UNSET
    assert ttypes.PartitionValuesRequest().applyDistinct is True
    assert ttypes.OpenTxnRequest().txn_type == ttypes.TxnType.DEFAULT
