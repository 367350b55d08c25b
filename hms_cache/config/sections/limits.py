"""Limits on parts of requests."""

from __future__ import annotations

from hms_cache.config.quantities import SizeBytes
from hms_cache.config.setting import Section, setting


class LimitsSettings(Section):
    """Limits on parts of requests that cost more than their size; refusals: hms_cache_inputs_refused_total."""

    name_pattern_alternatives: int = setting(
        100,
        unit="alternatives",
        reason="Each is matched with each name: 100 with 100,000 names take some five seconds of processor time.",
        ge=1,
        le=100_000,
    )
    """Maximum number of alternatives with wildcards in one name pattern. Alternatives without wildcards are not
    counted."""
    name_pattern_characters: int = setting(
        4096,
        unit="characters",
        reason="Names have at most 256 characters. Preparing a pattern of a megabyte takes a second.",
        ge=256,
        le=1_048_576,
    )
    """Maximum length of an alternative with wildcards in a name pattern, and of a pattern for the parameters of
    partitions (includeParamKeyPattern)."""
    regex_characters: int = setting(
        1_000, unit="characters", reason="Ordinary expressions have a few dozen.", ge=100, le=100_000
    )
    """Maximum length of a regular expression, from clients (=~ in selections of properties) and in settings."""
    regex_states: int = setting(
        2_000, unit="states", reason="(a{99}){99} has 9,801; ordinary expressions have a few dozen.", ge=100, le=100_000
    )
    """Maximum number of states of a regular expression's automaton. Counted repetitions are expanded."""
    regex_steps: int = setting(
        5_000_000,
        unit="steps",
        reason="A second or two of processor time: the maximum number of states at each of 2,500 characters.",
        ge=10_000,
    )
    """Maximum number of steps of one match of a regular expression, not counting cached steps."""
    expression_bytes: SizeBytes = setting(
        1024 * 1024,
        reason="An IN with 10,000 dates has 100 kB. Decoding takes some 1 µs per byte, a second for this size.",
        ge=1024,
        le=64 * 1024 * 1024,
    )
    """Maximum size of a serialized partition expression, in which a text that is used several times counts each time.
    For a larger one, the server returns all partitions, and the client evaluates it itself."""
    expression_memory_bytes: SizeBytes = setting(
        64 * 1024 * 1024,
        reason="An IN with 10,000 dates takes 12 MB. A byte can expand to 10 KiB: 24 KiB filled 274 MB.",
        ge=1024 * 1024,
    )
    """Maximum memory for the objects of one serialized expression. Above it, the server behaves as for
    expression_bytes."""
    expression_nodes: int = setting(
        100_000,
        unit="nodes",
        reason="Objects can be shared, so a few bytes could describe a tree of any size.",
        ge=100,
        le=10_000_000,
    )
    """Maximum number of nodes in the tree of a serialized expression. Above it, the server behaves as for
    expression_bytes."""
    table_filter_parameters: int = setting(
        1_000,
        unit="parameters",
        reason="They become a list in a statement; SQLite allows 32,766. Programs name one or two.",
        ge=1,
        le=10_000,
    )
    """Maximum number of parameters that one table filter can name."""
    listed_ids: int = setting(
        1_000_000,
        unit="ids",
        reason="Ten times the number of open transactions that Hive allows; 40 MB of memory.",
        ge=1_000,
        le=10_000_000,
    )
    """Maximum number of transactions or write ids in one list, with its ranges expanded."""
    properties_expression_characters: int = setting(
        10_000,
        unit="characters",
        reason="People and programs write a few dozen; each takes microseconds per map.",
        ge=100,
        le=1_048_576,
    )
    """Maximum length of an expression that selects properties (get_properties)."""
    properties_text_characters: int = setting(
        1_000_000, unit="characters", reason="An expression can repeat a long property often.", ge=1_000, le=100_000_000
    )
    """Maximum length of a text that such an expression composes."""
    heartbeat_range_txns: int = setting(
        1_000_000,
        unit="transactions",
        reason="Hive's streaming clients name the batch that they opened, at most 1,000. The answer lists each"
        " transaction that is not open.",
        ge=1_000,
        le=10_000_000,
    )
    """Maximum number of transactions in one heartbeat_txn_range."""
    lock_components: int = setting(
        20_000,
        unit="components",
        reason="Hive requests one for each partition that a query reads. This many take about a second, during which"
        " no other lock is granted.",
        ge=1_000,
        le=1_000_000,
    )
    """Maximum number of components in one lock request."""
    request_transactions: int = setting(
        20_000,
        unit="transactions",
        reason="They become parameters of one statement; SQLite allows 32,766. Hive opens 1,000 at once.",
        ge=1_000,
        le=30_000,
    )
    """Maximum number of transactions that one request can name (abort_txns, allocate_table_write_ids, open_txns for
    replication), and of compactions (abort_Compactions)."""
    request_tables: int = setting(
        10_000,
        unit="tables",
        reason="Queries name a few. Every 2,000 take three statements. PostgreSQL allows 65,535 in one.",
        ge=100,
        le=1_000_000,
    )
    """Maximum number of tables that one request about transactions or events can name (get_valid_write_ids, commit_txn,
    get_materialization_invalidation_info, get_next_notification), of types of events, and of tables that a materialized
    view is made from."""
    request_grants: int = setting(
        100_000,
        unit="privileges",
        reason="HiveServer2 with Ranger sends the privileges of all users on each column of a table in one request."
        " This many take three to ten seconds, in one transaction, with the table locked.",
        ge=100,
        le=1_000_000,
    )
    """Maximum number of privileges that one request can grant or revoke."""
    request_grant_objects: int = setting(
        1_000,
        unit="objects",
        reason="Each takes two statements in one transaction, so a thousand take a second. Clients name one.",
        ge=100,
        le=100_000,
    )
    """Maximum number of databases, tables, partitions and data connectors on which one request can grant or revoke
    privileges."""
    request_metrics: int = setting(
        1_000,
        unit="metrics",
        reason="Each takes two statements, in one transaction. Hive sends those of a few policies.",
        ge=100,
        le=100_000,
    )
    """Maximum number of replication metrics in one request (add_replication_metrics)."""
    request_event_characters: int = setting(
        512 * 1024 * 1024,
        unit="characters",
        reason="The event of a changed partition contains its table: for 300 partitions of a table with 5,000 columns,"
        " a request of 80 kB causes 430 MB of events, which are held in memory until the commit.",
        ge=1024 * 1024,
        le=4 * 1024**3,
    )
    """Maximum number of characters of the events that one request writes to the notification log, if it writes several:
    as they are stored, compressed if events.message_format says so."""
    listed_rows: int = setting(
        200_000,
        unit="rows",
        reason="Each is some 1.5 KB of objects, and 200 bytes of the reply. Hive has no limit.",
        ge=1_000,
        le=10_000_000,
    )
    """Maximum number of rows that a list without a limit of its own reads from the database: privileges, roles and
    their members, delegation tokens, locks, compactions, data connectors, stored procedures and packages, versions of
    schemas, maps of properties, runtime statistics and replication metrics. A longer list is refused, not truncated.
    Request the rows of one object or principal instead."""
    seeded_id: int = setting(
        10**15,
        reason="Ids end at 9.2e18, and skipped ids are never used again, so one request could use them up. At a"
        " thousand transactions per second, this limit is reached after 30,000 years.",
        ge=10**9,
        le=4 * 10**18,
    )
    """Largest transaction id and write id to which clients can raise the sequences (seed_txn_id, seed_write_id, and
    replication)."""
    avro_type_characters: int = setting(
        4_000_000,
        unit="characters",
        reason="The types of a thousand nested columns have some 100,000. A schema can define a type once and use it"
        " often, so 3 kB could expand to any length.",
        ge=10_000,
        le=100_000_000,
    )
    """Maximum number of characters of the types of all fields of one Avro schema, expanded as in Hive (get_fields,
    get_schema)."""
    sasl_message_bytes: SizeBytes = setting(
        128 * 1024, reason="Tickets of Windows accounts contain groups: up to 64 KiB.", ge=4096, le=16 * 1024 * 1024
    )
    """Maximum size of a message of a client that authenticates with SASL."""
    bearer_token_bytes: SizeBytes = setting(
        16 * 1024, reason="Tokens of some issuers have 8 kB and more.", ge=1024, le=1024 * 1024
    )
    """Maximum size of a bearer token, in addition to server.http_max_header_bytes, which limits the header that
    contains it."""
    session_variables: int = setting(
        64, unit="variables", reason="There are 7 variables, and no client is known to set an option.", ge=8, le=10_000
    )
    """Maximum number of options and variables that one connection can set (setOption, setMetaConf)."""
    session_name_characters: int = setting(
        256,
        unit="characters",
        reason="Names in Active Directory have at most 256, and Hive's columns for owners 128.",
        ge=32,
        le=4096,
    )
    """Maximum length of the name of a user or group (set_ugi)."""
