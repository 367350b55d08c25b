"""Partitions for tests: ordinary ones, and all special kinds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import strategies as st

from hms_cache.metadata.partition_names import make_partition_name
from hms_cache.store.partitions.partitioned_tables import PartitionedTable
from hms_cache.store.partitions.reads import PartitionRows
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    FieldSchema,
    Partition,
    PrincipalPrivilegeSet,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
)

KEYS = (("dt", "string"), ("hr", "int"))
KEY_NAMES = [name for name, _ in KEYS]
ROOT = "s3a://lake/warehouse/sales.db/orders"


def descriptor(location: str | None, columns: int = 10, **changes: object) -> StorageDescriptor:
    """A storage descriptor as Spark and Hive write it."""
    made = StorageDescriptor(
        cols=[FieldSchema(f"column_{number}", "string", "a comment") for number in range(columns)],
        location=location,
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(None, "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
        storedAsSubDirectories=False,
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def name_of(values: Sequence[str]) -> str:
    """The partition's name."""
    return make_partition_name(KEY_NAMES, values)


def partition(values: Sequence[str], number: int = 0, location: str | None = "", **changes: object) -> Partition:
    """An ordinary partition. An empty `location` means Hive's default."""
    made = Partition(
        list(values),
        "sales",
        "orders",
        1_700_000_000 + number,
        0,
        descriptor(f"{ROOT}/{name_of(values)}" if location == "" else location),
        {"numFiles": str(number % 7), "totalSize": str(number * 1234), "transient_lastDdlTime": str(1_700_000_000)},
        None,
        "hive",
        0,
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def ordinary(count: int) -> Iterator[Partition]:
    """Partitions of one table by hour."""
    for number in range(count):
        day, hour = divmod(number, 24)
        year, day = divmod(day, 336)
        yield partition((f"{1900 + year}-{1 + day // 28:02d}-{1 + day % 28:02d}", str(hour)), number)


def page(first: int, count: int) -> PartitionRows:
    """Returns the same as `ordinary`, from number `first` on, as the store reads them."""
    table = PartitionedTable(7, "hive", "sales", "orders", "MANAGED_TABLE", 1, KEYS)
    names, values = [], []
    for number in range(first, first + count):
        day, hour = divmod(number, 24)
        year, day = divmod(day, 336)
        values.append((f"{1900 + year}-{1 + day // 28:02d}-{1 + day % 28:02d}", str(hour)))
        names.append(f"dt={values[-1][0]}/hr={hour}")
    numbers = range(first, first + count)
    return PartitionRows(
        table,
        part_ids=[*numbers],
        names=names,
        create_times=[1_700_000_000 + number for number in numbers],
        last_access_times=[0] * count,
        write_ids=[0] * count,
        sd_ids=[*numbers],
        locations=[f"{ROOT}/{name}" for name in names],
        template_numbers=[0] * count,
        templates=[descriptor(None)],
        column_descriptor_ids=[1],
        parameters=[
            {"numFiles": str(n % 7), "totalSize": str(n * 1234), "transient_lastDdlTime": str(1_700_000_000)}
            for n in numbers
        ],
    )


texts = st.one_of(
    st.sampled_from(
        ["2024-01-01", "2024-01-02", "1", "2", "10", "01", "", "__HIVE_DEFAULT_PARTITION__", "a b", "ü/%="]
    ),
    st.text(alphabet=st.characters(codec="utf-8"), max_size=4),
)
all_values = st.tuples(texts, st.one_of(st.sampled_from(["1", "2", "3", "10"]), texts))
parameters = st.one_of(
    st.none(),
    st.dictionaries(st.sampled_from(["a", "b", "numFiles", "ü"]), st.text(max_size=3), max_size=4),
)


@st.composite
def partitions(draw: st.DrawFn, values: tuple[str, str] | None = None) -> Partition:
    """Generates arbitrary partitions: with all or some fields, any locations, and equal or different descriptors."""
    chosen = values if values is not None else draw(all_values)
    made = partition(chosen, draw(st.integers(0, 3)))
    made.createTime = draw(st.sampled_from([0, 1_700_000_000, -1, None]))
    made.lastAccessTime = draw(st.sampled_from([0, 0, 0, 5, -7, None]))
    made.parameters = draw(parameters)
    made.writeId = draw(st.sampled_from([0, 0, 7, 2**40, None]))
    made.catName = draw(st.sampled_from(["hive", "hive", "other", None]))
    made.dbName = draw(st.sampled_from(["sales", "sales", None]))
    name = name_of(chosen)
    location = draw(
        st.sampled_from([f"{ROOT}/{name}", f"{ROOT}/{name}", f"hdfs://old/{name}", f"{ROOT}/x", name, "", None])
    )
    kind = draw(st.integers(0, 5))
    made.sd = descriptor(location, columns=1 + kind % 3)
    if kind == 3:
        made.sd = None
    elif kind == 4:
        made.sd.cols = None
        made.sd.skewedInfo = SkewedInfo(["a"], [["1"]], {})
    elif kind == 5:
        made.privileges = PrincipalPrivilegeSet({}, {}, {})
        made.isStatsCompliant = True
    return made
