"""The cost of a storage descriptor with very many entries is proportional to their number, not to its square."""

from __future__ import annotations

import copy
import tracemalloc
from collections.abc import Callable

import pytest

from hms_cache.metadata.object_names import TableName
from hms_cache.thrift_gen.hive_metastore import ttypes
from tests.store.contract.harness import CATALOG, StoreUnderTest

ENTRIES = 6_000
NAMES = [f"v{number:05}" for number in range(ENTRIES)]
MAX_BYTES = 60_000_000
"""The half of what a list of all entries so far, kept for each entry, takes."""

FILLED: dict[str, Callable[[ttypes.StorageDescriptor], None]] = {
    "bucketCols": lambda sd: setattr(sd, "bucketCols", NAMES),
    "sortCols": lambda sd: setattr(sd, "sortCols", [ttypes.Order(name, 1) for name in NAMES]),
    "parameters": lambda sd: sd.parameters.update(dict.fromkeys(NAMES, "x")),
    "serdeInfo.parameters": lambda sd: sd.serdeInfo.parameters.update(dict.fromkeys(NAMES, "x")),
    "skewedColNames": lambda sd: setattr(sd.skewedInfo, "skewedColNames", NAMES),
    "skewedColValues": lambda sd: setattr(
        sd, "skewedInfo", ttypes.SkewedInfo(["id"], [[name] for name in NAMES], {(NAMES[0],): "file:/x"})
    ),
}


@pytest.mark.soak
@pytest.mark.parametrize("field", FILLED)
def test_memory_of_a_read_grows_with_the_entries(catalog: StoreUnderTest, field: str) -> None:
    """A partition of 2 MB made its readers take gigabytes, one after the other, until the server was killed."""
    catalog.create_table(keys=[("dt", "string")])
    catalog.add_partitions("t", ("1",))
    name = TableName(CATALOG, "d", "t")
    [partition] = copy.deepcopy(catalog.partitions("t"))
    FILLED[field](partition.sd)
    catalog.store.writes.partitions.alter_partitions(name, [partition])
    tracemalloc.start()
    try:
        [read] = catalog.partitions("t")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read.sd == partition.sd
    assert peak < MAX_BYTES
