"""Settings of Hive's that change what the store answers, as one value. The defaults are Hive's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hms_cache.expressions import FilterLimits
from hms_cache.metadata.column_types import SERDES_USING_METASTORE_FOR_SCHEMA, SERDES_WITH_FREE_TYPE_CHANGES


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Behaviour of `ObjectStore`; every field names the Hive setting it mirrors."""

    special_characters_in_table_names: bool = True
    """`metastore.support.special.characters.tablenames`."""

    disallow_incompatible_column_type_changes: bool = True
    """`metastore.disallow.incompatible.col.type.changes`."""

    statistics_auto_gather: bool = True
    """`metastore.stats.auto.gather`: fill numFiles and totalSize of an existing directory."""

    retain_column_statistics_on_column_removal: bool = True
    """`metastore.colstats.retain.on.column.removal`: keep partition statistics of the columns that stay."""

    statistics_sketches: bool = False
    """`metastore.stats.fetch.bitvector`: answer bit vectors, and aggregate numbers of distinct values from them."""

    statistics_histograms: bool = False
    """`metastore.stats.fetch.kll`: answer histograms."""

    statistics_density_function: bool = False
    """`metastore.stats.ndv.densityfunction`: aggregate numbers of distinct values from ranges and densities."""

    statistics_distinct_tuner: float = 0.0
    """`metastore.stats.ndv.tuner`: between the largest number of distinct values of a partition (0) and their sum (1).
    """

    partition_name_whitelist_pattern: str = ""
    """`metastore.partition.name.whitelist.pattern`: a regular expression for partition values; empty allows all."""

    partition_request_limit: int = -1
    """`metastore.limit.partition.request`: most partitions one request may ask for; -1 is no limit."""

    filter_limits: FilterLimits = field(default_factory=FilterLimits)
    """How long and how deep filters of partitions and tables may be: settings of our own."""

    default_partition_name: str = "__HIVE_DEFAULT_PARTITION__"
    """`metastore.default.partition.name`: what a null partition value is called."""

    delegation_tokens: bool = False
    """Whether delegation tokens and master keys may be read and written: clients are not authenticated here, where
    Hive's server asks for Kerberos."""

    server_user: str = "hive"
    """Who owns an object whose creator did not say: the account that the server runs as."""

    single_alter_partitions_event: bool = False
    """`metastore.alterPartitions.notification.v2.enabled`: one ALTER_PARTITIONS event in place of one per partition.

    Off: readers older than Hive 4.1 do not know the event.
    """

    default_pool_size: int = 4
    """`metastore.wm.default.pool.size`: parallel queries of the pool that a new resource plan gets; 0 is no pool."""

    scheduled_queries: bool = True
    """`metastore.scheduled.queries.enabled`."""

    scheduled_query_timeout_s: int = 120
    """`metastore.scheduled.queries.execution.timeout`: an execution that does not report for so long is given up."""

    scheduled_query_retention_s: int = 30 * 86_400
    """`metastore.scheduled.queries.execution.max.age`: executions older than this are deleted."""

    scheduled_query_disable_count: int = 0
    """`metastore.scheduled.queries.autodisable.count`: failures in a row that disable a query; 0 is never."""

    scheduled_query_skips: int = 0
    """`metastore.scheduled.queries.skip.opportunities.after.failures`: most failures in a row that make a query miss
    turns; 0 is none.
    """

    metadata_translation: Literal["off", "hive4"] = "off"
    """`metastore.metadata.transformer.class`: with ``hive4``, managed tables that are not transactional become external
    ones, and clients that name capabilities see what they may do. Hive 4's default is to translate.
    """

    translated_location_mode: Literal["force", "seqsuffix", "seqprefix", "prohibit"] = "force"
    """`metastore.metadata.transformer.location.mode`: when the default location of such a table is there already."""

    serdes_with_free_type_changes: tuple[str, ...] = SERDES_WITH_FREE_TYPE_CHANGES
    """`metastore.allow.incompatible.col.type.changes.serdes`: their tables keep their own schema history."""

    inherited_table_parameters: tuple[str, ...] = ()
    """`metastore.partition.inherit.table.properties`: names of the parameters that new partitions get from their table;
    ``*`` is all.
    """

    client_capability_check: bool = True
    """`metastore.client.capability.check`: refuse insert-only tables to clients that do not say that they know them."""

    storage_schema_reader: Literal["stored", "refuse"] = "stored"
    """`metastore.storage.schema.reader.impl`: the columns of tables whose serde keeps them elsewhere."""

    schema_file_limit_bytes: int = 1024 * 1024
    """How large a file may be that `avro.schema.url` names: each call of `get_fields` or `get_schema` reads it."""

    serdes_using_metastore_for_schema: tuple[str, ...] = SERDES_USING_METASTORE_FOR_SCHEMA
    """`metastore.serdes.using.metastore.for.schema`: tables of these keep their columns in the metastore."""
