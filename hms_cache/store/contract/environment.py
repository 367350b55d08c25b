"""Contract: the options in the environment context of a write, parsed once when the request arrives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from hms_cache.thrift_gen.hive_metastore.ttypes import EnvironmentContext, MetaException
from hms_cache.values import frozen


@frozen
class ExpectedParameter:
    """Compare-and-set of an alter: parameter `key` must have this `value` (None: must be absent) when the row is
    changed.

    Source: environment context `expected_parameter_key`/`expected_parameter_value` (HIVE-26882), AlterTableRequest
    10/11.
    """

    key: str
    value: str | None


@frozen
class EnvironmentOptions:
    """The properties of an environment context that a metastore supports, named by their effect.

    Source of the keys: `StatsSetupConst`, `hive_metastoreConstants`, `HiveMetaStoreClient` and `HiveAlterHandler` (Hive
    4.0.1).
    """

    purges: bool = False
    """`ifPurge`: data is deleted at once instead of moved to the trash."""
    cascades: bool = False
    """`CASCADE`: the columns of the partitions change together with the table's."""
    changes_partition_keys: bool = False
    """`allow_partition_key_change`."""
    sets_location: bool = False
    """`alterTableOpType` is `ALTERLOCATION`: Hive's ALTER TABLE … SET LOCATION."""
    has_replicated_elsewhere: bool = False
    """`REPL_DATA_LOCATION_CHANGED`, exactly `true`: replication has already put the data of the table and its
    partitions at the new location."""
    copies_renamed: bool = False
    """`renamePartitionMakeCopy`: the files of a renamed partition are copied, so that readers of the old name can
    continue."""
    keeps_truncated_files: bool = False
    """`truncateSkipDataDeletion`: a truncation deletes no files. Hive 4 sets it for Iceberg tables, whose rows a commit
    of the table's own has deleted, and for transactional ones, where an empty base hides the files."""
    keeps_statistics: bool = False
    """`DO_NOT_UPDATE_STATS` in any letter case, as Hive reads it for tables."""
    keeps_partition_statistics: bool = False
    """`DO_NOT_UPDATE_STATS`, exactly `true`, as Hive reads it for partitions."""
    creates_external: bool = False
    """`create_table_as_external`: a new managed table becomes an external one. Hive 4 sets it for Iceberg tables."""
    counts_no_files: bool = False
    """`DO_NOT_POPULATE_QUICK_STATS`."""
    statistics_from: Literal["TASK", "USER"] | None = None
    """`STATS_GENERATED`: who computed the statistics in the parameters."""
    expected_key: str | None = None
    expected_value: str | None = None
    """`expected_parameter_key` and `expected_parameter_value`."""
    txn_id_text: str | None = None
    write_id_text: str | None = None

    @property
    def expected_parameter(self) -> ExpectedParameter | None:
        """The condition on the stored table; None if the key or the value is missing, as in Hive 4."""
        if self.expected_key is None or self.expected_value is None:
            return None
        return ExpectedParameter(self.expected_key, self.expected_value)

    @property
    def txn_id(self) -> int:
        """`txnId`, 0 if absent. Raises MetaException if it is not a number."""
        return _id_of("txnId", self.txn_id_text)

    @property
    def write_id(self) -> int:
        """`writeId`, 0 if absent. Raises MetaException if it is not a number."""
        return _id_of("writeId", self.write_id_text)


NO_OPTIONS = EnvironmentOptions()
"""The options of a request without a context."""


@frozen
class Writer:
    """Options of a write, and for a writer in a transaction its write id and snapshot (otherwise both None).

    `valid_write_ids`: the text of a `ValidWriteIdList`. `options`: from the request's environment context.
    """

    write_id: int | None = None
    valid_write_ids: str | None = None
    options: EnvironmentOptions = NO_OPTIONS

    @property
    def given_write_id(self) -> int | None:
        """The write id if it is positive, otherwise None."""
        return self.write_id if self.write_id is not None and self.write_id > 0 else None

    @property
    def event_write_id(self) -> int:
        """The write id as stored in events and messages: -1 for none."""
        return -1 if self.given_write_id is None else self.given_write_id


ANY_WRITER = Writer()
"""A writer without a transaction and without options."""


def environment_options(context: EnvironmentContext | None) -> EnvironmentOptions:
    """The options in a request's context."""
    properties: Mapping[str, str] = (context.properties if context is not None else None) or {}
    if not properties:
        return NO_OPTIONS

    def is_true(key: str) -> bool:
        return str(properties.get(key, "")).lower() == "true"

    generated = properties.get("STATS_GENERATED")
    return EnvironmentOptions(
        purges=is_true("ifPurge"),
        cascades=is_true("CASCADE"),
        changes_partition_keys=is_true("allow_partition_key_change"),
        sets_location=str(properties.get("alterTableOpType", "")).upper() == "ALTERLOCATION",
        has_replicated_elsewhere=properties.get("REPL_DATA_LOCATION_CHANGED") == "true",
        copies_renamed=is_true("renamePartitionMakeCopy"),
        keeps_truncated_files=is_true("truncateSkipDataDeletion"),
        keeps_statistics=is_true("DO_NOT_UPDATE_STATS"),
        keeps_partition_statistics=properties.get("DO_NOT_UPDATE_STATS") == "true",
        creates_external=is_true("create_table_as_external"),
        counts_no_files=is_true("DO_NOT_POPULATE_QUICK_STATS"),
        statistics_from="TASK" if generated == "TASK" else "USER" if generated == "USER" else None,
        expected_key=properties.get("expected_parameter_key"),
        expected_value=properties.get("expected_parameter_value"),
        txn_id_text=properties.get("txnId"),
        write_id_text=properties.get("writeId"),
    )


def _id_of(key: str, text: str | None) -> int:
    try:
        return int(text) if text is not None else 0
    except ValueError as error:
        raise MetaException(f"{key} of the environment context is no number: {text}") from error
