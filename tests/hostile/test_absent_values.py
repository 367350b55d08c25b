"""Each value of each request is omitted, and each list and map in it empty: no call fails with an internal error.

Requests of Hive's clients have the fields that the protocol requires; those of others may not, and no layer before the
handlers checks it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from thrift.Thrift import TType

from hms_cache.app.service import Service
from hms_cache.wire import METHODS
from tests.app.test_service import configured
from tests.hostile.every_request import LEFT_OUT, faults
from tests.hostile.request_places import fields_of

EMPTY = {TType.LIST: [], TType.SET: set(), TType.MAP: {}}

CASES = [
    (method, way, value)
    for method, of in METHODS.items()
    if method not in LEFT_OUT
    for way, type_ in fields_of(of.args_class)
    for value in (None, *([EMPTY[type_]] if type_ in EMPTY else []))
]


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_no_absent_value_makes_a_call_fail_inside_or_breaks_what_others_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = faults(Service(configured(tmp_path)), CASES, monkeypatch)
    assert not wrong, "\n".join(wrong)
