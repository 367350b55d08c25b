"""Settings of Hive that affect answers."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from hms_cache.config.quantities import SizeBytes, Words
from hms_cache.config.setting import Section, hive_setting, metastore_keys, setting


class CatalogSettings(Section):
    """Rules that affect answers, with the same meaning as Hive's settings."""

    partition_request_limit: int = hive_setting(-1, "limit.partition.request", unit="partitions", ge=-1)
    """A request that would return more partitions than this is refused; -1: no limit."""
    filter_max_characters: int = setting(
        1_048_576,
        unit="characters",
        reason="The longest filters of Spark in practice (IN with 1,000 values on each of a few keys) have 100,000."
        " Parsing takes some 4 µs per token, so this limits one call to about a second of processor time. Each quoted"
        " text can contain 10,000 escapes.",
        ge=256,
        le=16_777_216,
    )
    """A filter of partitions or tables that is longer than this is refused."""
    filter_max_depth: int = setting(
        100,
        unit="levels",
        reason="A level takes some 4 of the interpreter's 1,000 frames; programs nest two or three levels. For a"
        " thousand values, Spark and Hudi nest as many ORs.",
        ge=4,
        le=150,
    )
    """A filter whose parentheses and NOTs are nested deeper than this is refused. A parenthesis of ORs among ORs does
    not count, nor does one of ANDs among ANDs."""
    filter_max_comparisons: int = setting(
        50_000_000,
        unit="comparisons",
        reason="A thousand ORs on a million partitions are 16 million. 50 million of LIKE take some 15 seconds of"
        " processor time.",
        ge=1_000,
    )
    """A filter or expression that compares more values than this is refused. For each of its parts, a 64th of the
    partitions is counted, or the distinct values of its key if they are compared one by one (LIKE, char)."""
    batch_retrieve_max: int = hive_setting(300, "batch.retrieve.max", unit="objects", ge=1)
    """Number of objects that clients are told to request at once."""
    batch_retrieve_table_partition_max: int = hive_setting(
        1000, "batch.retrieve.table.partition.max", unit="objects", ge=1
    )
    """Number of tables or partitions that clients are told to request at once."""
    disallow_incompatible_column_type_changes: bool = setting(
        True, site_keys=metastore_keys("disallow.incompatible.col.type.changes")
    )
    """Refuse an alter_table that changes a column to a type as which its stored values cannot be read."""
    serdes_with_free_type_changes: Words = setting(
        ("org.apache.hadoop.hive.kudu.KuduSerDe", "org.apache.iceberg.mr.hive.HiveIcebergSerDe"),
        reason="Hive's default: their tables keep their own schema history.",
        site_keys=metastore_keys("allow.incompatible.col.type.changes.serdes"),
    )
    """Serdes whose tables are exempt from this check."""
    acid_formats: Words = setting(
        ("org.apache.hadoop.hive.ql.io.orc.OrcInputFormat", "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"),
        reason="Hive asks the Java classes whether they implement AcidInputFormat and AcidOutputFormat, which cannot"
        " run here. Of Hive's own formats, only those of ORC do.",
    )
    """Input and output formats, by the names of their classes, of tables whose rows can be updated in transactions.
    Add both of a format of your own."""
    inherited_table_parameters: Words = setting((), site_keys=metastore_keys("partition.inherit.table.properties"))
    """Parameters that new partitions inherit from their table; *: all."""
    client_capability_check: bool = setting(True, site_keys=metastore_keys("client.capability.check"))
    """Refuse insert-only tables to clients that do not declare support for them."""
    storage_schema_reader: Literal["stored", "refuse"] = setting(
        "stored",
        reason="Hive's SerDeStorageSchemaReader uses the Java class of the serde, which cannot run here; its"
        " DefaultStorageSchemaReader refuses.",
        site_keys=("metastore.storage.schema.reader.impl",),
    )
    """Answers of get_fields and get_schema for tables whose serde manages the columns itself. stored: the columns of
    the Avro schema that avro.schema.literal or avro.schema.url gives; for other serdes, the columns stored in the
    metastore. refuse: an error."""
    schema_file_limit_bytes: SizeBytes = setting(
        1024 * 1024,
        reason="Each get_fields and get_schema of the table reads it. A schema of a thousand columns has some 100 KB.",
        ge=1024,
    )
    """Maximum size of a file that avro.schema.url names."""
    serdes_using_metastore_for_schema: Words = hive_setting(
        (
            "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
            "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
            "org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe",
            "org.apache.hadoop.hive.serde2.MetadataTypedColumnsetSerDe",
            "org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe",
            "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
            "org.apache.hadoop.hive.serde2.lazybinary.LazyBinarySerDe",
            "org.apache.hadoop.hive.serde2.OpenCSVSerde",
            "org.apache.iceberg.mr.hive.HiveIcebergSerDe",
        ),
        "serdes.using.metastore.for.schema",
        before="hive.",
    )
    """Serdes whose tables have their columns in the metastore."""
    partition_name_whitelist_pattern: str = setting("", site_keys=metastore_keys("partition.name.whitelist.pattern"))
    """Java regular expression that each partition value must match completely. Empty: any value. Back references,
    lookaround and possessive quantifiers are not supported, and connections cannot set another pattern."""
    users_in_admin_role: Words = setting((), site_keys=metastore_keys("users.in.admin.role", before="hive."))
    """Users who are given the role admin when a server starts. Without such a user, nobody can grant the first role."""
    special_characters_in_table_names: bool = setting(
        True, site_keys=metastore_keys("support.special.characters.tablename", before="hive.")
    )
    """Allow characters other than letters, digits and underscores in table names."""
    retain_column_statistics_on_column_removal: bool = setting(
        True, site_keys=metastore_keys("colstats.retain.on.column.removal")
    )
    """Keep the statistics of the remaining columns when a column is removed."""
    statistics_autogather: bool = setting(True, site_keys=metastore_keys("stats.autogather", before="hive."))
    """Store the number and size of files in the parameters of new tables and partitions."""

    metadata_translation: Literal["off", "access", "hive4"] = setting(
        "off",
        reason="Hive 4 translates by default (hive4); but managed tables of Spark and Trino, which send no"
        " capabilities, would become external.",
        site_keys=("metastore.metadata.transformer.class",),
    )
    """access: clients that send their capabilities are told what they can do with a table. Impala requires this, and
    refuses all tables otherwise. hive4: tables are translated as in Hive 4: in addition, managed tables that are not
    transactional become external."""
    translated_location_mode: Literal["force", "seqsuffix", "seqprefix", "prohibit"] = setting(
        "force", reason="Hive's default.", site_keys=("metastore.metadata.transformer.location.mode",)
    )
    """With translation, if the default location of a table that becomes external already exists: force uses it,
    seqsuffix and seqprefix add a number to the name, prohibit refuses the table."""

    statistics_sketches: bool = setting(False, site_keys=metastore_keys("stats.fetch.bitvector", before="hive."))
    """Return the sketches of column statistics, and use them to aggregate numbers of distinct values."""
    statistics_histograms: bool = setting(False, site_keys=metastore_keys("stats.fetch.kll", before="hive."))
    """Return the histograms of column statistics."""
    statistics_density_function: bool = setting(False, site_keys=metastore_keys("stats.ndv.densityfunction"))
    """Without sketches: compute aggregate numbers of distinct values from ranges and densities."""
    statistics_distinct_tuner: float = hive_setting(0.0, "stats.ndv.tuner", ge=0, le=1)
    """Without sketches: position of the aggregate number of distinct values between the largest one of a partition (0)
    and their sum (1)."""

    @field_validator("metadata_translation", mode="before")
    @classmethod
    def _transformer_class_or_mode(cls, value: object) -> object:
        """Converts the class that site files name; a blank means none."""
        if not isinstance(value, str):
            return value
        return {"MetastoreDefaultTransformer": "hive4", "": "off"}.get(value.strip().rpartition(".")[2], value)

    @field_validator("storage_schema_reader", mode="before")
    @classmethod
    def _reader_class_or_mode(cls, value: object) -> object:
        """Converts the class that site files name."""
        classes = {"SerDeStorageSchemaReader": "stored", "DefaultStorageSchemaReader": "refuse"}
        return classes.get(value.rpartition(".")[2], value) if isinstance(value, str) else value

    @field_validator("partition_name_whitelist_pattern")
    @classmethod
    def _is_a_pattern(cls, pattern: str) -> str:
        from hms_cache.patterns.java_regex import JavaRegexError, java_regex  # bounded by the section limits

        try:
            java_regex(pattern)
        except JavaRegexError as error:
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return pattern
