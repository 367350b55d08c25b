"""Each number in each request at the limits of its type: no call fails inside, and none breaks later calls of
others."""

from __future__ import annotations

from pathlib import Path

import pytest
from thrift.Thrift import TType

from hms_cache.app.service import Service
from hms_cache.wire import METHODS
from tests.app.test_service import configured
from tests.hostile.every_request import LEFT_OUT, faults
from tests.hostile.request_places import places_of

BITS = {TType.BYTE: 8, TType.I16: 16, TType.I32: 32, TType.I64: 64}


def extremes(type_: int) -> list[float]:
    """The limits of a type; enumerations are numbers of 32 bits."""
    if type_ == TType.DOUBLE:
        return [float("nan"), float("inf"), -1e308]
    most = 2 ** (BITS[type_] - 1) - 1
    return [most, -most - 1, -1]


CASES = [
    (method, way, number)
    for method, of in METHODS.items()
    if method not in LEFT_OUT
    for way, type_ in places_of(of.args_class, {*BITS, TType.DOUBLE})
    for number in extremes(type_)
]


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_no_number_makes_a_call_fail_inside_or_breaks_what_others_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = faults(Service(configured(tmp_path)), CASES, monkeypatch)
    assert not wrong, "\n".join(wrong)
