"""Which thread pool runs each method of the protocol.

Each pool has threads and a queue of its own, so that calls of one kind do not wait behind those of another:

* *transactions* are short, and clients' locks and transactions expire when their heartbeats wait. Their threads take
  database connections that nobody else can (`Database.use_reserved_connections`);
* *reads* of the catalog;
* *writes* of the catalog that concern a few objects and move or delete no data;
* *heavy*: what deletes or moves files, writes many objects in one call, or lists whole catalogs.

Calls that are answered from memory on the event loop (`Kind.LOCAL`) have no pool. Exceptions are those that
another system may have to authorize: where it is asked, they wait for it among the reads.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping
from types import MappingProxyType

from hms_cache.server.thread_pool import ThreadPool


class PoolName(enum.Enum):
    """The thread pools. Calls of one do not wait for those of another."""

    TRANSACTIONS = "transactions"
    READS = "reads"
    WRITES = "writes"
    HEAVY = "heavy"


_METHODS = {
    PoolName.TRANSACTIONS: """
        abort_txn abort_txns add_dynamic_partitions add_write_ids_to_min_history allocate_table_write_ids
        check_lock commit_txn get_latest_txnid_in_conflict get_lock_materialization_rebuild
        get_lock_materialization_rebuild_req get_max_allocated_table_write_id get_open_txns get_open_txns_info
        get_open_txns_req get_valid_write_ids heartbeat heartbeat_lock_materialization_rebuild
        heartbeat_lock_materialization_rebuild_req heartbeat_txn_range lock open_txns repl_tbl_writeid_state
        seed_txn_id seed_write_id unlock update_transaction_statistics
""",
    PoolName.READS: """
        cache_file_metadata clear_file_metadata getCounter getCounters get_file_metadata get_file_metadata_by_expr
        get_index_by_name get_index_names get_indexes get_type_all put_file_metadata
        fetch_partition_names_req find_columns_with_stats find_package get_active_resource_plan
        get_aggr_stats_for get_all_databases get_all_resource_plans get_all_table_constraints get_all_tables
        get_all_token_identifiers get_catalog get_catalogs get_check_constraints get_current_notificationEventId
        get_database get_database_req get_databases get_databases_req get_dataconnector_req get_dataconnectors
        get_default_constraints get_fields get_fields_req get_fields_with_environment_context get_foreign_keys
        get_function get_functions get_functions_req get_ischema get_latest_committed_compaction_info
        get_master_keys get_materialization_invalidation_info get_materialized_views_for_rewriting
        get_metastore_db_uuid get_next_notification get_not_null_constraints get_notification_events_count
        get_num_partitions_by_filter get_part_specs_by_filter get_partition get_partition_by_name
        get_partition_column_statistics get_partition_names get_partition_names_ps get_partition_names_ps_req
        get_partition_names_req get_partition_req get_partition_values get_partition_with_auth get_partitions
        get_partitions_by_expr get_partitions_by_filter get_partitions_by_filter_req get_partitions_by_names
        get_partitions_by_names_req get_partitions_ps get_partitions_ps_with_auth
        get_partitions_ps_with_auth_req get_partitions_pspec get_partitions_req get_partitions_spec_by_expr
        get_partitions_statistics_req get_partitions_with_auth get_partitions_with_specs get_primary_keys
        get_principals_in_role get_privilege_set get_properties get_replayed_txns_for_policy get_resource_plan
        get_role_grants_for_principal get_role_names get_runtime_stats get_scheduled_query get_schema
        get_schema_all_versions get_schema_latest_version get_schema_req get_schema_version
        get_schema_with_environment_context get_serde get_stored_procedure get_table get_table_column_statistics
        get_table_names_by_filter get_table_objects_by_name get_table_objects_by_name_req get_table_req
        get_table_statistics_req get_tables get_tables_by_type get_tables_ext get_token
        get_triggers_for_resourceplan get_type get_unique_constraints isPartitionMarkedForEvent list_roles
        partition_name_has_valid_characters partition_name_to_spec partition_name_to_vals translate_table_dryrun
        validate_resource_plan
""",
    PoolName.WRITES: """
        abort_Compactions add_check_constraint add_default_constraint add_foreign_key add_master_key
        add_not_null_constraint add_package add_partition add_partition_with_environment_context add_primary_key
        add_replication_metrics add_runtime_stats add_schema_version add_serde add_token add_unique_constraint
        add_write_notification_log alter_catalog alter_database alter_database_req alter_dataconnector
        alter_dataconnector_req alter_function alter_ischema alter_partition
        alter_partition_with_environment_context alter_resource_plan alter_wm_pool alter_wm_trigger
        append_partition append_partition_by_name append_partition_by_name_with_environment_context
        append_partition_req append_partition_with_environment_context cancel_delegation_token compact compact2
        create_catalog
        create_database create_database_req create_dataconnector create_dataconnector_req create_function
        create_ischema create_or_drop_wm_trigger_to_pool_mapping create_or_update_wm_mapping
        create_resource_plan create_role create_stored_procedure create_table create_table_req
        create_table_with_constraints create_table_with_environment_context create_type create_wm_pool
        create_wm_trigger delete_column_statistics_req delete_partition_column_statistics
        delete_table_column_statistics drop_constraint drop_dataconnector drop_dataconnector_req drop_function
        drop_ischema drop_package drop_resource_plan drop_role drop_schema_version drop_stored_procedure
        drop_type drop_wm_mapping drop_wm_pool drop_wm_trigger find_next_compact find_next_compact2
        fire_listener_event get_delegation_token grant_privileges grant_revoke_privileges grant_revoke_role grant_role
        map_schema_version_to_serde markPartitionForEvent mark_cleaned mark_compacted mark_failed mark_refused
        remove_compaction_metrics_data remove_master_key remove_token renew_delegation_token revoke_privileges
        revoke_role
        scheduled_query_maintenance scheduled_query_poll scheduled_query_progress set_hadoop_jobid
        set_properties set_schema_version_state submit_for_cleanup update_compaction_metrics_data
        update_compactor_state update_creation_metadata update_master_key update_table_column_statistics
        update_table_column_statistics_req update_table_params
""",
    PoolName.HEAVY: """
        add_partitions add_partitions_pspec add_partitions_req add_write_notification_log_in_batch
        alter_partitions alter_partitions_req alter_partitions_with_environment_context alter_table
        alter_table_req alter_table_with_cascade alter_table_with_environment_context cm_recycle drop_catalog
        drop_database drop_database_req drop_partition drop_partition_by_name
        drop_partition_by_name_with_environment_context drop_partition_req
        drop_partition_with_environment_context drop_partitions_req drop_table drop_table_req
        drop_table_with_environment_context exchange_partition exchange_partitions get_all_functions
        get_all_materialized_view_objects_for_rewriting get_all_packages get_all_stored_procedures
        get_all_write_event_info get_replication_metrics get_schemas_by_cols get_table_meta list_privileges
        refresh_privileges rename_partition rename_partition_req set_aggr_stats_for show_compact show_locks
        truncate_table truncate_table_req update_partition_column_statistics
        update_partition_column_statistics_req
""",
}

METHOD_POOLS: Mapping[str, PoolName] = MappingProxyType(
    {method: pool for pool, methods in _METHODS.items() for method in methods.split()}
)
"""The pool of each method that may need the database, or the decision of another system."""


SCHEDULED_POOLS: frozenset[PoolName] = frozenset({PoolName.READS, PoolName.HEAVY})
"""Pools whose threads compute in turns (`hms_cache.computing`), so that the other pools have to wait for only one of
their threads. Writes do not compute in turns: they hold locks in the database."""


class ThreadPools:
    """The thread pools of a server."""

    def __init__(self, pools: Mapping[PoolName, ThreadPool]) -> None:
        self.by_name = dict(pools)

    def of(self, method: str) -> ThreadPool:
        """The pool that runs a method."""
        return self.by_name[METHOD_POOLS[method]]

    def start(self) -> None:
        """Starts all threads."""
        for pool in self.by_name.values():
            pool.start()

    def stop(self, timeout_s: float) -> None:
        """Finishes queued work. Waits for all threads together, at most `timeout_s`."""
        end_s = time.monotonic() + timeout_s
        for pool in self.by_name.values():
            pool.close()
        for pool in self.by_name.values():
            pool.join(max(0.0, end_s - time.monotonic()))
