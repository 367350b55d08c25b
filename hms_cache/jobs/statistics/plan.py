"""Plans a run of the job: the tables it may process, and for each the partitions that need statistics."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hms_cache.client import MetastoreClient, Metastores
from hms_cache.jobs.sources.catalog_reader import tables_within
from hms_cache.jobs.sources.metastore_reader import MetastoreReader
from hms_cache.jobs.sources.scope import TableScope, shown_name
from hms_cache.jobs.statistics.acid import Snapshot
from hms_cache.jobs.statistics.changes import Changes
from hms_cache.jobs.statistics.columns import StatisticsColumn, statistics_columns
from hms_cache.jobs.statistics.data_files import NESTED_FILES, RECORDED, UnitFiles
from hms_cache.jobs.statistics.rows.file_index import format_of
from hms_cache.jobs.statistics.transaction import snapshots
from hms_cache.metadata.names import DEFAULT_CATALOG
from hms_cache.metadata.object_names import TableName, name_of_table
from hms_cache.metadata.partition_names import values_of_name
from hms_cache.store.rows.table_kinds import is_transactional
from hms_cache.thrift_gen.hive_metastore.ttypes import Table

T = TypeVar("T")

MERGED = "hms_cache.statistics.partitions"
"""The parameter of a partitioned table with `TableWork.digest` at its last merge."""

_WITH_ROWS = frozenset({"MANAGED_TABLE", "EXTERNAL_TABLE"})


@dataclass(slots=True)
class TableWork:
    """A table, and the statistics to compute for it."""

    table: Table
    columns: list[StatisticsColumn]
    names: list[str] | None
    """All its partitions; None for a table without partition keys."""

    unreadable: frozenset[str] = frozenset()
    """Partitions whose rows Spark cannot distinguish from those of others."""

    changed: int = 0
    lacking: int = 0
    chosen: list[str] = field(default_factory=list)
    is_chosen: bool = False
    """Used for a table without partitions."""

    postponed: int = 0
    """Partitions, or 1 for a table without them, that need statistics but are left for the next run."""

    reason: str = ""
    """Why everything is processed, if not because of events or missing statistics."""

    is_touched: bool = False
    """Whether partitions were added, dropped or changed, so that the statistics of the table as a whole have
    changed."""

    snapshot: Snapshot | None = None
    """The visible state of a transactional table."""

    write_id: int | None = None
    """Write id of the transaction in which its statistics are written."""

    files: Mapping[str | None, UnitFiles] = field(default_factory=dict)
    """The files of each partition, or of the table without partitions, as found at the start of the run."""

    @property
    def name(self) -> TableName:
        return name_of_table(self.table)

    @property
    def label(self) -> str:
        """Its name in reports."""
        return shown_name(self.name)

    @property
    def has_work(self) -> bool:
        """Whether there is something to compute or merge."""
        return bool(self.chosen) or self.is_chosen or (self.is_touched and not self.postponed)

    def choose(
        self,
        *,
        everything: bool,
        changes: Changes | None,
        lacking: set[str | None],
        files: Mapping[str | None, UnitFiles],
    ) -> None:
        """Chooses the units to process by their files and, for missing statistics of a column, by `lacking`.

        :param changes: from the log; only shown in the plan: an event does not prove that data has changed, and a
          missing one does not prove that it has not.
        :param lacking: partition names, None for the table itself.
        """
        changes = changes or Changes()
        self.reason = "asked for" if everything else ""
        self.files = files

        def is_chosen(unit: str | None) -> bool:
            found = files.get(unit)
            if found is None or found.figures is None:
                return False
            return everything or unit in lacking or not found.is_current

        def has_changed(unit: str | None) -> bool:
            found = files.get(unit)
            if found is None or found.is_current:
                return False
            is_named = (
                unit is not None and bool(changes.partitions) and tuple(values_of_name(unit)) in changes.partitions
            )
            return is_named or found.recorded is not None or (unit is None and changes.touched)

        self.lacking = len(lacking)
        if self.names is None:
            self.changed, self.is_chosen = int(has_changed(None)), is_chosen(None)
            return
        self.changed = sum(map(has_changed, self.names))
        self.chosen = [name for name in self.names if name not in self.unreadable and is_chosen(name)]
        is_whole = (self.table.parameters or {}).get(MERGED) == self.digest()
        self.is_touched = bool(self.chosen) or not (is_whole or self.unreadable or self.unlisted)

    @property
    def unlisted(self) -> list[tuple[str | None, str]]:
        """Partitions, or the table without partitions, whose files cannot be listed, with the reason."""
        return [(unit, found.problem) for unit, found in self.files.items() if found.problem is not None]

    def outdated(self) -> list[str | None]:
        """The units known to have statistics of other files than their current ones."""

        def is_outdated(found: UnitFiles) -> bool:
            if found.recorded is None:
                return False
            return found.figures != found.recorded if found.figures is not None else found.problem == NESTED_FILES

        return [unit for unit, found in self.files.items() if is_outdated(found)]

    def chosen_bytes(self) -> list[int]:
        """Size of the files to read, for each chosen unit in order."""
        units: Sequence[str | None] = [None] if self.is_chosen else self.chosen
        return [self.files[unit].bytes_to_read for unit in units]

    @property
    def sampled(self) -> list[str | None]:
        """The units read as a sample in this run, and other partitions with statistics from a sample."""
        if self.names is None:
            return [None] if self.is_chosen and self.files[None].sample is not None else []
        chosen = set(self.chosen)
        return [
            name
            for name, found in self.files.items()
            if (found.sample is not None if name in chosen else found.was_sampled)
        ]

    def keep(self, kept: Collection[int]) -> None:
        """Keeps the chosen units at these positions, and postpones the others."""
        self.postponed = (1 if self.is_chosen else len(self.chosen)) - len(kept)
        self.is_chosen = self.is_chosen and bool(kept)
        self.chosen = [name for position, name in enumerate(self.chosen) if position in kept]

    def digest(self) -> str:
        """A digest of the files of all partitions, from whose statistics those of the table as a whole were merged."""
        digest = hashlib.sha256()
        for name in sorted(self.names or ()):
            found = self.files.get(name)
            digest.update(f"{name}\0{found.figures if found is not None else None}\n".encode())
        return f"{len(self.names or ())}:{digest.hexdigest()[:32]}"

    def plan_row(self) -> tuple[object, ...]:
        """A row of the plan."""
        partitions = None if self.names is None else len(self.names)
        chosen = int(self.is_chosen) if self.names is None else len(self.chosen)
        return (
            self.label,
            len(self.columns),
            partitions,
            self.changed,
            self.lacking,
            chosen,
            self.reason or None,
        )


PLAN_COLUMNS = ("table", "columns", "partitions", "changed", "lacking", "to compute", "all because")


def limit_work(work: Iterable[TableWork], max_bytes: int, night: int | None = None) -> int:
    """Postpones units beyond this total size of files to read. Returns the number of postponed partitions and tables.

    The first unit is never postponed: otherwise one that exceeds the limit would block all others for ever. So would a
    unit that fails each time, because it is damaged or changes constantly; therefore, with a `night`, the order of
    tables and of their partitions is different each night.
    """
    remaining_bytes = max_bytes
    is_first, is_over = True, False
    postponed = 0
    chance = None if night is None else random.Random(night)
    for one in _shuffled(list(work), chance):
        kept: set[int] = set()
        for position, size in _shuffled(list(enumerate(one.chosen_bytes())), chance):
            # In order: small units do not overtake.
            is_over = is_over or (size > remaining_bytes and not is_first)
            if is_over:
                break
            remaining_bytes -= size
            kept.add(position)
            is_first = False
        one.keep(kept)
        postponed += one.postponed
    return postponed


def _shuffled(some: list[T], chance: random.Random | None) -> list[T]:
    if chance is not None:
        chance.shuffle(some)
    return some


def tables_in(metastore: Metastores, scope: TableScope) -> tuple[list[TableWork], list[tuple[Table, str]]]:
    """The tables of the scope that Spark reads as Hive does, with the names of all partitions; and the excluded ones,
    with the reason.

    Raises MetastoreUnavailableError.
    """
    found: list[TableWork] = []
    left_out: list[tuple[Table, str]] = []
    reader = MetastoreReader(metastore, fills_cache=False)
    try:
        for table in tables_within(reader, scope):
            name = name_of_table(table)
            reason = refusal(table)
            if reason is not None:
                left_out.append((table, f"left out: {reason}"))
                continue
            if table.tableType not in _WITH_ROWS:
                continue
            columns = statistics_columns(table)
            if not columns:
                left_out.append((table, "left out: Hive has no statistics of columns of its types"))
                continue
            names = reader.partition_names(name) if table.partitionKeys else None
            found.append(TableWork(table, columns, names))
    finally:
        reader.close()
    transactional = [one for one in found if is_transactional(one.table)]
    if transactional:
        with MetastoreClient(metastore) as client:
            seen = snapshots(client, [one.table for one in transactional])
        for one in transactional:
            one.snapshot = seen[one.name]
    return found, left_out


def was_computed(table: Table) -> bool:
    """Whether this job has written statistics of the table, according to its parameters."""
    return not {RECORDED, MERGED}.isdisjoint(table.parameters or {})


def refusal(table: Table) -> str | None:
    """Why the job excludes a table with rows; None if it does not, and for views.

    Iceberg, Delta and others declare their format in `table_type` or the provider, and maintain statistics themselves.
    """
    parameters: Mapping[str, str] = table.parameters or {}
    if table.tableType not in _WITH_ROWS:
        return None
    if table.sd is None:
        return "it has no storage descriptor"
    if is_transactional(table) and (table.catName or DEFAULT_CATALOG) != DEFAULT_CATALOG:
        return "it is transactional, and Hive knows transactions of the default catalog only"
    if is_transactional(table) and format_of(table) is None:
        return "it is transactional, and neither ORC nor Parquet; ANALYZE TABLE of Hive reads it"
    for engine in (parameters.get("table_type"), parameters.get("spark.sql.sources.provider")):
        if engine is not None and engine.lower() not in _PROVIDERS:
            return f"{_ENGINES.get(engine.lower(), engine)} keeps statistics of its tables itself"
    if parameters.get("storage_handler"):
        return f"its rows are read by {parameters['storage_handler']}"
    if parameters.get("spark.sql.sources.provider", "hive").lower() == "hive":
        return _read_by_hive_only(table)
    if [column.type for column in table.sd.cols or ()] == _SPARKS_OWN:
        return "only Spark knows its columns, which it keeps in parameters; ANALYZE TABLE of Spark counts it"
    return None


_SPARKS_OWN = ["array<string>"]
"""Types of the columns that Spark reports to the metastore for a table that Hive cannot read, such as one with ``USING
csv``. Source: `HiveExternalCatalog` (Spark 4.1)."""


def _read_by_hive_only(table: Table) -> str | None:
    """Why Spark would read other rows than Hive from a table that it treats as Hive's."""
    serde = table.sd.serdeInfo if table.sd is not None else None
    options = {**((serde.parameters if serde is not None else None) or {}), **(table.parameters or {})}
    file_format, input_format = format_of(table), (table.sd.inputFormat if table.sd is not None else None) or ""
    is_known = file_format is None or not input_format or input_format in _INPUT_FORMATS[file_format]
    if not is_known or input_format.endswith(".SymlinkTextInputFormat"):
        return f"its rows are read by {input_format}"
    if file_format is None and any(options.get(name, "0") not in ("", "0") for name in _LINES_LEFT_OUT):
        return f"its files have lines that are not rows ({', '.join(_LINES_LEFT_OUT)}), which Spark does not support"
    if file_format == "parquet" and options.get("parquet.column.index.access", "").lower() == "true":
        return "its columns are matched by position (parquet.column.index.access), which Spark does not support"
    return None


_LINES_LEFT_OUT = ("skip.header.line.count", "skip.footer.line.count")
_INPUT_FORMATS = {
    "parquet": (
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "parquet.hive.MapredParquetInputFormat",
        "parquet.hive.DeprecatedParquetInputFormat",
    ),
    "orc": ("org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",),
}
"""Classes that read exactly the format; others, such as Hudi's, omit old versions of rows."""

_ENGINES = {"iceberg": "Iceberg", "delta": "Delta Lake", "hudi": "Hudi"}
_PROVIDERS = frozenset({"hive", "parquet", "orc", "csv", "json", "text", "avro"})
