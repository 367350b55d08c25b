"""Which account and container of Azure a location names."""

from __future__ import annotations

import pytest

from hms_cache.store.warehouse.file_systems import FileSystems
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException

pytest.importorskip("adlfs")

KEY = "a2V5"


@pytest.mark.parametrize(
    "location",
    [
        "abfss://lake@first.dfs.core.windows.net/w/t",
        "abfs://lake@first.dfs.core.windows.net/w/t",
        "wasbs://lake@first.blob.core.windows.net/w/t",
    ],
)
def test_the_account_of_the_location(location: str) -> None:
    place = Location.parse(location)
    options = {"account_key": KEY}
    file_system, path = FileSystems({place.scheme: options}).open(place)
    assert path == "lake/w/t"
    assert file_system.service_client.account_name == "first"


def test_a_connection_string_of_another_account_is_not_used() -> None:
    """The driver would use it, whatever the location contains."""
    text = f"DefaultEndpointsProtocol=https;AccountName=second;AccountKey={KEY};EndpointSuffix=core.windows.net"
    file_systems = FileSystems({"abfss": {"connection_string": text}})
    with pytest.raises(MetaException, match="account first"):
        file_systems.open(Location.parse("abfss://lake@first.dfs.core.windows.net/w"))
    for location in ("abfss://lake@second.dfs.core.windows.net/w/a b#c?d%41", "abfss://lake/w/a b#c?d%41"):
        assert file_systems.open(Location.parse(location))[1] == "lake/w/a b#c?d%41"
