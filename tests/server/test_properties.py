"""Properties through a whole server."""

from __future__ import annotations

import pytest

from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.server.conftest import Serve


def test_properties(serve: Serve) -> None:
    link = serve().link()
    given = ttypes.PropertySetRequest("hms", {"d.t.policy": "snappy", "d.u.policy": "zlib"})
    assert link.call("set_properties", req=given) is True
    request = ttypes.PropertyGetRequest("hms", "d", "policy =^ 's'", ["policy"])
    assert link.call("get_properties", req=request).properties == {"d.t": {"policy": "snappy"}}
    with pytest.raises(ttypes.NoSuchObjectException, match="no PropertyManager namespace is declared, namespace x"):
        link.call("get_properties", req=ttypes.PropertyGetRequest("x", ""))


@pytest.mark.parametrize("number", ["9" * 5_000, f"1{'0' * 5_000}.5", "9" * 1_001])
def test_a_number_too_long_for_an_expression_is_told(serve: Serve, number: str) -> None:
    link = serve().link()
    link.call("set_properties", req=ttypes.PropertySetRequest("hms", {"d.t.policy": "snappy"}))
    for requested in (
        ttypes.PropertyGetRequest("hms", "d", f"policy == {number}"),
        ttypes.PropertyGetRequest("hms", "d", None, [f"{{'a': {number}}}"]),
    ):
        with pytest.raises(ttypes.MetaException, match="number of"):
            link.call("get_properties", req=requested)
