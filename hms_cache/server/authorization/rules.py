"""The rights that each method of the protocol needs, in one table. A method that is not in it is refused.

The actions are those of `authorization.decisions`. The model is what Hive's own authorizers require
(`HiveOperationType`, `AuthorizationPreEventListener`): adding and dropping partitions needs the right to write data, as
INSERT and DELETE do; renaming needs the right on both names.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from hms_cache.authorization.decisions import Action


class RuleKind(enum.Enum):
    """How a method is decided upon."""

    OPEN = "open"
    """Part of the conversation: concerns no object and is allowed to everyone."""
    MEMBER = "member"
    """Concerns no named object; allowed to everyone who has been granted anything."""
    OBJECTS = "objects"
    """The right on every object that the request names, or on the whole metastore if it names none."""
    SHOWN = "shown"
    """A database or catalog that the principal may know of."""
    FILTERED = "filtered"
    """Allowed; the answer is reduced to what may be read."""
    METASTORE = "metastore"
    """Needs a right on the whole metastore, whatever the request names."""
    OWN_GRANTS = "own_grants"
    """About the grants of one principal: its own, or anyone's with the right to manage the metastore."""
    TRANSACTION = "transaction"
    """As MEMBER; requests that set replication fields need the right of a service."""
    EVENTS = "events"
    """Allowed; services see all events, other users those about objects that they may see."""
    GRANTS = "grants"
    """Each grant that the request makes or revokes, by whether the user may change it."""
    LOCK = "lock"
    """Each component, by the type of its lock."""


class Rule(NamedTuple):
    """What a method needs."""

    kind: RuleKind
    actions: tuple[Action, ...] = ()
    """One of them, on each object."""


_READ, _CREATE, _ALTER = (Action.READ,), (Action.CREATE,), (Action.ALTER,)
_DROP, _WRITE, _CHANGE = (Action.DROP,), (Action.WRITE,), (Action.ALTER, Action.WRITE)
_ROWS, _DELETE = (Action.WRITE, Action.UPDATE, Action.DELETE), (Action.DELETE,)
_MANAGE, _SERVICE, _EITHER = (Action.MANAGE,), (Action.SERVICE,), (Action.MANAGE, Action.SERVICE)
_OF_CREATION, _OF_CHANGE = Rule(RuleKind.OBJECTS, _CREATE), Rule(RuleKind.OBJECTS, _ALTER)
_OF_REMOVAL = Rule(RuleKind.OBJECTS, _DROP)

_METHODS: tuple[tuple[Rule, str], ...] = (
    (
        Rule(RuleKind.OPEN),
        """
        aliveSince cancel_delegation_token flushCache getCpuProfile getMetaConf getName getOption getOptions
        getStatus getStatusDetails
        getVersion get_delegation_token partition_name_has_valid_characters partition_name_to_spec
        partition_name_to_vals reinitialize
        renew_delegation_token setMetaConf setOption set_ugi shutdown get_config_value
""",
    ),
    (
        Rule(RuleKind.MEMBER),
        """
        cache_file_metadata check_lock clear_file_metadata get_current_notificationEventId get_file_metadata
        get_file_metadata_by_expr get_index_by_name get_index_names get_indexes get_latest_txnid_in_conflict
        get_metastore_db_uuid get_open_txns get_open_txns_req get_type_all heartbeat heartbeat_txn_range
        put_file_metadata unlock
""",
    ),
    (Rule(RuleKind.TRANSACTION), "abort_txn commit_txn open_txns"),
    (Rule(RuleKind.LOCK), "lock"),
    (Rule(RuleKind.EVENTS, _SERVICE), "get_next_notification"),
    (
        Rule(RuleKind.OBJECTS, _READ),
        """
        fetch_partition_names_req find_package get_aggr_stats_for get_all_packages get_all_stored_procedures
        get_all_table_constraints get_check_constraints get_default_constraints get_fields get_fields_req
        get_fields_with_environment_context get_foreign_keys get_ischema get_latest_committed_compaction_info
        get_materialization_invalidation_info get_max_allocated_table_write_id get_not_null_constraints
        get_num_partitions_by_filter get_part_specs_by_filter get_partition get_partition_by_name
        get_partition_column_statistics get_partition_names get_partition_names_ps get_partition_names_ps_req
        get_partition_names_req get_partition_req get_partition_values get_partition_with_auth get_partitions
        get_partitions_by_expr get_partitions_by_filter get_partitions_by_filter_req get_partitions_by_names
        get_partitions_by_names_req get_partitions_ps get_partitions_ps_with_auth get_partitions_ps_with_auth_req
        get_partitions_pspec get_partitions_req get_partitions_spec_by_expr get_partitions_statistics_req
        get_partitions_with_auth get_partitions_with_specs get_primary_keys get_schema get_schema_all_versions
        get_schema_latest_version get_schema_req get_schema_version get_schema_with_environment_context get_serde
        get_stored_procedure get_table get_table_column_statistics get_table_req get_table_statistics_req
        get_unique_constraints get_valid_write_ids isPartitionMarkedForEvent
""",
    ),
    (Rule(RuleKind.SHOWN), "get_catalog get_database get_database_req get_function"),
    (
        Rule(RuleKind.FILTERED, _READ),
        """
        get_all_databases get_all_functions get_all_materialized_view_objects_for_rewriting get_all_tables get_catalogs
        get_databases get_databases_req get_functions get_functions_req get_materialized_views_for_rewriting
        get_table_meta get_table_names_by_filter get_table_objects_by_name get_table_objects_by_name_req get_tables
        get_tables_by_type get_tables_ext
""",
    ),
    (
        _OF_CREATION,
        """
        add_package add_schema_version add_serde create_database create_database_req create_function create_ischema
        create_stored_procedure create_table create_table_req create_table_with_constraints
        create_table_with_environment_context translate_table_dryrun
""",
    ),
    (
        _OF_CHANGE,
        """
        abort_Compactions add_check_constraint add_default_constraint add_foreign_key add_not_null_constraint
        add_primary_key add_unique_constraint alter_database alter_database_req alter_function alter_ischema alter_table
        alter_table_req alter_table_with_cascade alter_table_with_environment_context compact compact2 drop_constraint
        map_schema_version_to_serde set_schema_version_state update_creation_metadata update_table_params
""",
    ),
    (
        Rule(RuleKind.OBJECTS, _CHANGE),
        """
        alter_partition alter_partition_with_environment_context alter_partitions alter_partitions_req
        alter_partitions_with_environment_context rename_partition rename_partition_req
""",
    ),
    (
        Rule(RuleKind.OBJECTS, (Action.ALTER, *_ROWS)),
        """
        delete_column_statistics_req delete_partition_column_statistics delete_table_column_statistics
        set_aggr_stats_for update_partition_column_statistics update_partition_column_statistics_req
        update_table_column_statistics update_table_column_statistics_req
""",
    ),
    (
        Rule(RuleKind.OBJECTS, _ROWS),
        """
        add_dynamic_partitions add_write_notification_log add_write_notification_log_in_batch allocate_table_write_ids
""",
    ),
    (
        Rule(RuleKind.OBJECTS, _DELETE),
        """
        drop_partition drop_partition_by_name drop_partition_by_name_with_environment_context drop_partition_req
        drop_partition_with_environment_context drop_partitions_req truncate_table truncate_table_req
""",
    ),
    (
        Rule(RuleKind.OBJECTS, _WRITE),
        """
        add_partition add_partition_with_environment_context add_partitions add_partitions_pspec
        add_partitions_req
        append_partition append_partition_by_name append_partition_by_name_with_environment_context
        append_partition_req append_partition_with_environment_context exchange_partition exchange_partitions
        get_lock_materialization_rebuild get_lock_materialization_rebuild_req heartbeat_lock_materialization_rebuild
        heartbeat_lock_materialization_rebuild_req markPartitionForEvent
""",
    ),
    (
        _OF_REMOVAL,
        """
        drop_database drop_database_req drop_function drop_ischema drop_package drop_schema_version
        drop_stored_procedure drop_table drop_table_req drop_table_with_environment_context
""",
    ),
    (
        Rule(RuleKind.OWN_GRANTS, _MANAGE),
        "get_privilege_set get_role_grants_for_principal list_privileges list_roles",
    ),
    (Rule(RuleKind.GRANTS, _MANAGE), "grant_privileges grant_revoke_privileges revoke_privileges"),
    (
        Rule(RuleKind.METASTORE, _MANAGE),
        """
        alter_catalog alter_dataconnector alter_dataconnector_req alter_resource_plan alter_wm_pool alter_wm_trigger
        create_catalog create_dataconnector create_dataconnector_req create_or_drop_wm_trigger_to_pool_mapping
        create_or_update_wm_mapping create_resource_plan create_role create_type create_wm_pool create_wm_trigger
        drop_catalog drop_dataconnector drop_dataconnector_req drop_resource_plan drop_role drop_type drop_wm_mapping
        drop_wm_pool drop_wm_trigger get_dataconnector_req get_dataconnectors get_principals_in_role get_properties
        get_role_names get_schemas_by_cols get_type grant_revoke_role
        grant_role refresh_privileges revoke_role set_properties
""",
    ),
    (
        Rule(RuleKind.METASTORE, _EITHER),
        """
        abort_txns getCounter getCounters get_active_resource_plan get_all_resource_plans get_open_txns_info
        get_resource_plan get_runtime_stats get_scheduled_query get_triggers_for_resourceplan
        scheduled_query_maintenance show_compact show_locks validate_resource_plan
""",
    ),
    (
        Rule(RuleKind.METASTORE, _SERVICE),
        """
        add_master_key add_replication_metrics add_runtime_stats add_token add_write_ids_to_min_history
        cm_recycle find_columns_with_stats find_next_compact find_next_compact2
        fire_listener_event get_all_token_identifiers get_all_write_event_info get_master_keys
        get_notification_events_count
        get_replayed_txns_for_policy get_replication_metrics get_token mark_cleaned mark_compacted mark_failed
        mark_refused remove_compaction_metrics_data remove_master_key remove_token
        repl_tbl_writeid_state scheduled_query_poll scheduled_query_progress seed_txn_id seed_write_id set_hadoop_jobid
        submit_for_cleanup update_compaction_metrics_data update_compactor_state update_master_key
        update_transaction_statistics
""",
    ),
)

RULES: Mapping[str, Rule] = MappingProxyType({name: rule for rule, names in _METHODS for name in names.split()})
"""The rule of each method of the protocol."""

_WITHOUT_CATALOGS = """
    add_dynamic_partitions allocate_table_write_ids compact compact2 get_latest_committed_compaction_info
    get_lock_materialization_rebuild get_lock_materialization_rebuild_req get_materialization_invalidation_info
    get_max_allocated_table_write_id get_valid_write_ids heartbeat_lock_materialization_rebuild
    heartbeat_lock_materialization_rebuild_req
"""
WITHOUT_CATALOGS = frozenset(_WITHOUT_CATALOGS.split())
"""Transactions, write ids and compactions are stored by database and table. The catalog in a request is ignored, and
tables of one name in two catalogs share them. So the right on the table in the default catalog is needed, too."""

REPLACES = frozenset({"add_package", "create_stored_procedure"})
"""An object that exists under this name becomes what the request says, and other users run its code. So this needs the
right to alter, too."""

CHANGES_GRANTS = frozenset(
    {
        *(name for name, rule in RULES.items() if rule in (_OF_CREATION, _OF_CHANGE, _OF_REMOVAL)),
        *("create_role", "drop_role", "grant_role", "revoke_role", "grant_revoke_role", "grant_privileges"),
        *("revoke_privileges", "grant_revoke_privileges", "refresh_privileges"),
    }
)
"""Methods that change grants or owners: after one of them, the next call gets new decisions."""
