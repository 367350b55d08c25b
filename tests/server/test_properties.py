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
