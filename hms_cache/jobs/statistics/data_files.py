"""The files of a table or partition, used to decide whether its statistics are still those of its rows.

Files are counted, summed up and digested when a run begins and again before it writes; the result is stored with the
statistics. This detects appended rows, rewrites and deletions, with or without events.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.types import ArrayType, StructType

from hms_cache.client import Metastores, for_tasks
from hms_cache.jobs.files.directories import AWAY, OF_DIRECTORIES, DirectoryFiles, DirectoryLister, is_hidden
from hms_cache.jobs.frame.reasons import reason_of
from hms_cache.jobs.sources.catalog_reader import PartitionRange, TableName
from hms_cache.jobs.sources.fields import BOOLEAN, LONG, STRING, fields, required
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.jobs.sources.scope import TABLE_COLUMNS
from hms_cache.jobs.statistics.acid import COMPACTED, AcidDirectory, Snapshot, state_of
from hms_cache.store.rows.parameters import COUNTED_FILES, accurate_columns
from hms_cache.store.warehouse.locations import Location
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, StorageDescriptor, Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

RECORDED = COUNTED_FILES
"""The parameter of a table or partition with the `Mark` of the files that its statistics were computed from."""

SAMPLED = "hms_cache.statistics.sample"
"""The parameter of a unit with estimated statistics: the number of bytes read and of all bytes. For a partitioned
table, the number of partitions with estimated statistics."""

FOUND = StructType(
    [
        *required(STRING, *TABLE_COLUMNS),
        # Null: the table itself.
        *fields(STRING, "partition"),
        *required(STRING, "location"),
        # Null: they could not be listed.
        *fields(STRING, "files"),
        *fields(STRING, "problem"),
        # The files to read; null: all.
        *fields(ArrayType(STRING, False), "sample"),
        *fields(LONG, "sample_bytes"),
        # From its parameters.
        *fields(STRING, "recorded"),
        *fields(LONG, "rows"),
        *required(BOOLEAN, "was_sampled"),
        # `Layout`, for transactional tables.
        *fields(ArrayType(STRING, False), "rows_in", "deletes_in"),
        *fields(ArrayType(LONG, False), "hidden"),
    ]
)


class Figures(NamedTuple):
    """Figures of the data files in and below a directory."""

    files: int
    bytes: int
    newest_us: int
    """Last modification, in microseconds since 1970; 0 if the file system does not report it."""

    digest: str = ""
    """`DirectoryFiles.digest`: the other three do not change if a file is replaced by an older one of its size, or, in
    an object store, within one second."""

    def __str__(self) -> str:
        return f"{self.files}:{self.bytes}:{self.newest_us}:{self.digest}"

    @classmethod
    def read(cls, text: str | None) -> Figures | None:
        """Returns None if the text is invalid."""
        parts = (text or "").split(":")
        if len(parts) != 4 or not all(part.isdecimal() for part in parts[:3]):
            return None
        files, size, newest_us = map(int, parts[:3])
        return cls(files, size, newest_us, parts[3])


class Mark(NamedTuple):
    """A record stored with statistics: the files they were computed from, and other conditions.

    Statistics may become wrong even if the files do not change. Engines that add rows to a number read earlier (INSERT
    of Hive and Trino) count rows twice that this job has already found in the files; a column's type or a table's
    delimiter may change; and a metastore may itself claim that statistics are exact, until the job withdraws the claim.
    """

    figures: Figures
    rows: int

    reading: str
    """`reading_of` the table."""

    claims: int
    """Number of columns whose statistics were claimed to be exact."""

    def __str__(self) -> str:
        return f"{self.figures}:{self.rows}:{self.reading}:{self.claims}"

    @classmethod
    def read(cls, text: str | None) -> Mark | None:
        """Returns None if the text is invalid, such as that of an earlier release."""
        parts = (text or "").split(":")
        figures, more = Figures.read(":".join(parts[:4])), parts[4:]
        if figures is None or len(more) != 3 or not more[0].isdecimal() or not more[2].isdecimal():
            return None
        return cls(figures, int(more[0]), more[1], int(more[2]))

    def holds(self, parameters: Mapping[str, str], reading: str) -> bool:
        """Whether the statistics next to it can only be outdated by a change of the files."""
        is_same = parameters.get("numRows") == str(self.rows) and self.reading == reading
        return is_same and len(accurate_columns(parameters)) <= self.claims


class Layout(NamedTuple):
    """Directories of a transactional table or partition with rows visible to a snapshot."""

    rows: tuple[str, ...]
    """Directories, as locations."""

    deletes: tuple[str, ...] = ()
    """Directories of the files that mark rows as deleted."""

    hidden: tuple[int, ...] = ()
    """Write ids whose rows are not visible."""


class Sample(NamedTuple):
    """Some of the files of a partition or table."""

    names: tuple[str, ...]
    """File names without directories, sorted."""

    bytes: int


class UnitFiles(NamedTuple):
    """A partition, or an unpartitioned table, as found at the start of a run."""

    location: str
    figures: Figures | None
    problem: str | None
    recorded: Figures | None
    rows: int | None
    """From the same record as the figures."""

    sample: Sample | None = None
    """The files to read; None: all."""

    was_sampled: bool = False
    """Whether the existing statistics are estimates."""

    layout: Layout | None = None
    """For a transactional table: the directories that the figures were computed from."""

    @property
    def is_current(self) -> bool:
        """Whether the existing statistics were computed from these files, or estimated from them if that is
        sufficient."""
        is_known = self.figures is not None and self.figures == self.recorded and self.rows is not None
        return is_known and (self.sample is not None or not self.was_sampled)

    @property
    def has_files(self) -> bool:
        """Whether it has files to read."""
        return self.figures is not None and self.figures.files > 0

    @property
    def bytes_to_read(self) -> int:
        """Size of the files to read: of the sample, if there is one."""
        if self.sample is not None:
            return self.sample.bytes
        return self.figures.bytes if self.figures is not None else 0


_OF_FULL = re.compile(r"bucket_\d+(?:_\d+)?")

ORIGINAL_FILES = "it has files of before it was transactional; ANALYZE TABLE of Hive reads them"
NESTED_FILES = (
    "it has files in directories below its own, which Hive counts and Spark does not; ANALYZE TABLE of Hive reads them"
)
OTHER_STORAGE = "it is stored in another way than its table; ANALYZE TABLE of Hive reads it"
UNKNOWN_DELTA_FILES = (
    "a delta has files that Hive's writers of transactional tables do not make; ANALYZE TABLE of Hive reads them"
)


class FigureLister:
    """Lists data files to compute their figures."""

    def __init__(self) -> None:
        self._lister = DirectoryLister()

    def figures(self, location: str) -> tuple[Figures | None, str | None]:
        """Figures, or the reason why there are none. A directory that does not exist has no files."""
        found = self._lister.files(location)
        problem = NESTED_FILES if found.depth else found.problem
        return (_figures(found), None) if problem is None else (None, problem)

    def is_away(self, location: str, root: str) -> bool:
        """`DirectoryLister.is_away` for a directory without files."""
        return self._lister.is_away(location, root)

    def of_many(self, locations: Sequence[str], partitions: int) -> dict[str, Figures]:
        """Figures of many directories of one table, in object stores, with as few requests as possible.

        Directories without a result must be listed one by one: those of file systems, those without neighbours, and
        those that could not be listed.

        :param partitions: number of partitions of the table.
        """
        known: dict[Location, list[str]] = {}
        for location in locations:
            with suppress(MetaException):
                known.setdefault(Location.parse(location), []).append(location)
        found: dict[str, Figures] = {}
        for here, files in self._lister.data_files_of(list(known)):
            start = len(here.path.rstrip("/")) + 1
            if isinstance(files, Exception) or any("/" in path[start:] for path, _ in files):
                continue
            figures = _figures(self._lister.figures((0, info) for _, info in files))
            found |= dict.fromkeys(known[here], figures)
        rest = [location for location in locations if location not in found]
        return found | self._of_neighbours(rest) if are_most(len(rest), partitions) else found

    def _of_neighbours(self, locations: Sequence[str]) -> dict[str, Figures]:
        """Lists the directories with neighbours, with one listing per common parent."""
        places: dict[Location, dict[str, str]] = {}
        for location in locations:
            try:
                here = Location.parse(location)
            except MetaException:
                continue
            above, _, name = here.path.rstrip("/").rpartition("/")
            if here.scheme not in OF_DIRECTORIES and above:
                places.setdefault(Location(here.scheme, here.authority, above), {})[name] = location
        found: dict[str, Figures] = {}
        for place, names in places.items():
            infos: dict[str, list[tuple[int, Mapping[str, Any]]]] = {name: [] for name in names}
            try:
                for path, info in self._lister.below(place) if len(names) > 1 else ():
                    name, _, below = path[len(place.path) + 1 :].partition("/")
                    if isinstance(info, Exception):
                        raise info
                    if below and name in infos and info["type"] != "directory" and not is_hidden(below):
                        infos[name].append((below.count("/"), info))
            except (OSError, MetaException):
                continue
            if len(names) > 1:
                flat = (name for name, some in infos.items() if not any(depth for depth, _ in some))
                found |= {names[name]: _figures(self._lister.figures(infos[name])) for name in flat}
        return found

    def seen(self, location: str, snapshot: Snapshot) -> tuple[Figures | None, str | None, Layout | None]:
        """Like `figures` for a transactional table or partition, with its layout: of the files visible to the
        snapshot."""
        try:
            here = Location.parse(location)
            start = len(here.path.rstrip("/")) + 1
            infos: dict[str, Mapping[str, Any]] = {}
            for path, info in self._lister.below(here):
                if isinstance(info, Exception):
                    return None, reason_of(info), None
                if path[start:]:
                    infos[path[start:]] = info
        except FileNotFoundError:
            return Figures(0, 0, 0), None, Layout(())
        except (OSError, MetaException) as error:
            return None, reason_of(error), None
        compacted = {path.rpartition("/")[0] for path in infos if path.endswith(f"/{COMPACTED}")}
        state = state_of({path.partition("/")[0] for path in infos}, snapshot, compacted)
        files = {path: one for path, one in infos.items() if one["type"] != "directory" and not is_hidden(path)}
        if not state.has_base and any(AcidDirectory.parse(path.partition("/")[0]) is None for path in files):
            return None, ORIGINAL_FILES, None
        chosen = {path: one for path, one in files.items() if path.partition("/")[0] in {*state.rows, *state.deletes}}
        if snapshot.is_full and not all(_OF_FULL.fullmatch(path.rpartition("/")[2]) for path in chosen):
            return None, UNKNOWN_DELTA_FILES, None
        found = self._lister.figures((path.count("/"), one) for path, one in chosen.items())
        # Rows may become visible without a change of files, if a delta contains those of several transactions.
        digest = found.digest + "".join(f",{number}" for number in state.hidden)
        directories = sorted({path.rpartition("/")[0] for path in chosen})
        deletes = tuple(f"{here}/{one}" for one in directories if one.partition("/")[0] in state.deletes)
        rows = tuple(f"{here}/{one}" for one in directories if one.partition("/")[0] in state.rows)
        return (
            Figures(found.files, found.bytes, found.newest_us, digest),
            None,
            Layout(rows, deletes, state.hidden),
        )

    def sample(self, location: str, sample_bytes: int) -> Sample | None:
        """Files with at least this total size, or one file; None if that requires all files, or they cannot be listed.

        Chosen by a hash of their names, because files of one writer or hour are adjacent in name order. Names are
        chosen, not paths: of files with the same name in several directories, all are in the sample or none.
        """
        sizes: dict[str, int] = {}
        try:
            for path, info in self._lister.data_files(Location.parse(location)):
                name = path.rpartition("/")[2]
                sizes[name] = sizes.get(name, 0) + int(info["size"] or 0)
        except (OSError, MetaException):
            return None
        chosen: list[str] = []
        size = 0
        for name in sorted(sizes, key=lambda one: hashlib.blake2b(one.encode(), digest_size=8).digest()):
            if size >= sample_bytes:
                break
            chosen.append(name)
            size += sizes[name]
        return Sample(tuple(sorted(chosen)), size) if 0 < size < sum(sizes.values()) else None


def _figures(found: DirectoryFiles) -> Figures:
    return Figures(found.files, found.bytes, found.newest_us, found.digest)


def are_most(some: int, partitions: int) -> bool:
    """Whether listing the parents, which covers all partitions of a table, is worthwhile for this many of them."""
    return some > 1 and partitions <= _BESIDE * some


_BESIDE = 10


def transform(slices: DataFrame, metastore: Metastores, sample_bytes: int | None = None) -> DataFrame:
    """Returns the partitions and tables in `slices` (`missing_statistics.SLICES`) with their files (`FOUND`).

    :param sample_bytes: for units with more bytes, a sample of about this size is to be read.
    """
    return slices.mapInArrow(_inspector(for_tasks(metastore), sample_bytes), FOUND)


def _inspector(
    metastore: Metastores, sample_bytes: int | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(FOUND)

    def inspect(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lister = FigureLister()
        reader = MetastoreReader(metastore, fills_cache=False)
        try:
            for batch in batches:
                for row in batch.to_pylist():
                    places = list(_places(reader, row))
                    known: Mapping[str, Figures] = {}
                    if row["snapshot"] is None:
                        known = lister.of_many([place.location for place in places], row["partitions_in_all"])
                    found = [_row(row, lister, known, sample_bytes, place) for place in places]
                    yield pyarrow.RecordBatch.from_pylist(found, schema)
        finally:
            reader.close()

    return inspect


class _Place(NamedTuple):
    """A partition, or the table without partitions (None)."""

    unit: str | None
    location: str
    parameters: Mapping[str, str]
    is_stored_otherwise: bool = False
    """Whether its storage differs from its table's."""

    reading: str = ""
    """`reading_of` its table."""

    table: str = ""
    """Location of its table."""


def _places(reader: MetastoreReader, row: dict[str, Any]) -> Iterator[_Place]:
    """Yields nothing for partitions and tables dropped since they were listed."""
    name = TableName(*(row[part] for part in TABLE_COLUMNS))
    for table in reader.tables(name.catalog, name.database, [name.table]):
        reading, root = reading_of(table), table.sd.location or ""
        if row["partitions"] is None:
            yield _Place(None, root, table.parameters or {}, reading=reading, table=root)
            continue
        # For its own tables, Spark reads each partition with the table's options.
        is_sparks = _provider(table) != "hive"
        known = _storage(table.sd)
        for unit, partition in reader.partitions(PartitionRange(name, names=tuple(row["partitions"]))):
            descriptor = partition.sd
            is_other = descriptor is None or (not is_sparks and _storage(descriptor) != known)
            location = descriptor.location if descriptor is not None else None
            yield _Place(unit, location or "", partition.parameters or {}, is_other, reading, root)


def _provider(table: Table) -> str:
    return (table.parameters or {}).get("spark.sql.sources.provider", "hive").lower()


def reading_of(table: Table) -> str:
    """A digest of everything except the files that determines the values of a table's rows: its columns in order, and
    its storage format."""
    columns = [(column.name.lower(), column.type.lower()) for column in table.sd.cols or ()]
    provider, options = _provider(table), None
    if provider != "hive" and table.sd.serdeInfo is not None:
        # A table of Spark's own: options of its reader, except the location of the files.
        options = sorted((key, value) for key, value in (table.sd.serdeInfo.parameters or {}).items() if key != "path")
    description = repr((columns, _storage(table.sd), provider, options))
    return hashlib.blake2b(description.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _storage(of: StorageDescriptor) -> tuple[object, ...]:
    """The properties of the storage that determine how rows are read from files: Spark, Trino and Hive each store
    further properties with a partition. Parquet and ORC files are self-describing."""
    library = (of.serdeInfo.serializationLib if of.serdeInfo is not None else None) or ""
    if any(name in library.lower() for name in ("parquet", "orc")):
        return of.inputFormat, library
    options = (of.serdeInfo.parameters if of.serdeInfo is not None else None) or {}
    # As in Hive's `LazySerDeParameters`: a number is a character code.
    between = options.get("field.delim") or options.get("serialization.format") or "1"
    within = options.get("collection.delim") or options.get("colelction.delim")
    description = tuple(options.get(name, default) for name, default in _OF_TEXT.items())
    return of.inputFormat, library, chr(int(between)) if _CODE.fullmatch(between) else between, within, description


_CODE = re.compile(r"[0-9]{1,3}")
_OF_TEXT: Mapping[str, str | None] = {
    **dict.fromkeys(("escape.delim", "mapkey.delim", "input.regex", "avro.schema.literal", "avro.schema.url")),
    "line.delim": "\n",
    "separatorChar": ",",
    "quoteChar": '"',
    "escapeChar": "\\",
    "serialization.null.format": "\\N",
    "serialization.encoding": "UTF-8",
}
"""SerDe parameters that determine how a line is split, with their defaults."""


def _row(
    row: dict[str, Any],
    lister: FigureLister,
    known: Mapping[str, Figures],
    sample_bytes: int | None,
    place: _Place,
) -> dict[str, Any]:
    layout = None
    figures: Figures | None
    problem: str | None
    partition, location, parameters = place.unit, place.location, place.parameters
    if place.is_stored_otherwise:
        figures, problem = None, OTHER_STORAGE
    elif location in known:
        figures, problem = known[location], None
    elif row["snapshot"] is None:
        figures, problem = lister.figures(location)
    else:
        figures, problem, layout = lister.seen(location, Snapshot(**row["snapshot"]))
        sample_bytes = None  # in a part of the files, rows deleted by others would be unknown
    if figures is not None and not figures.files and lister.is_away(location, place.table):
        figures, problem, layout = None, AWAY, None
    is_large = figures is not None and sample_bytes is not None and figures.bytes > sample_bytes
    sample = lister.sample(location, sample_bytes or 0) if is_large else None
    rows = parameters.get("numRows", "")
    mark = Mark.read(parameters.get(RECORDED))
    return {
        **{name: row[name] for name in TABLE_COLUMNS},
        "partition": partition,
        "location": location,
        "files": None if figures is None else str(figures),
        "problem": problem,
        "sample": None if sample is None else list(sample.names),
        "sample_bytes": None if sample is None else sample.bytes,
        "was_sampled": SAMPLED in parameters,
        "rows_in": None if layout is None else list(layout.rows),
        "deletes_in": None if layout is None else list(layout.deletes),
        "hidden": None if layout is None else list(layout.hidden),
        "recorded": str(mark.figures) if mark is not None and mark.holds(parameters, place.reading) else None,
        "rows": int(rows) if rows.isdecimal() else None,
    }


def unit_files(row: Any) -> UnitFiles:
    """Converts a row of `FOUND`."""
    figures, recorded = Figures.read(row["files"]), Figures.read(row["recorded"])
    sample = None if row["sample"] is None else Sample(tuple(row["sample"]), row["sample_bytes"])
    layout = None
    if row["rows_in"] is not None:
        layout = Layout(tuple(row["rows_in"]), tuple(row["deletes_in"]), tuple(row["hidden"]))
    return UnitFiles(
        row["location"], figures, row["problem"], recorded, row["rows"], sample, row["was_sampled"], layout
    )
