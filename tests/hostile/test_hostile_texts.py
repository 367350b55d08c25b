"""Each text in each request is empty, long, or has characters with a meaning for databases, paths or lines.

No call fails inside, and none breaks later calls of others, on each kind of database: what SQLite stores, MariaDB may
truncate, refuse or treat as equal to another text.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from thrift.Thrift import TType

from hms_cache.app.service import Service
from hms_cache.wire import METHODS
from tests.app.test_service import configured
from tests.hostile.every_request import LEFT_OUT, faults
from tests.hostile.request_places import places_of

TEXTS = (
    "",
    "x" * 5000,
    "a\0b",
    "a\U0001f600b",
    "../a\n\tb::c%d\\",
    '\' OR "1"=`1` -- ',
)

CASES = [
    (method, way, text)
    for method, of in METHODS.items()
    if method not in LEFT_OUT
    for way, _ in places_of(of.args_class, {TType.STRING})
    for text in TEXTS
]


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_text_makes_a_call_fail_inside_or_breaks_what_others_do(
    initialized_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = configured(tmp_path, database__url=initialized_database_url)
    wrong = faults(Service(configuration), CASES, monkeypatch)
    assert not wrong, "\n".join(wrong)
