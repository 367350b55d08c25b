"""When an object was modified: the same as botocore's result, but faster."""

from __future__ import annotations

import pytest

from hms_cache.store.warehouse.s3_keys import _time

utils = pytest.importorskip("botocore.utils")


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-29T08:23:11.000Z",
        "2026-11-29T08:23:11Z",
        "2026-11-29T08:23:11.123456+02:00",
        "Sun, 29 Nov 2026 08:23:11 GMT",
        "2026-11-29T08:23:11",
        "1764404591",
        1764404591.5,
    ],
)
def test_they_are_botocores(text: str | float) -> None:
    assert _time(text) == utils.parse_timestamp(text)
