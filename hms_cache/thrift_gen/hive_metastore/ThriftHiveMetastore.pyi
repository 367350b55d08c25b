# Generated from thrift_idl by tools/generate_thrift.py; do not edit.

from typing import Any

from hms_cache.thrift_gen.base import TBase
from hms_cache.thrift_gen.fb303 import FacebookService
from .ttypes import *

class Iface(FacebookService.Iface): ...

class Client(FacebookService.Client, Iface):
    def create_catalog(self, catalog: CreateCatalogRequest | None) -> None: ...
    def alter_catalog(self, rqst: AlterCatalogRequest | None) -> None: ...
    def get_catalog(self, catName: GetCatalogRequest | None) -> GetCatalogResponse: ...
    def get_catalogs(self) -> GetCatalogsResponse: ...
    def drop_catalog(self, catName: DropCatalogRequest | None) -> None: ...
    def create_database(self, database: Database | None) -> None: ...
    def create_database_req(self, createDatabaseRequest: CreateDatabaseRequest | None) -> None: ...
    def get_database(self, name: str | None) -> Database: ...
    def get_database_req(self, request: GetDatabaseRequest | None) -> Database: ...
    def drop_database(self, name: str | None, deleteData: bool | None, cascade: bool | None) -> None: ...
    def drop_database_req(self, req: DropDatabaseRequest | None) -> AsyncOperationResp: ...
    def get_databases(self, pattern: str | None) -> list[str]: ...
    def get_all_databases(self) -> list[str]: ...
    def get_databases_req(self, request: GetDatabaseObjectsRequest | None) -> GetDatabaseObjectsResponse: ...
    def alter_database(self, dbname: str | None, db: Database | None) -> None: ...
    def alter_database_req(self, alterDbReq: AlterDatabaseRequest | None) -> None: ...
    def get_fields(self, db_name: str | None, table_name: str | None) -> list[FieldSchema]: ...
    def get_fields_with_environment_context(self, db_name: str | None, table_name: str | None, environment_context: EnvironmentContext | None) -> list[FieldSchema]: ...
    def get_fields_req(self, req: GetFieldsRequest | None) -> GetFieldsResponse: ...
    def get_schema(self, db_name: str | None, table_name: str | None) -> list[FieldSchema]: ...
    def get_schema_with_environment_context(self, db_name: str | None, table_name: str | None, environment_context: EnvironmentContext | None) -> list[FieldSchema]: ...
    def get_schema_req(self, req: GetSchemaRequest | None) -> GetSchemaResponse: ...
    def create_table(self, tbl: Table | None) -> None: ...
    def create_table_with_environment_context(self, tbl: Table | None, environment_context: EnvironmentContext | None) -> None: ...
    def create_table_with_constraints(self, tbl: Table | None, primaryKeys: list[SQLPrimaryKey] | None, foreignKeys: list[SQLForeignKey] | None, uniqueConstraints: list[SQLUniqueConstraint] | None, notNullConstraints: list[SQLNotNullConstraint] | None, defaultConstraints: list[SQLDefaultConstraint] | None, checkConstraints: list[SQLCheckConstraint] | None) -> None: ...
    def create_table_req(self, request: CreateTableRequest | None) -> None: ...
    def translate_table_dryrun(self, request: CreateTableRequest | None) -> Table: ...
    def drop_table(self, dbname: str | None, name: str | None, deleteData: bool | None) -> None: ...
    def drop_table_with_environment_context(self, dbname: str | None, name: str | None, deleteData: bool | None, environment_context: EnvironmentContext | None) -> None: ...
    def drop_table_req(self, dropTableReq: DropTableRequest | None) -> AsyncOperationResp: ...
    def truncate_table(self, dbName: str | None, tableName: str | None, partNames: list[str] | None) -> None: ...
    def truncate_table_req(self, req: TruncateTableRequest | None) -> TruncateTableResponse: ...
    def get_tables(self, db_name: str | None, pattern: str | None) -> list[str]: ...
    def get_tables_by_type(self, db_name: str | None, pattern: str | None, tableType: str | None) -> list[str]: ...
    def get_all_materialized_view_objects_for_rewriting(self) -> list[Table]: ...
    def get_materialized_views_for_rewriting(self, db_name: str | None) -> list[str]: ...
    def get_table_meta(self, db_patterns: str | None, tbl_patterns: str | None, tbl_types: list[str] | None) -> list[TableMeta]: ...
    def get_all_tables(self, db_name: str | None) -> list[str]: ...
    def get_tables_ext(self, req: GetTablesExtRequest | None) -> list[ExtendedTableInfo]: ...
    def get_table_req(self, req: GetTableRequest | None) -> GetTableResult: ...
    def get_table_objects_by_name_req(self, req: GetTablesRequest | None) -> GetTablesResult: ...
    def get_materialization_invalidation_info(self, creation_metadata: CreationMetadata | None, validTxnList: str | None) -> Materialization: ...
    def update_creation_metadata(self, catName: str | None, dbname: str | None, tbl_name: str | None, creation_metadata: CreationMetadata | None) -> None: ...
    def get_table_names_by_filter(self, dbname: str | None, filter: str | None, max_tables: int | None) -> list[str]: ...
    def alter_table(self, dbname: str | None, tbl_name: str | None, new_tbl: Table | None) -> None: ...
    def alter_table_with_environment_context(self, dbname: str | None, tbl_name: str | None, new_tbl: Table | None, environment_context: EnvironmentContext | None) -> None: ...
    def alter_table_with_cascade(self, dbname: str | None, tbl_name: str | None, new_tbl: Table | None, cascade: bool | None) -> None: ...
    def alter_table_req(self, req: AlterTableRequest | None) -> AlterTableResponse: ...
    def update_table_params(self, updates: list[TableParamsUpdate] | None) -> None: ...
    def get_table(self, dbname: str | None, tbl_name: str | None) -> Table: ...
    def get_table_objects_by_name(self, dbname: str | None, tbl_names: list[str] | None) -> list[Table]: ...
    def add_partition(self, new_part: Partition | None) -> Partition: ...
    def add_partition_with_environment_context(self, new_part: Partition | None, environment_context: EnvironmentContext | None) -> Partition: ...
    def add_partitions(self, new_parts: list[Partition] | None) -> int: ...
    def add_partitions_pspec(self, new_parts: list[PartitionSpec] | None) -> int: ...
    def append_partition(self, db_name: str | None, tbl_name: str | None, part_vals: list[str] | None) -> Partition: ...
    def add_partitions_req(self, request: AddPartitionsRequest | None) -> AddPartitionsResult: ...
    def append_partition_with_environment_context(self, db_name: str | None, tbl_name: str | None, part_vals: list[str] | None, environment_context: EnvironmentContext | None) -> Partition: ...
    def append_partition_req(self, appendPartitionsReq: AppendPartitionsRequest | None) -> Partition: ...
    def append_partition_by_name(self, db_name: str | None, tbl_name: str | None, part_name: str | None) -> Partition: ...
    def append_partition_by_name_with_environment_context(self, db_name: str | None, tbl_name: str | None, part_name: str | None, environment_context: EnvironmentContext | None) -> Partition: ...
    def drop_partition(self, db_name: str | None, tbl_name: str | None, part_vals: list[str] | None, deleteData: bool | None) -> bool: ...
    def drop_partition_with_environment_context(self, db_name: str | None, tbl_name: str | None, part_vals: list[str] | None, deleteData: bool | None, environment_context: EnvironmentContext | None) -> bool: ...
    def drop_partition_req(self, dropPartitionReq: DropPartitionRequest | None) -> bool: ...
    def drop_partition_by_name(self, db_name: str | None, tbl_name: str | None, part_name: str | None, deleteData: bool | None) -> bool: ...
    def drop_partition_by_name_with_environment_context(self, db_name: str | None, tbl_name: str | None, part_name: str | None, deleteData: bool | None, environment_context: EnvironmentContext | None) -> bool: ...
    def drop_partitions_req(self, req: DropPartitionsRequest | None) -> DropPartitionsResult: ...
    def get_partition(self, db_name: str | None, tbl_name: str | None, part_vals: list[str] | None) -> Partition: ...
    def get_partition_req(self, req: GetPartitionRequest | None) -> GetPartitionResponse: ...
    def exchange_partition(self, partitionSpecs: dict[str, str] | None, source_db: str | None, source_table_name: str | None, dest_db: str | None, dest_table_name: str | None) -> Partition: ...
    def exchange_partitions(self, partitionSpecs: dict[str, str] | None, source_db: str | None, source_table_name: str | None, dest_db: str | None, dest_table_name: str | None) -> list[Partition]: ...
    def get_partition_with_auth(self, db_name: str | None, tbl_name: str | None, part_vals: list[str] | None, user_name: str | None, group_names: list[str] | None) -> Partition: ...
    def get_partition_by_name(self, db_name: str | None, tbl_name: str | None, part_name: str | None) -> Partition: ...
    def get_partitions(self, db_name: str | None, tbl_name: str | None, max_parts: int | None) -> list[Partition]: ...
    def get_partitions_req(self, req: PartitionsRequest | None) -> PartitionsResponse: ...
    def get_partitions_with_auth(self, db_name: str | None, tbl_name: str | None, max_parts: int | None, user_name: str | None, group_names: list[str] | None) -> list[Partition]: ...
    def get_partitions_pspec(self, db_name: str | None, tbl_name: str | None, max_parts: int | None) -> list[PartitionSpec]: ...
    def get_partition_names(self, db_name: str | None, tbl_name: str | None, max_parts: int | None) -> list[str]: ...
    def fetch_partition_names_req(self, partitionReq: PartitionsRequest | None) -> list[str]: ...
    def get_partition_values(self, request: PartitionValuesRequest | None) -> PartitionValuesResponse: ...
    def get_partitions_ps(self, db_name: str | None, tbl_name: str | None, part_vals: list[str] | None, max_parts: int | None) -> list[Partition]: ...
    def get_partitions_ps_with_auth(self, db_name: str | None, tbl_name: str | None, part_vals: list[str] | None, max_parts: int | None, user_name: str | None, group_names: list[str] | None) -> list[Partition]: ...
    def get_partitions_ps_with_auth_req(self, req: GetPartitionsPsWithAuthRequest | None) -> GetPartitionsPsWithAuthResponse: ...
    def get_partition_names_ps(self, db_name: str | None, tbl_name: str | None, part_vals: list[str] | None, max_parts: int | None) -> list[str]: ...
    def get_partition_names_ps_req(self, req: GetPartitionNamesPsRequest | None) -> GetPartitionNamesPsResponse: ...
    def get_partition_names_req(self, req: PartitionsByExprRequest | None) -> list[str]: ...
    def get_partitions_by_filter(self, db_name: str | None, tbl_name: str | None, filter: str | None, max_parts: int | None) -> list[Partition]: ...
    def get_partitions_by_filter_req(self, req: GetPartitionsByFilterRequest | None) -> list[Partition]: ...
    def get_part_specs_by_filter(self, db_name: str | None, tbl_name: str | None, filter: str | None, max_parts: int | None) -> list[PartitionSpec]: ...
    def get_partitions_by_expr(self, req: PartitionsByExprRequest | None) -> PartitionsByExprResult: ...
    def get_partitions_spec_by_expr(self, req: PartitionsByExprRequest | None) -> PartitionsSpecByExprResult: ...
    def get_num_partitions_by_filter(self, db_name: str | None, tbl_name: str | None, filter: str | None) -> int: ...
    def get_partitions_by_names(self, db_name: str | None, tbl_name: str | None, names: list[str] | None) -> list[Partition]: ...
    def get_partitions_by_names_req(self, req: GetPartitionsByNamesRequest | None) -> GetPartitionsByNamesResult: ...
    def alter_partition(self, db_name: str | None, tbl_name: str | None, new_part: Partition | None) -> None: ...
    def alter_partitions(self, db_name: str | None, tbl_name: str | None, new_parts: list[Partition] | None) -> None: ...
    def alter_partitions_with_environment_context(self, db_name: str | None, tbl_name: str | None, new_parts: list[Partition] | None, environment_context: EnvironmentContext | None) -> None: ...
    def alter_partitions_req(self, req: AlterPartitionsRequest | None) -> AlterPartitionsResponse: ...
    def alter_partition_with_environment_context(self, db_name: str | None, tbl_name: str | None, new_part: Partition | None, environment_context: EnvironmentContext | None) -> None: ...
    def rename_partition(self, db_name: str | None, tbl_name: str | None, part_vals: list[str] | None, new_part: Partition | None) -> None: ...
    def rename_partition_req(self, req: RenamePartitionRequest | None) -> RenamePartitionResponse: ...
    def partition_name_has_valid_characters(self, part_vals: list[str] | None, throw_exception: bool | None) -> bool: ...
    def partition_name_to_vals(self, part_name: str | None) -> list[str]: ...
    def partition_name_to_spec(self, part_name: str | None) -> dict[str, str]: ...
    def markPartitionForEvent(self, db_name: str | None, tbl_name: str | None, part_vals: dict[str, str] | None, eventType: int | None) -> None: ...
    def isPartitionMarkedForEvent(self, db_name: str | None, tbl_name: str | None, part_vals: dict[str, str] | None, eventType: int | None) -> bool: ...
    def get_partitions_with_specs(self, request: GetPartitionsRequest | None) -> GetPartitionsResponse: ...
    def update_table_column_statistics(self, stats_obj: ColumnStatistics | None) -> bool: ...
    def update_partition_column_statistics(self, stats_obj: ColumnStatistics | None) -> bool: ...
    def update_table_column_statistics_req(self, req: SetPartitionsStatsRequest | None) -> SetPartitionsStatsResponse: ...
    def update_partition_column_statistics_req(self, req: SetPartitionsStatsRequest | None) -> SetPartitionsStatsResponse: ...
    def update_transaction_statistics(self, req: UpdateTransactionalStatsRequest | None) -> None: ...
    def get_table_column_statistics(self, db_name: str | None, tbl_name: str | None, col_name: str | None) -> ColumnStatistics: ...
    def get_partition_column_statistics(self, db_name: str | None, tbl_name: str | None, part_name: str | None, col_name: str | None) -> ColumnStatistics: ...
    def get_table_statistics_req(self, request: TableStatsRequest | None) -> TableStatsResult: ...
    def get_partitions_statistics_req(self, request: PartitionsStatsRequest | None) -> PartitionsStatsResult: ...
    def get_aggr_stats_for(self, request: PartitionsStatsRequest | None) -> AggrStats: ...
    def set_aggr_stats_for(self, request: SetPartitionsStatsRequest | None) -> bool: ...
    def delete_partition_column_statistics(self, db_name: str | None, tbl_name: str | None, part_name: str | None, col_name: str | None, engine: str | None) -> bool: ...
    def delete_table_column_statistics(self, db_name: str | None, tbl_name: str | None, col_name: str | None, engine: str | None) -> bool: ...
    def delete_column_statistics_req(self, req: DeleteColumnStatisticsRequest | None) -> bool: ...
    def drop_constraint(self, req: DropConstraintRequest | None) -> None: ...
    def add_primary_key(self, req: AddPrimaryKeyRequest | None) -> None: ...
    def add_foreign_key(self, req: AddForeignKeyRequest | None) -> None: ...
    def add_unique_constraint(self, req: AddUniqueConstraintRequest | None) -> None: ...
    def add_not_null_constraint(self, req: AddNotNullConstraintRequest | None) -> None: ...
    def add_default_constraint(self, req: AddDefaultConstraintRequest | None) -> None: ...
    def add_check_constraint(self, req: AddCheckConstraintRequest | None) -> None: ...
    def get_primary_keys(self, request: PrimaryKeysRequest | None) -> PrimaryKeysResponse: ...
    def get_foreign_keys(self, request: ForeignKeysRequest | None) -> ForeignKeysResponse: ...
    def get_unique_constraints(self, request: UniqueConstraintsRequest | None) -> UniqueConstraintsResponse: ...
    def get_not_null_constraints(self, request: NotNullConstraintsRequest | None) -> NotNullConstraintsResponse: ...
    def get_default_constraints(self, request: DefaultConstraintsRequest | None) -> DefaultConstraintsResponse: ...
    def get_check_constraints(self, request: CheckConstraintsRequest | None) -> CheckConstraintsResponse: ...
    def get_all_table_constraints(self, request: AllTableConstraintsRequest | None) -> AllTableConstraintsResponse: ...
    def create_function(self, func: Function | None) -> None: ...
    def drop_function(self, dbName: str | None, funcName: str | None) -> None: ...
    def alter_function(self, dbName: str | None, funcName: str | None, newFunc: Function | None) -> None: ...
    def get_functions(self, dbName: str | None, pattern: str | None) -> list[str]: ...
    def get_functions_req(self, request: GetFunctionsRequest | None) -> GetFunctionsResponse: ...
    def get_function(self, dbName: str | None, funcName: str | None) -> Function: ...
    def get_all_functions(self) -> GetAllFunctionsResponse: ...
    def create_role(self, role: Role | None) -> bool: ...
    def drop_role(self, role_name: str | None) -> bool: ...
    def get_role_names(self) -> list[str]: ...
    def grant_role(self, role_name: str | None, principal_name: str | None, principal_type: int | None, grantor: str | None, grantorType: int | None, grant_option: bool | None) -> bool: ...
    def revoke_role(self, role_name: str | None, principal_name: str | None, principal_type: int | None) -> bool: ...
    def list_roles(self, principal_name: str | None, principal_type: int | None) -> list[Role]: ...
    def grant_revoke_role(self, request: GrantRevokeRoleRequest | None) -> GrantRevokeRoleResponse: ...
    def get_principals_in_role(self, request: GetPrincipalsInRoleRequest | None) -> GetPrincipalsInRoleResponse: ...
    def get_role_grants_for_principal(self, request: GetRoleGrantsForPrincipalRequest | None) -> GetRoleGrantsForPrincipalResponse: ...
    def get_privilege_set(self, hiveObject: HiveObjectRef | None, user_name: str | None, group_names: list[str] | None) -> PrincipalPrivilegeSet: ...
    def list_privileges(self, principal_name: str | None, principal_type: int | None, hiveObject: HiveObjectRef | None) -> list[HiveObjectPrivilege]: ...
    def grant_privileges(self, privileges: PrivilegeBag | None) -> bool: ...
    def revoke_privileges(self, privileges: PrivilegeBag | None) -> bool: ...
    def grant_revoke_privileges(self, request: GrantRevokePrivilegeRequest | None) -> GrantRevokePrivilegeResponse: ...
    def refresh_privileges(self, objToRefresh: HiveObjectRef | None, authorizer: str | None, grantRequest: GrantRevokePrivilegeRequest | None) -> GrantRevokePrivilegeResponse: ...
    def set_ugi(self, user_name: str | None, group_names: list[str] | None) -> list[str]: ...
    def get_delegation_token(self, token_owner: str | None, renewer_kerberos_principal_name: str | None) -> str: ...
    def renew_delegation_token(self, token_str_form: str | None) -> int: ...
    def cancel_delegation_token(self, token_str_form: str | None) -> None: ...
    def add_token(self, token_identifier: str | None, delegation_token: str | None) -> bool: ...
    def remove_token(self, token_identifier: str | None) -> bool: ...
    def get_token(self, token_identifier: str | None) -> str: ...
    def get_all_token_identifiers(self) -> list[str]: ...
    def add_master_key(self, key: str | None) -> int: ...
    def update_master_key(self, seq_number: int | None, key: str | None) -> None: ...
    def remove_master_key(self, key_seq: int | None) -> bool: ...
    def get_master_keys(self) -> list[str]: ...
    def get_open_txns(self) -> GetOpenTxnsResponse: ...
    def get_open_txns_info(self) -> GetOpenTxnsInfoResponse: ...
    def open_txns(self, rqst: OpenTxnRequest | None) -> OpenTxnsResponse: ...
    def abort_txn(self, rqst: AbortTxnRequest | None) -> None: ...
    def abort_txns(self, rqst: AbortTxnsRequest | None) -> None: ...
    def commit_txn(self, rqst: CommitTxnRequest | None) -> None: ...
    def get_latest_txnid_in_conflict(self, txnId: int | None) -> int: ...
    def repl_tbl_writeid_state(self, rqst: ReplTblWriteIdStateRequest | None) -> None: ...
    def get_valid_write_ids(self, rqst: GetValidWriteIdsRequest | None) -> GetValidWriteIdsResponse: ...
    def add_write_ids_to_min_history(self, txnId: int | None, writeIds: dict[str, int] | None) -> None: ...
    def allocate_table_write_ids(self, rqst: AllocateTableWriteIdsRequest | None) -> AllocateTableWriteIdsResponse: ...
    def get_max_allocated_table_write_id(self, rqst: MaxAllocatedTableWriteIdRequest | None) -> MaxAllocatedTableWriteIdResponse: ...
    def seed_write_id(self, rqst: SeedTableWriteIdsRequest | None) -> None: ...
    def seed_txn_id(self, rqst: SeedTxnIdRequest | None) -> None: ...
    def heartbeat_txn_range(self, txns: HeartbeatTxnRangeRequest | None) -> HeartbeatTxnRangeResponse: ...
    def add_dynamic_partitions(self, rqst: AddDynamicPartitions | None) -> None: ...
    def get_open_txns_req(self, getOpenTxnsRequest: GetOpenTxnsRequest | None) -> GetOpenTxnsResponse: ...
    def get_replayed_txns_for_policy(self, policyName: str | None) -> ReplayedTxnsForPolicyResult: ...
    def lock(self, rqst: LockRequest | None) -> LockResponse: ...
    def check_lock(self, rqst: CheckLockRequest | None) -> LockResponse: ...
    def unlock(self, rqst: UnlockRequest | None) -> None: ...
    def show_locks(self, rqst: ShowLocksRequest | None) -> ShowLocksResponse: ...
    def heartbeat(self, ids: HeartbeatRequest | None) -> None: ...
    def get_lock_materialization_rebuild(self, dbName: str | None, tableName: str | None, txnId: int | None) -> LockResponse: ...
    def heartbeat_lock_materialization_rebuild(self, dbName: str | None, tableName: str | None, txnId: int | None) -> bool: ...
    def get_lock_materialization_rebuild_req(self, req: LockMaterializationRebuildRequest | None) -> LockResponse: ...
    def heartbeat_lock_materialization_rebuild_req(self, req: LockMaterializationRebuildRequest | None) -> bool: ...
    def abort_Compactions(self, rqst: AbortCompactionRequest | None) -> AbortCompactResponse: ...
    def compact(self, rqst: CompactionRequest | None) -> None: ...
    def compact2(self, rqst: CompactionRequest | None) -> CompactionResponse: ...
    def show_compact(self, rqst: ShowCompactRequest | None) -> ShowCompactResponse: ...
    def submit_for_cleanup(self, o1: CompactionRequest | None, o2: int | None, o3: int | None) -> bool: ...
    def find_next_compact(self, workerId: str | None) -> OptionalCompactionInfoStruct: ...
    def find_next_compact2(self, rqst: FindNextCompactRequest | None) -> OptionalCompactionInfoStruct: ...
    def update_compactor_state(self, cr: CompactionInfoStruct | None, txn_id: int | None) -> None: ...
    def find_columns_with_stats(self, cr: CompactionInfoStruct | None) -> list[str]: ...
    def mark_cleaned(self, cr: CompactionInfoStruct | None) -> None: ...
    def mark_compacted(self, cr: CompactionInfoStruct | None) -> None: ...
    def mark_failed(self, cr: CompactionInfoStruct | None) -> None: ...
    def mark_refused(self, cr: CompactionInfoStruct | None) -> None: ...
    def update_compaction_metrics_data(self, data: CompactionMetricsDataStruct | None) -> bool: ...
    def remove_compaction_metrics_data(self, request: CompactionMetricsDataRequest | None) -> None: ...
    def set_hadoop_jobid(self, jobId: str | None, cq_id: int | None) -> None: ...
    def get_latest_committed_compaction_info(self, rqst: GetLatestCommittedCompactionInfoRequest | None) -> GetLatestCommittedCompactionInfoResponse: ...
    def get_next_notification(self, rqst: NotificationEventRequest | None) -> NotificationEventResponse: ...
    def get_current_notificationEventId(self) -> CurrentNotificationEventId: ...
    def get_notification_events_count(self, rqst: NotificationEventsCountRequest | None) -> NotificationEventsCountResponse: ...
    def fire_listener_event(self, rqst: FireEventRequest | None) -> FireEventResponse: ...
    def add_write_notification_log(self, rqst: WriteNotificationLogRequest | None) -> WriteNotificationLogResponse: ...
    def add_write_notification_log_in_batch(self, rqst: WriteNotificationLogBatchRequest | None) -> WriteNotificationLogBatchResponse: ...
    def get_all_write_event_info(self, request: GetAllWriteEventInfoRequest | None) -> list[WriteEventInfo]: ...
    def create_resource_plan(self, request: WMCreateResourcePlanRequest | None) -> WMCreateResourcePlanResponse: ...
    def get_resource_plan(self, request: WMGetResourcePlanRequest | None) -> WMGetResourcePlanResponse: ...
    def get_active_resource_plan(self, request: WMGetActiveResourcePlanRequest | None) -> WMGetActiveResourcePlanResponse: ...
    def get_all_resource_plans(self, request: WMGetAllResourcePlanRequest | None) -> WMGetAllResourcePlanResponse: ...
    def alter_resource_plan(self, request: WMAlterResourcePlanRequest | None) -> WMAlterResourcePlanResponse: ...
    def validate_resource_plan(self, request: WMValidateResourcePlanRequest | None) -> WMValidateResourcePlanResponse: ...
    def drop_resource_plan(self, request: WMDropResourcePlanRequest | None) -> WMDropResourcePlanResponse: ...
    def create_wm_trigger(self, request: WMCreateTriggerRequest | None) -> WMCreateTriggerResponse: ...
    def alter_wm_trigger(self, request: WMAlterTriggerRequest | None) -> WMAlterTriggerResponse: ...
    def drop_wm_trigger(self, request: WMDropTriggerRequest | None) -> WMDropTriggerResponse: ...
    def get_triggers_for_resourceplan(self, request: WMGetTriggersForResourePlanRequest | None) -> WMGetTriggersForResourePlanResponse: ...
    def create_wm_pool(self, request: WMCreatePoolRequest | None) -> WMCreatePoolResponse: ...
    def alter_wm_pool(self, request: WMAlterPoolRequest | None) -> WMAlterPoolResponse: ...
    def drop_wm_pool(self, request: WMDropPoolRequest | None) -> WMDropPoolResponse: ...
    def create_or_update_wm_mapping(self, request: WMCreateOrUpdateMappingRequest | None) -> WMCreateOrUpdateMappingResponse: ...
    def drop_wm_mapping(self, request: WMDropMappingRequest | None) -> WMDropMappingResponse: ...
    def create_or_drop_wm_trigger_to_pool_mapping(self, request: WMCreateOrDropTriggerToPoolMappingRequest | None) -> WMCreateOrDropTriggerToPoolMappingResponse: ...
    def scheduled_query_poll(self, request: ScheduledQueryPollRequest | None) -> ScheduledQueryPollResponse: ...
    def scheduled_query_maintenance(self, request: ScheduledQueryMaintenanceRequest | None) -> None: ...
    def scheduled_query_progress(self, info: ScheduledQueryProgressInfo | None) -> None: ...
    def get_scheduled_query(self, scheduleKey: ScheduledQueryKey | None) -> ScheduledQuery: ...
    def add_runtime_stats(self, stat: RuntimeStat | None) -> None: ...
    def get_runtime_stats(self, rqst: GetRuntimeStatsRequest | None) -> list[RuntimeStat]: ...
    def create_ischema(self, schema: ISchema | None) -> None: ...
    def alter_ischema(self, rqst: AlterISchemaRequest | None) -> None: ...
    def get_ischema(self, name: ISchemaName | None) -> ISchema: ...
    def drop_ischema(self, name: ISchemaName | None) -> None: ...
    def add_schema_version(self, schemaVersion: SchemaVersion | None) -> None: ...
    def get_schema_version(self, schemaVersion: SchemaVersionDescriptor | None) -> SchemaVersion: ...
    def get_schema_latest_version(self, schemaName: ISchemaName | None) -> SchemaVersion: ...
    def get_schema_all_versions(self, schemaName: ISchemaName | None) -> list[SchemaVersion]: ...
    def drop_schema_version(self, schemaVersion: SchemaVersionDescriptor | None) -> None: ...
    def get_schemas_by_cols(self, rqst: FindSchemasByColsRqst | None) -> FindSchemasByColsResp: ...
    def map_schema_version_to_serde(self, rqst: MapSchemaVersionToSerdeRequest | None) -> None: ...
    def set_schema_version_state(self, rqst: SetSchemaVersionStateRequest | None) -> None: ...
    def add_serde(self, serde: SerDeInfo | None) -> None: ...
    def get_serde(self, rqst: GetSerdeRequest | None) -> SerDeInfo: ...
    def getMetaConf(self, key: str | None) -> str: ...
    def setMetaConf(self, key: str | None, value: str | None) -> None: ...
    def create_dataconnector_req(self, connectorReq: CreateDataConnectorRequest | None) -> None: ...
    def get_dataconnector_req(self, request: GetDataConnectorRequest | None) -> DataConnector: ...
    def drop_dataconnector_req(self, dropDcReq: DropDataConnectorRequest | None) -> None: ...
    def get_dataconnectors(self) -> list[str]: ...
    def alter_dataconnector_req(self, alterReq: AlterDataConnectorRequest | None) -> None: ...
    def get_type(self, name: str | None) -> Type: ...
    def create_type(self, type: Type | None) -> bool: ...
    def drop_type(self, type: str | None) -> bool: ...
    def get_type_all(self, name: str | None) -> dict[str, Type]: ...
    def get_properties(self, req: PropertyGetRequest | None) -> PropertyGetResponse: ...
    def set_properties(self, req: PropertySetRequest | None) -> bool: ...
    def get_config_value(self, name: str | None, defaultValue: str | None) -> str: ...
    def flushCache(self) -> None: ...
    def cm_recycle(self, request: CmRecycleRequest | None) -> CmRecycleResponse: ...
    def get_file_metadata_by_expr(self, req: GetFileMetadataByExprRequest | None) -> GetFileMetadataByExprResult: ...
    def get_file_metadata(self, req: GetFileMetadataRequest | None) -> GetFileMetadataResult: ...
    def put_file_metadata(self, req: PutFileMetadataRequest | None) -> PutFileMetadataResult: ...
    def clear_file_metadata(self, req: ClearFileMetadataRequest | None) -> ClearFileMetadataResult: ...
    def cache_file_metadata(self, req: CacheFileMetadataRequest | None) -> CacheFileMetadataResult: ...
    def get_metastore_db_uuid(self) -> str: ...
    def add_replication_metrics(self, replicationMetricList: ReplicationMetricList | None) -> None: ...
    def get_replication_metrics(self, rqst: GetReplicationMetricsRequest | None) -> ReplicationMetricList: ...
    def create_stored_procedure(self, proc: StoredProcedure | None) -> None: ...
    def get_stored_procedure(self, request: StoredProcedureRequest | None) -> StoredProcedure: ...
    def drop_stored_procedure(self, request: StoredProcedureRequest | None) -> None: ...
    def get_all_stored_procedures(self, request: ListStoredProcedureRequest | None) -> list[str]: ...
    def find_package(self, request: GetPackageRequest | None) -> Package: ...
    def add_package(self, request: AddPackageRequest | None) -> None: ...
    def get_all_packages(self, request: ListPackageRequest | None) -> list[str]: ...
    def drop_package(self, request: DropPackageRequest | None) -> None: ...
    def create_dataconnector(self, connector: DataConnector | None) -> None: ...
    def drop_dataconnector(self, name: str | None, ifNotExists: bool | None, checkReferences: bool | None) -> None: ...
    def alter_dataconnector(self, name: str | None, connector: DataConnector | None) -> None: ...
    def add_index(self, new_index: Index | None, index_table: Table | None) -> Index: ...
    def alter_index(self, dbname: str | None, base_tbl_name: str | None, idx_name: str | None, new_idx: Index | None) -> None: ...
    def drop_index_by_name(self, db_name: str | None, tbl_name: str | None, index_name: str | None, deleteData: bool | None) -> bool: ...
    def get_index_by_name(self, db_name: str | None, tbl_name: str | None, index_name: str | None) -> Index: ...
    def get_indexes(self, db_name: str | None, tbl_name: str | None, max_indexes: int | None) -> list[Index]: ...
    def get_index_names(self, db_name: str | None, tbl_name: str | None, max_indexes: int | None) -> list[str]: ...

class Processor(FacebookService.Processor, Iface):
    def __init__(self, handler: Any) -> None: ...
    def process(self, iprot: Any, oprot: Any) -> bool | None: ...

class create_catalog_args(TBase):
    catalog: CreateCatalogRequest
    def __init__(self, catalog: CreateCatalogRequest | None = ...) -> None: ...

class create_catalog_result(TBase):
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class alter_catalog_args(TBase):
    rqst: AlterCatalogRequest
    def __init__(self, rqst: AlterCatalogRequest | None = ...) -> None: ...

class alter_catalog_result(TBase):
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class get_catalog_args(TBase):
    catName: GetCatalogRequest
    def __init__(self, catName: GetCatalogRequest | None = ...) -> None: ...

class get_catalog_result(TBase):
    success: GetCatalogResponse | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: GetCatalogResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_catalogs_args(TBase):
    def __init__(self) -> None: ...

class get_catalogs_result(TBase):
    success: GetCatalogsResponse | None
    o1: MetaException | None
    def __init__(self, success: GetCatalogsResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class drop_catalog_args(TBase):
    catName: DropCatalogRequest
    def __init__(self, catName: DropCatalogRequest | None = ...) -> None: ...

class drop_catalog_result(TBase):
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class create_database_args(TBase):
    database: Database
    def __init__(self, database: Database | None = ...) -> None: ...

class create_database_result(TBase):
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class create_database_req_args(TBase):
    createDatabaseRequest: CreateDatabaseRequest
    def __init__(self, createDatabaseRequest: CreateDatabaseRequest | None = ...) -> None: ...

class create_database_req_result(TBase):
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class get_database_args(TBase):
    name: str
    def __init__(self, name: str | None = ...) -> None: ...

class get_database_result(TBase):
    success: Database | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: Database | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_database_req_args(TBase):
    request: GetDatabaseRequest
    def __init__(self, request: GetDatabaseRequest | None = ...) -> None: ...

class get_database_req_result(TBase):
    success: Database | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: Database | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class drop_database_args(TBase):
    name: str
    deleteData: bool
    cascade: bool
    def __init__(self, name: str | None = ..., deleteData: bool | None = ..., cascade: bool | None = ...) -> None: ...

class drop_database_result(TBase):
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class drop_database_req_args(TBase):
    req: DropDatabaseRequest
    def __init__(self, req: DropDatabaseRequest | None = ...) -> None: ...

class drop_database_req_result(TBase):
    success: AsyncOperationResp | None
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, success: AsyncOperationResp | None = ..., o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class get_databases_args(TBase):
    pattern: str
    def __init__(self, pattern: str | None = ...) -> None: ...

class get_databases_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class get_all_databases_args(TBase):
    def __init__(self) -> None: ...

class get_all_databases_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class get_databases_req_args(TBase):
    request: GetDatabaseObjectsRequest
    def __init__(self, request: GetDatabaseObjectsRequest | None = ...) -> None: ...

class get_databases_req_result(TBase):
    success: GetDatabaseObjectsResponse | None
    o1: MetaException | None
    def __init__(self, success: GetDatabaseObjectsResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class alter_database_args(TBase):
    dbname: str
    db: Database
    def __init__(self, dbname: str | None = ..., db: Database | None = ...) -> None: ...

class alter_database_result(TBase):
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class alter_database_req_args(TBase):
    alterDbReq: AlterDatabaseRequest
    def __init__(self, alterDbReq: AlterDatabaseRequest | None = ...) -> None: ...

class alter_database_req_result(TBase):
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_fields_args(TBase):
    db_name: str
    table_name: str
    def __init__(self, db_name: str | None = ..., table_name: str | None = ...) -> None: ...

class get_fields_result(TBase):
    success: list[FieldSchema] | None
    o1: MetaException | None
    o2: UnknownTableException | None
    o3: UnknownDBException | None
    def __init__(self, success: list[FieldSchema] | None = ..., o1: MetaException | None = ..., o2: UnknownTableException | None = ..., o3: UnknownDBException | None = ...) -> None: ...

class get_fields_with_environment_context_args(TBase):
    db_name: str
    table_name: str
    environment_context: EnvironmentContext
    def __init__(self, db_name: str | None = ..., table_name: str | None = ..., environment_context: EnvironmentContext | None = ...) -> None: ...

class get_fields_with_environment_context_result(TBase):
    success: list[FieldSchema] | None
    o1: MetaException | None
    o2: UnknownTableException | None
    o3: UnknownDBException | None
    def __init__(self, success: list[FieldSchema] | None = ..., o1: MetaException | None = ..., o2: UnknownTableException | None = ..., o3: UnknownDBException | None = ...) -> None: ...

class get_fields_req_args(TBase):
    req: GetFieldsRequest
    def __init__(self, req: GetFieldsRequest | None = ...) -> None: ...

class get_fields_req_result(TBase):
    success: GetFieldsResponse | None
    o1: MetaException | None
    o2: UnknownTableException | None
    o3: UnknownDBException | None
    def __init__(self, success: GetFieldsResponse | None = ..., o1: MetaException | None = ..., o2: UnknownTableException | None = ..., o3: UnknownDBException | None = ...) -> None: ...

class get_schema_args(TBase):
    db_name: str
    table_name: str
    def __init__(self, db_name: str | None = ..., table_name: str | None = ...) -> None: ...

class get_schema_result(TBase):
    success: list[FieldSchema] | None
    o1: MetaException | None
    o2: UnknownTableException | None
    o3: UnknownDBException | None
    def __init__(self, success: list[FieldSchema] | None = ..., o1: MetaException | None = ..., o2: UnknownTableException | None = ..., o3: UnknownDBException | None = ...) -> None: ...

class get_schema_with_environment_context_args(TBase):
    db_name: str
    table_name: str
    environment_context: EnvironmentContext
    def __init__(self, db_name: str | None = ..., table_name: str | None = ..., environment_context: EnvironmentContext | None = ...) -> None: ...

class get_schema_with_environment_context_result(TBase):
    success: list[FieldSchema] | None
    o1: MetaException | None
    o2: UnknownTableException | None
    o3: UnknownDBException | None
    def __init__(self, success: list[FieldSchema] | None = ..., o1: MetaException | None = ..., o2: UnknownTableException | None = ..., o3: UnknownDBException | None = ...) -> None: ...

class get_schema_req_args(TBase):
    req: GetSchemaRequest
    def __init__(self, req: GetSchemaRequest | None = ...) -> None: ...

class get_schema_req_result(TBase):
    success: GetSchemaResponse | None
    o1: MetaException | None
    o2: UnknownTableException | None
    o3: UnknownDBException | None
    def __init__(self, success: GetSchemaResponse | None = ..., o1: MetaException | None = ..., o2: UnknownTableException | None = ..., o3: UnknownDBException | None = ...) -> None: ...

class create_table_args(TBase):
    tbl: Table
    def __init__(self, tbl: Table | None = ...) -> None: ...

class create_table_result(TBase):
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    o4: NoSuchObjectException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ..., o4: NoSuchObjectException | None = ...) -> None: ...

class create_table_with_environment_context_args(TBase):
    tbl: Table
    environment_context: EnvironmentContext
    def __init__(self, tbl: Table | None = ..., environment_context: EnvironmentContext | None = ...) -> None: ...

class create_table_with_environment_context_result(TBase):
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    o4: NoSuchObjectException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ..., o4: NoSuchObjectException | None = ...) -> None: ...

class create_table_with_constraints_args(TBase):
    tbl: Table
    primaryKeys: list[SQLPrimaryKey]
    foreignKeys: list[SQLForeignKey]
    uniqueConstraints: list[SQLUniqueConstraint]
    notNullConstraints: list[SQLNotNullConstraint]
    defaultConstraints: list[SQLDefaultConstraint]
    checkConstraints: list[SQLCheckConstraint]
    def __init__(self, tbl: Table | None = ..., primaryKeys: list[SQLPrimaryKey] | None = ..., foreignKeys: list[SQLForeignKey] | None = ..., uniqueConstraints: list[SQLUniqueConstraint] | None = ..., notNullConstraints: list[SQLNotNullConstraint] | None = ..., defaultConstraints: list[SQLDefaultConstraint] | None = ..., checkConstraints: list[SQLCheckConstraint] | None = ...) -> None: ...

class create_table_with_constraints_result(TBase):
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    o4: NoSuchObjectException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ..., o4: NoSuchObjectException | None = ...) -> None: ...

class create_table_req_args(TBase):
    request: CreateTableRequest
    def __init__(self, request: CreateTableRequest | None = ...) -> None: ...

class create_table_req_result(TBase):
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    o4: NoSuchObjectException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ..., o4: NoSuchObjectException | None = ...) -> None: ...

class translate_table_dryrun_args(TBase):
    request: CreateTableRequest
    def __init__(self, request: CreateTableRequest | None = ...) -> None: ...

class translate_table_dryrun_result(TBase):
    success: Table | None
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    o4: NoSuchObjectException | None
    def __init__(self, success: Table | None = ..., o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ..., o4: NoSuchObjectException | None = ...) -> None: ...

class drop_table_args(TBase):
    dbname: str
    name: str
    deleteData: bool
    def __init__(self, dbname: str | None = ..., name: str | None = ..., deleteData: bool | None = ...) -> None: ...

class drop_table_result(TBase):
    o1: NoSuchObjectException | None
    o3: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class drop_table_with_environment_context_args(TBase):
    dbname: str
    name: str
    deleteData: bool
    environment_context: EnvironmentContext
    def __init__(self, dbname: str | None = ..., name: str | None = ..., deleteData: bool | None = ..., environment_context: EnvironmentContext | None = ...) -> None: ...

class drop_table_with_environment_context_result(TBase):
    o1: NoSuchObjectException | None
    o3: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class drop_table_req_args(TBase):
    dropTableReq: DropTableRequest
    def __init__(self, dropTableReq: DropTableRequest | None = ...) -> None: ...

class drop_table_req_result(TBase):
    success: AsyncOperationResp | None
    o1: NoSuchObjectException | None
    o3: MetaException | None
    def __init__(self, success: AsyncOperationResp | None = ..., o1: NoSuchObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class truncate_table_args(TBase):
    dbName: str
    tableName: str
    partNames: list[str]
    def __init__(self, dbName: str | None = ..., tableName: str | None = ..., partNames: list[str] | None = ...) -> None: ...

class truncate_table_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class truncate_table_req_args(TBase):
    req: TruncateTableRequest
    def __init__(self, req: TruncateTableRequest | None = ...) -> None: ...

class truncate_table_req_result(TBase):
    success: TruncateTableResponse | None
    o1: MetaException | None
    def __init__(self, success: TruncateTableResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class get_tables_args(TBase):
    db_name: str
    pattern: str
    def __init__(self, db_name: str | None = ..., pattern: str | None = ...) -> None: ...

class get_tables_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class get_tables_by_type_args(TBase):
    db_name: str
    pattern: str
    tableType: str
    def __init__(self, db_name: str | None = ..., pattern: str | None = ..., tableType: str | None = ...) -> None: ...

class get_tables_by_type_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class get_all_materialized_view_objects_for_rewriting_args(TBase):
    def __init__(self) -> None: ...

class get_all_materialized_view_objects_for_rewriting_result(TBase):
    success: list[Table] | None
    o1: MetaException | None
    def __init__(self, success: list[Table] | None = ..., o1: MetaException | None = ...) -> None: ...

class get_materialized_views_for_rewriting_args(TBase):
    db_name: str
    def __init__(self, db_name: str | None = ...) -> None: ...

class get_materialized_views_for_rewriting_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class get_table_meta_args(TBase):
    db_patterns: str
    tbl_patterns: str
    tbl_types: list[str]
    def __init__(self, db_patterns: str | None = ..., tbl_patterns: str | None = ..., tbl_types: list[str] | None = ...) -> None: ...

class get_table_meta_result(TBase):
    success: list[TableMeta] | None
    o1: MetaException | None
    def __init__(self, success: list[TableMeta] | None = ..., o1: MetaException | None = ...) -> None: ...

class get_all_tables_args(TBase):
    db_name: str
    def __init__(self, db_name: str | None = ...) -> None: ...

class get_all_tables_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class get_tables_ext_args(TBase):
    req: GetTablesExtRequest
    def __init__(self, req: GetTablesExtRequest | None = ...) -> None: ...

class get_tables_ext_result(TBase):
    success: list[ExtendedTableInfo] | None
    o1: MetaException | None
    def __init__(self, success: list[ExtendedTableInfo] | None = ..., o1: MetaException | None = ...) -> None: ...

class get_table_req_args(TBase):
    req: GetTableRequest
    def __init__(self, req: GetTableRequest | None = ...) -> None: ...

class get_table_req_result(TBase):
    success: GetTableResult | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: GetTableResult | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_table_objects_by_name_req_args(TBase):
    req: GetTablesRequest
    def __init__(self, req: GetTablesRequest | None = ...) -> None: ...

class get_table_objects_by_name_req_result(TBase):
    success: GetTablesResult | None
    o1: MetaException | None
    o2: InvalidOperationException | None
    o3: UnknownDBException | None
    def __init__(self, success: GetTablesResult | None = ..., o1: MetaException | None = ..., o2: InvalidOperationException | None = ..., o3: UnknownDBException | None = ...) -> None: ...

class get_materialization_invalidation_info_args(TBase):
    creation_metadata: CreationMetadata
    validTxnList: str
    def __init__(self, creation_metadata: CreationMetadata | None = ..., validTxnList: str | None = ...) -> None: ...

class get_materialization_invalidation_info_result(TBase):
    success: Materialization | None
    o1: MetaException | None
    o2: InvalidOperationException | None
    o3: UnknownDBException | None
    def __init__(self, success: Materialization | None = ..., o1: MetaException | None = ..., o2: InvalidOperationException | None = ..., o3: UnknownDBException | None = ...) -> None: ...

class update_creation_metadata_args(TBase):
    catName: str
    dbname: str
    tbl_name: str
    creation_metadata: CreationMetadata
    def __init__(self, catName: str | None = ..., dbname: str | None = ..., tbl_name: str | None = ..., creation_metadata: CreationMetadata | None = ...) -> None: ...

class update_creation_metadata_result(TBase):
    o1: MetaException | None
    o2: InvalidOperationException | None
    o3: UnknownDBException | None
    def __init__(self, o1: MetaException | None = ..., o2: InvalidOperationException | None = ..., o3: UnknownDBException | None = ...) -> None: ...

class get_table_names_by_filter_args(TBase):
    dbname: str
    filter: str
    max_tables: int
    def __init__(self, dbname: str | None = ..., filter: str | None = ..., max_tables: int | None = ...) -> None: ...

class get_table_names_by_filter_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    o2: InvalidOperationException | None
    o3: UnknownDBException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ..., o2: InvalidOperationException | None = ..., o3: UnknownDBException | None = ...) -> None: ...

class alter_table_args(TBase):
    dbname: str
    tbl_name: str
    new_tbl: Table
    def __init__(self, dbname: str | None = ..., tbl_name: str | None = ..., new_tbl: Table | None = ...) -> None: ...

class alter_table_result(TBase):
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class alter_table_with_environment_context_args(TBase):
    dbname: str
    tbl_name: str
    new_tbl: Table
    environment_context: EnvironmentContext
    def __init__(self, dbname: str | None = ..., tbl_name: str | None = ..., new_tbl: Table | None = ..., environment_context: EnvironmentContext | None = ...) -> None: ...

class alter_table_with_environment_context_result(TBase):
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class alter_table_with_cascade_args(TBase):
    dbname: str
    tbl_name: str
    new_tbl: Table
    cascade: bool
    def __init__(self, dbname: str | None = ..., tbl_name: str | None = ..., new_tbl: Table | None = ..., cascade: bool | None = ...) -> None: ...

class alter_table_with_cascade_result(TBase):
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class alter_table_req_args(TBase):
    req: AlterTableRequest
    def __init__(self, req: AlterTableRequest | None = ...) -> None: ...

class alter_table_req_result(TBase):
    success: AlterTableResponse | None
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, success: AlterTableResponse | None = ..., o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class update_table_params_args(TBase):
    updates: list[TableParamsUpdate]
    def __init__(self, updates: list[TableParamsUpdate] | None = ...) -> None: ...

class update_table_params_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class get_table_args(TBase):
    dbname: str
    tbl_name: str
    def __init__(self, dbname: str | None = ..., tbl_name: str | None = ...) -> None: ...

class get_table_result(TBase):
    success: Table | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: Table | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_table_objects_by_name_args(TBase):
    dbname: str
    tbl_names: list[str]
    def __init__(self, dbname: str | None = ..., tbl_names: list[str] | None = ...) -> None: ...

class get_table_objects_by_name_result(TBase):
    success: list[Table] | None
    o1: MetaException | None
    o2: InvalidOperationException | None
    o3: UnknownDBException | None
    def __init__(self, success: list[Table] | None = ..., o1: MetaException | None = ..., o2: InvalidOperationException | None = ..., o3: UnknownDBException | None = ...) -> None: ...

class add_partition_args(TBase):
    new_part: Partition
    def __init__(self, new_part: Partition | None = ...) -> None: ...

class add_partition_result(TBase):
    success: Partition | None
    o1: InvalidObjectException | None
    o2: AlreadyExistsException | None
    o3: MetaException | None
    def __init__(self, success: Partition | None = ..., o1: InvalidObjectException | None = ..., o2: AlreadyExistsException | None = ..., o3: MetaException | None = ...) -> None: ...

class add_partition_with_environment_context_args(TBase):
    new_part: Partition
    environment_context: EnvironmentContext
    def __init__(self, new_part: Partition | None = ..., environment_context: EnvironmentContext | None = ...) -> None: ...

class add_partition_with_environment_context_result(TBase):
    success: Partition | None
    o1: InvalidObjectException | None
    o2: AlreadyExistsException | None
    o3: MetaException | None
    def __init__(self, success: Partition | None = ..., o1: InvalidObjectException | None = ..., o2: AlreadyExistsException | None = ..., o3: MetaException | None = ...) -> None: ...

class add_partitions_args(TBase):
    new_parts: list[Partition]
    def __init__(self, new_parts: list[Partition] | None = ...) -> None: ...

class add_partitions_result(TBase):
    success: int | None
    o1: InvalidObjectException | None
    o2: AlreadyExistsException | None
    o3: MetaException | None
    def __init__(self, success: int | None = ..., o1: InvalidObjectException | None = ..., o2: AlreadyExistsException | None = ..., o3: MetaException | None = ...) -> None: ...

class add_partitions_pspec_args(TBase):
    new_parts: list[PartitionSpec]
    def __init__(self, new_parts: list[PartitionSpec] | None = ...) -> None: ...

class add_partitions_pspec_result(TBase):
    success: int | None
    o1: InvalidObjectException | None
    o2: AlreadyExistsException | None
    o3: MetaException | None
    def __init__(self, success: int | None = ..., o1: InvalidObjectException | None = ..., o2: AlreadyExistsException | None = ..., o3: MetaException | None = ...) -> None: ...

class append_partition_args(TBase):
    db_name: str
    tbl_name: str
    part_vals: list[str]
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_vals: list[str] | None = ...) -> None: ...

class append_partition_result(TBase):
    success: Partition | None
    o1: InvalidObjectException | None
    o2: AlreadyExistsException | None
    o3: MetaException | None
    def __init__(self, success: Partition | None = ..., o1: InvalidObjectException | None = ..., o2: AlreadyExistsException | None = ..., o3: MetaException | None = ...) -> None: ...

class add_partitions_req_args(TBase):
    request: AddPartitionsRequest
    def __init__(self, request: AddPartitionsRequest | None = ...) -> None: ...

class add_partitions_req_result(TBase):
    success: AddPartitionsResult | None
    o1: InvalidObjectException | None
    o2: AlreadyExistsException | None
    o3: MetaException | None
    def __init__(self, success: AddPartitionsResult | None = ..., o1: InvalidObjectException | None = ..., o2: AlreadyExistsException | None = ..., o3: MetaException | None = ...) -> None: ...

class append_partition_with_environment_context_args(TBase):
    db_name: str
    tbl_name: str
    part_vals: list[str]
    environment_context: EnvironmentContext
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_vals: list[str] | None = ..., environment_context: EnvironmentContext | None = ...) -> None: ...

class append_partition_with_environment_context_result(TBase):
    success: Partition | None
    o1: InvalidObjectException | None
    o2: AlreadyExistsException | None
    o3: MetaException | None
    def __init__(self, success: Partition | None = ..., o1: InvalidObjectException | None = ..., o2: AlreadyExistsException | None = ..., o3: MetaException | None = ...) -> None: ...

class append_partition_req_args(TBase):
    appendPartitionsReq: AppendPartitionsRequest
    def __init__(self, appendPartitionsReq: AppendPartitionsRequest | None = ...) -> None: ...

class append_partition_req_result(TBase):
    success: Partition | None
    o1: InvalidObjectException | None
    o2: AlreadyExistsException | None
    o3: MetaException | None
    def __init__(self, success: Partition | None = ..., o1: InvalidObjectException | None = ..., o2: AlreadyExistsException | None = ..., o3: MetaException | None = ...) -> None: ...

class append_partition_by_name_args(TBase):
    db_name: str
    tbl_name: str
    part_name: str
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_name: str | None = ...) -> None: ...

class append_partition_by_name_result(TBase):
    success: Partition | None
    o1: InvalidObjectException | None
    o2: AlreadyExistsException | None
    o3: MetaException | None
    def __init__(self, success: Partition | None = ..., o1: InvalidObjectException | None = ..., o2: AlreadyExistsException | None = ..., o3: MetaException | None = ...) -> None: ...

class append_partition_by_name_with_environment_context_args(TBase):
    db_name: str
    tbl_name: str
    part_name: str
    environment_context: EnvironmentContext
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_name: str | None = ..., environment_context: EnvironmentContext | None = ...) -> None: ...

class append_partition_by_name_with_environment_context_result(TBase):
    success: Partition | None
    o1: InvalidObjectException | None
    o2: AlreadyExistsException | None
    o3: MetaException | None
    def __init__(self, success: Partition | None = ..., o1: InvalidObjectException | None = ..., o2: AlreadyExistsException | None = ..., o3: MetaException | None = ...) -> None: ...

class drop_partition_args(TBase):
    db_name: str
    tbl_name: str
    part_vals: list[str]
    deleteData: bool
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_vals: list[str] | None = ..., deleteData: bool | None = ...) -> None: ...

class drop_partition_result(TBase):
    success: bool | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: bool | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class drop_partition_with_environment_context_args(TBase):
    db_name: str
    tbl_name: str
    part_vals: list[str]
    deleteData: bool
    environment_context: EnvironmentContext
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_vals: list[str] | None = ..., deleteData: bool | None = ..., environment_context: EnvironmentContext | None = ...) -> None: ...

class drop_partition_with_environment_context_result(TBase):
    success: bool | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: bool | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class drop_partition_req_args(TBase):
    dropPartitionReq: DropPartitionRequest
    def __init__(self, dropPartitionReq: DropPartitionRequest | None = ...) -> None: ...

class drop_partition_req_result(TBase):
    success: bool | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: bool | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class drop_partition_by_name_args(TBase):
    db_name: str
    tbl_name: str
    part_name: str
    deleteData: bool
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_name: str | None = ..., deleteData: bool | None = ...) -> None: ...

class drop_partition_by_name_result(TBase):
    success: bool | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: bool | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class drop_partition_by_name_with_environment_context_args(TBase):
    db_name: str
    tbl_name: str
    part_name: str
    deleteData: bool
    environment_context: EnvironmentContext
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_name: str | None = ..., deleteData: bool | None = ..., environment_context: EnvironmentContext | None = ...) -> None: ...

class drop_partition_by_name_with_environment_context_result(TBase):
    success: bool | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: bool | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class drop_partitions_req_args(TBase):
    req: DropPartitionsRequest
    def __init__(self, req: DropPartitionsRequest | None = ...) -> None: ...

class drop_partitions_req_result(TBase):
    success: DropPartitionsResult | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: DropPartitionsResult | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_partition_args(TBase):
    db_name: str
    tbl_name: str
    part_vals: list[str]
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_vals: list[str] | None = ...) -> None: ...

class get_partition_result(TBase):
    success: Partition | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: Partition | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partition_req_args(TBase):
    req: GetPartitionRequest
    def __init__(self, req: GetPartitionRequest | None = ...) -> None: ...

class get_partition_req_result(TBase):
    success: GetPartitionResponse | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: GetPartitionResponse | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class exchange_partition_args(TBase):
    partitionSpecs: dict[str, str]
    source_db: str
    source_table_name: str
    dest_db: str
    dest_table_name: str
    def __init__(self, partitionSpecs: dict[str, str] | None = ..., source_db: str | None = ..., source_table_name: str | None = ..., dest_db: str | None = ..., dest_table_name: str | None = ...) -> None: ...

class exchange_partition_result(TBase):
    success: Partition | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    o3: InvalidObjectException | None
    o4: InvalidInputException | None
    def __init__(self, success: Partition | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ..., o3: InvalidObjectException | None = ..., o4: InvalidInputException | None = ...) -> None: ...

class exchange_partitions_args(TBase):
    partitionSpecs: dict[str, str]
    source_db: str
    source_table_name: str
    dest_db: str
    dest_table_name: str
    def __init__(self, partitionSpecs: dict[str, str] | None = ..., source_db: str | None = ..., source_table_name: str | None = ..., dest_db: str | None = ..., dest_table_name: str | None = ...) -> None: ...

class exchange_partitions_result(TBase):
    success: list[Partition] | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    o3: InvalidObjectException | None
    o4: InvalidInputException | None
    def __init__(self, success: list[Partition] | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ..., o3: InvalidObjectException | None = ..., o4: InvalidInputException | None = ...) -> None: ...

class get_partition_with_auth_args(TBase):
    db_name: str
    tbl_name: str
    part_vals: list[str]
    user_name: str
    group_names: list[str]
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_vals: list[str] | None = ..., user_name: str | None = ..., group_names: list[str] | None = ...) -> None: ...

class get_partition_with_auth_result(TBase):
    success: Partition | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: Partition | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partition_by_name_args(TBase):
    db_name: str
    tbl_name: str
    part_name: str
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_name: str | None = ...) -> None: ...

class get_partition_by_name_result(TBase):
    success: Partition | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: Partition | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partitions_args(TBase):
    db_name: str
    tbl_name: str
    max_parts: int
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., max_parts: int | None = ...) -> None: ...

class get_partitions_result(TBase):
    success: list[Partition] | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: list[Partition] | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_partitions_req_args(TBase):
    req: PartitionsRequest
    def __init__(self, req: PartitionsRequest | None = ...) -> None: ...

class get_partitions_req_result(TBase):
    success: PartitionsResponse | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: PartitionsResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_partitions_with_auth_args(TBase):
    db_name: str
    tbl_name: str
    max_parts: int
    user_name: str
    group_names: list[str]
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., max_parts: int | None = ..., user_name: str | None = ..., group_names: list[str] | None = ...) -> None: ...

class get_partitions_with_auth_result(TBase):
    success: list[Partition] | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: list[Partition] | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_partitions_pspec_args(TBase):
    db_name: str
    tbl_name: str
    max_parts: int
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., max_parts: int | None = ...) -> None: ...

class get_partitions_pspec_result(TBase):
    success: list[PartitionSpec] | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: list[PartitionSpec] | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_partition_names_args(TBase):
    db_name: str
    tbl_name: str
    max_parts: int
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., max_parts: int | None = ...) -> None: ...

class get_partition_names_result(TBase):
    success: list[str] | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class fetch_partition_names_req_args(TBase):
    partitionReq: PartitionsRequest
    def __init__(self, partitionReq: PartitionsRequest | None = ...) -> None: ...

class fetch_partition_names_req_result(TBase):
    success: list[str] | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_partition_values_args(TBase):
    request: PartitionValuesRequest
    def __init__(self, request: PartitionValuesRequest | None = ...) -> None: ...

class get_partition_values_result(TBase):
    success: PartitionValuesResponse | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: PartitionValuesResponse | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partitions_ps_args(TBase):
    db_name: str
    tbl_name: str
    part_vals: list[str]
    max_parts: int
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_vals: list[str] | None = ..., max_parts: int | None = ...) -> None: ...

class get_partitions_ps_result(TBase):
    success: list[Partition] | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: list[Partition] | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partitions_ps_with_auth_args(TBase):
    db_name: str
    tbl_name: str
    part_vals: list[str]
    max_parts: int
    user_name: str
    group_names: list[str]
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_vals: list[str] | None = ..., max_parts: int | None = ..., user_name: str | None = ..., group_names: list[str] | None = ...) -> None: ...

class get_partitions_ps_with_auth_result(TBase):
    success: list[Partition] | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: list[Partition] | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_partitions_ps_with_auth_req_args(TBase):
    req: GetPartitionsPsWithAuthRequest
    def __init__(self, req: GetPartitionsPsWithAuthRequest | None = ...) -> None: ...

class get_partitions_ps_with_auth_req_result(TBase):
    success: GetPartitionsPsWithAuthResponse | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: GetPartitionsPsWithAuthResponse | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partition_names_ps_args(TBase):
    db_name: str
    tbl_name: str
    part_vals: list[str]
    max_parts: int
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_vals: list[str] | None = ..., max_parts: int | None = ...) -> None: ...

class get_partition_names_ps_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partition_names_ps_req_args(TBase):
    req: GetPartitionNamesPsRequest
    def __init__(self, req: GetPartitionNamesPsRequest | None = ...) -> None: ...

class get_partition_names_ps_req_result(TBase):
    success: GetPartitionNamesPsResponse | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: GetPartitionNamesPsResponse | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partition_names_req_args(TBase):
    req: PartitionsByExprRequest
    def __init__(self, req: PartitionsByExprRequest | None = ...) -> None: ...

class get_partition_names_req_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partitions_by_filter_args(TBase):
    db_name: str
    tbl_name: str
    filter: str
    max_parts: int
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., filter: str | None = ..., max_parts: int | None = ...) -> None: ...

class get_partitions_by_filter_result(TBase):
    success: list[Partition] | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: list[Partition] | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partitions_by_filter_req_args(TBase):
    req: GetPartitionsByFilterRequest
    def __init__(self, req: GetPartitionsByFilterRequest | None = ...) -> None: ...

class get_partitions_by_filter_req_result(TBase):
    success: list[Partition] | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: list[Partition] | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_part_specs_by_filter_args(TBase):
    db_name: str
    tbl_name: str
    filter: str
    max_parts: int
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., filter: str | None = ..., max_parts: int | None = ...) -> None: ...

class get_part_specs_by_filter_result(TBase):
    success: list[PartitionSpec] | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: list[PartitionSpec] | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partitions_by_expr_args(TBase):
    req: PartitionsByExprRequest
    def __init__(self, req: PartitionsByExprRequest | None = ...) -> None: ...

class get_partitions_by_expr_result(TBase):
    success: PartitionsByExprResult | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: PartitionsByExprResult | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partitions_spec_by_expr_args(TBase):
    req: PartitionsByExprRequest
    def __init__(self, req: PartitionsByExprRequest | None = ...) -> None: ...

class get_partitions_spec_by_expr_result(TBase):
    success: PartitionsSpecByExprResult | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: PartitionsSpecByExprResult | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_num_partitions_by_filter_args(TBase):
    db_name: str
    tbl_name: str
    filter: str
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., filter: str | None = ...) -> None: ...

class get_num_partitions_by_filter_result(TBase):
    success: int | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: int | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_partitions_by_names_args(TBase):
    db_name: str
    tbl_name: str
    names: list[str]
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., names: list[str] | None = ...) -> None: ...

class get_partitions_by_names_result(TBase):
    success: list[Partition] | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    o3: InvalidObjectException | None
    def __init__(self, success: list[Partition] | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ..., o3: InvalidObjectException | None = ...) -> None: ...

class get_partitions_by_names_req_args(TBase):
    req: GetPartitionsByNamesRequest
    def __init__(self, req: GetPartitionsByNamesRequest | None = ...) -> None: ...

class get_partitions_by_names_req_result(TBase):
    success: GetPartitionsByNamesResult | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    o3: InvalidObjectException | None
    def __init__(self, success: GetPartitionsByNamesResult | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ..., o3: InvalidObjectException | None = ...) -> None: ...

class alter_partition_args(TBase):
    db_name: str
    tbl_name: str
    new_part: Partition
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., new_part: Partition | None = ...) -> None: ...

class alter_partition_result(TBase):
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class alter_partitions_args(TBase):
    db_name: str
    tbl_name: str
    new_parts: list[Partition]
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., new_parts: list[Partition] | None = ...) -> None: ...

class alter_partitions_result(TBase):
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class alter_partitions_with_environment_context_args(TBase):
    db_name: str
    tbl_name: str
    new_parts: list[Partition]
    environment_context: EnvironmentContext
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., new_parts: list[Partition] | None = ..., environment_context: EnvironmentContext | None = ...) -> None: ...

class alter_partitions_with_environment_context_result(TBase):
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class alter_partitions_req_args(TBase):
    req: AlterPartitionsRequest
    def __init__(self, req: AlterPartitionsRequest | None = ...) -> None: ...

class alter_partitions_req_result(TBase):
    success: AlterPartitionsResponse | None
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, success: AlterPartitionsResponse | None = ..., o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class alter_partition_with_environment_context_args(TBase):
    db_name: str
    tbl_name: str
    new_part: Partition
    environment_context: EnvironmentContext
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., new_part: Partition | None = ..., environment_context: EnvironmentContext | None = ...) -> None: ...

class alter_partition_with_environment_context_result(TBase):
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class rename_partition_args(TBase):
    db_name: str
    tbl_name: str
    part_vals: list[str]
    new_part: Partition
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_vals: list[str] | None = ..., new_part: Partition | None = ...) -> None: ...

class rename_partition_result(TBase):
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class rename_partition_req_args(TBase):
    req: RenamePartitionRequest
    def __init__(self, req: RenamePartitionRequest | None = ...) -> None: ...

class rename_partition_req_result(TBase):
    success: RenamePartitionResponse | None
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, success: RenamePartitionResponse | None = ..., o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class partition_name_has_valid_characters_args(TBase):
    part_vals: list[str]
    throw_exception: bool
    def __init__(self, part_vals: list[str] | None = ..., throw_exception: bool | None = ...) -> None: ...

class partition_name_has_valid_characters_result(TBase):
    success: bool | None
    o1: MetaException | None
    def __init__(self, success: bool | None = ..., o1: MetaException | None = ...) -> None: ...

class partition_name_to_vals_args(TBase):
    part_name: str
    def __init__(self, part_name: str | None = ...) -> None: ...

class partition_name_to_vals_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class partition_name_to_spec_args(TBase):
    part_name: str
    def __init__(self, part_name: str | None = ...) -> None: ...

class partition_name_to_spec_result(TBase):
    success: dict[str, str] | None
    o1: MetaException | None
    def __init__(self, success: dict[str, str] | None = ..., o1: MetaException | None = ...) -> None: ...

class markPartitionForEvent_args(TBase):
    db_name: str
    tbl_name: str
    part_vals: dict[str, str]
    eventType: int
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_vals: dict[str, str] | None = ..., eventType: int | None = ...) -> None: ...

class markPartitionForEvent_result(TBase):
    o1: MetaException | None
    o2: NoSuchObjectException | None
    o3: UnknownDBException | None
    o4: UnknownTableException | None
    o5: UnknownPartitionException | None
    o6: InvalidPartitionException | None
    def __init__(self, o1: MetaException | None = ..., o2: NoSuchObjectException | None = ..., o3: UnknownDBException | None = ..., o4: UnknownTableException | None = ..., o5: UnknownPartitionException | None = ..., o6: InvalidPartitionException | None = ...) -> None: ...

class isPartitionMarkedForEvent_args(TBase):
    db_name: str
    tbl_name: str
    part_vals: dict[str, str]
    eventType: int
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_vals: dict[str, str] | None = ..., eventType: int | None = ...) -> None: ...

class isPartitionMarkedForEvent_result(TBase):
    success: bool | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    o3: UnknownDBException | None
    o4: UnknownTableException | None
    o5: UnknownPartitionException | None
    o6: InvalidPartitionException | None
    def __init__(self, success: bool | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ..., o3: UnknownDBException | None = ..., o4: UnknownTableException | None = ..., o5: UnknownPartitionException | None = ..., o6: InvalidPartitionException | None = ...) -> None: ...

class get_partitions_with_specs_args(TBase):
    request: GetPartitionsRequest
    def __init__(self, request: GetPartitionsRequest | None = ...) -> None: ...

class get_partitions_with_specs_result(TBase):
    success: GetPartitionsResponse | None
    o1: MetaException | None
    def __init__(self, success: GetPartitionsResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class update_table_column_statistics_args(TBase):
    stats_obj: ColumnStatistics
    def __init__(self, stats_obj: ColumnStatistics | None = ...) -> None: ...

class update_table_column_statistics_result(TBase):
    success: bool | None
    o1: NoSuchObjectException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    o4: InvalidInputException | None
    def __init__(self, success: bool | None = ..., o1: NoSuchObjectException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ..., o4: InvalidInputException | None = ...) -> None: ...

class update_partition_column_statistics_args(TBase):
    stats_obj: ColumnStatistics
    def __init__(self, stats_obj: ColumnStatistics | None = ...) -> None: ...

class update_partition_column_statistics_result(TBase):
    success: bool | None
    o1: NoSuchObjectException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    o4: InvalidInputException | None
    def __init__(self, success: bool | None = ..., o1: NoSuchObjectException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ..., o4: InvalidInputException | None = ...) -> None: ...

class update_table_column_statistics_req_args(TBase):
    req: SetPartitionsStatsRequest
    def __init__(self, req: SetPartitionsStatsRequest | None = ...) -> None: ...

class update_table_column_statistics_req_result(TBase):
    success: SetPartitionsStatsResponse | None
    o1: NoSuchObjectException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    o4: InvalidInputException | None
    def __init__(self, success: SetPartitionsStatsResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ..., o4: InvalidInputException | None = ...) -> None: ...

class update_partition_column_statistics_req_args(TBase):
    req: SetPartitionsStatsRequest
    def __init__(self, req: SetPartitionsStatsRequest | None = ...) -> None: ...

class update_partition_column_statistics_req_result(TBase):
    success: SetPartitionsStatsResponse | None
    o1: NoSuchObjectException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    o4: InvalidInputException | None
    def __init__(self, success: SetPartitionsStatsResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ..., o4: InvalidInputException | None = ...) -> None: ...

class update_transaction_statistics_args(TBase):
    req: UpdateTransactionalStatsRequest
    def __init__(self, req: UpdateTransactionalStatsRequest | None = ...) -> None: ...

class update_transaction_statistics_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class get_table_column_statistics_args(TBase):
    db_name: str
    tbl_name: str
    col_name: str
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., col_name: str | None = ...) -> None: ...

class get_table_column_statistics_result(TBase):
    success: ColumnStatistics | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    o3: InvalidInputException | None
    o4: InvalidObjectException | None
    def __init__(self, success: ColumnStatistics | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ..., o3: InvalidInputException | None = ..., o4: InvalidObjectException | None = ...) -> None: ...

class get_partition_column_statistics_args(TBase):
    db_name: str
    tbl_name: str
    part_name: str
    col_name: str
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_name: str | None = ..., col_name: str | None = ...) -> None: ...

class get_partition_column_statistics_result(TBase):
    success: ColumnStatistics | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    o3: InvalidInputException | None
    o4: InvalidObjectException | None
    def __init__(self, success: ColumnStatistics | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ..., o3: InvalidInputException | None = ..., o4: InvalidObjectException | None = ...) -> None: ...

class get_table_statistics_req_args(TBase):
    request: TableStatsRequest
    def __init__(self, request: TableStatsRequest | None = ...) -> None: ...

class get_table_statistics_req_result(TBase):
    success: TableStatsResult | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: TableStatsResult | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_partitions_statistics_req_args(TBase):
    request: PartitionsStatsRequest
    def __init__(self, request: PartitionsStatsRequest | None = ...) -> None: ...

class get_partitions_statistics_req_result(TBase):
    success: PartitionsStatsResult | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: PartitionsStatsResult | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_aggr_stats_for_args(TBase):
    request: PartitionsStatsRequest
    def __init__(self, request: PartitionsStatsRequest | None = ...) -> None: ...

class get_aggr_stats_for_result(TBase):
    success: AggrStats | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: AggrStats | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class set_aggr_stats_for_args(TBase):
    request: SetPartitionsStatsRequest
    def __init__(self, request: SetPartitionsStatsRequest | None = ...) -> None: ...

class set_aggr_stats_for_result(TBase):
    success: bool | None
    o1: NoSuchObjectException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    o4: InvalidInputException | None
    def __init__(self, success: bool | None = ..., o1: NoSuchObjectException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ..., o4: InvalidInputException | None = ...) -> None: ...

class delete_partition_column_statistics_args(TBase):
    db_name: str
    tbl_name: str
    part_name: str
    col_name: str
    engine: str
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., part_name: str | None = ..., col_name: str | None = ..., engine: str | None = ...) -> None: ...

class delete_partition_column_statistics_result(TBase):
    success: bool | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    o3: InvalidObjectException | None
    o4: InvalidInputException | None
    def __init__(self, success: bool | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ..., o3: InvalidObjectException | None = ..., o4: InvalidInputException | None = ...) -> None: ...

class delete_table_column_statistics_args(TBase):
    db_name: str
    tbl_name: str
    col_name: str
    engine: str
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., col_name: str | None = ..., engine: str | None = ...) -> None: ...

class delete_table_column_statistics_result(TBase):
    success: bool | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    o3: InvalidObjectException | None
    o4: InvalidInputException | None
    def __init__(self, success: bool | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ..., o3: InvalidObjectException | None = ..., o4: InvalidInputException | None = ...) -> None: ...

class delete_column_statistics_req_args(TBase):
    req: DeleteColumnStatisticsRequest
    def __init__(self, req: DeleteColumnStatisticsRequest | None = ...) -> None: ...

class delete_column_statistics_req_result(TBase):
    success: bool | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    o3: InvalidObjectException | None
    o4: InvalidInputException | None
    def __init__(self, success: bool | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ..., o3: InvalidObjectException | None = ..., o4: InvalidInputException | None = ...) -> None: ...

class drop_constraint_args(TBase):
    req: DropConstraintRequest
    def __init__(self, req: DropConstraintRequest | None = ...) -> None: ...

class drop_constraint_result(TBase):
    o1: NoSuchObjectException | None
    o3: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class add_primary_key_args(TBase):
    req: AddPrimaryKeyRequest
    def __init__(self, req: AddPrimaryKeyRequest | None = ...) -> None: ...

class add_primary_key_result(TBase):
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class add_foreign_key_args(TBase):
    req: AddForeignKeyRequest
    def __init__(self, req: AddForeignKeyRequest | None = ...) -> None: ...

class add_foreign_key_result(TBase):
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class add_unique_constraint_args(TBase):
    req: AddUniqueConstraintRequest
    def __init__(self, req: AddUniqueConstraintRequest | None = ...) -> None: ...

class add_unique_constraint_result(TBase):
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class add_not_null_constraint_args(TBase):
    req: AddNotNullConstraintRequest
    def __init__(self, req: AddNotNullConstraintRequest | None = ...) -> None: ...

class add_not_null_constraint_result(TBase):
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class add_default_constraint_args(TBase):
    req: AddDefaultConstraintRequest
    def __init__(self, req: AddDefaultConstraintRequest | None = ...) -> None: ...

class add_default_constraint_result(TBase):
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class add_check_constraint_args(TBase):
    req: AddCheckConstraintRequest
    def __init__(self, req: AddCheckConstraintRequest | None = ...) -> None: ...

class add_check_constraint_result(TBase):
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_primary_keys_args(TBase):
    request: PrimaryKeysRequest
    def __init__(self, request: PrimaryKeysRequest | None = ...) -> None: ...

class get_primary_keys_result(TBase):
    success: PrimaryKeysResponse | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: PrimaryKeysResponse | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_foreign_keys_args(TBase):
    request: ForeignKeysRequest
    def __init__(self, request: ForeignKeysRequest | None = ...) -> None: ...

class get_foreign_keys_result(TBase):
    success: ForeignKeysResponse | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: ForeignKeysResponse | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_unique_constraints_args(TBase):
    request: UniqueConstraintsRequest
    def __init__(self, request: UniqueConstraintsRequest | None = ...) -> None: ...

class get_unique_constraints_result(TBase):
    success: UniqueConstraintsResponse | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: UniqueConstraintsResponse | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_not_null_constraints_args(TBase):
    request: NotNullConstraintsRequest
    def __init__(self, request: NotNullConstraintsRequest | None = ...) -> None: ...

class get_not_null_constraints_result(TBase):
    success: NotNullConstraintsResponse | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: NotNullConstraintsResponse | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_default_constraints_args(TBase):
    request: DefaultConstraintsRequest
    def __init__(self, request: DefaultConstraintsRequest | None = ...) -> None: ...

class get_default_constraints_result(TBase):
    success: DefaultConstraintsResponse | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: DefaultConstraintsResponse | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_check_constraints_args(TBase):
    request: CheckConstraintsRequest
    def __init__(self, request: CheckConstraintsRequest | None = ...) -> None: ...

class get_check_constraints_result(TBase):
    success: CheckConstraintsResponse | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: CheckConstraintsResponse | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_all_table_constraints_args(TBase):
    request: AllTableConstraintsRequest
    def __init__(self, request: AllTableConstraintsRequest | None = ...) -> None: ...

class get_all_table_constraints_result(TBase):
    success: AllTableConstraintsResponse | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: AllTableConstraintsResponse | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class create_function_args(TBase):
    func: Function
    def __init__(self, func: Function | None = ...) -> None: ...

class create_function_result(TBase):
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    o4: NoSuchObjectException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ..., o4: NoSuchObjectException | None = ...) -> None: ...

class drop_function_args(TBase):
    dbName: str
    funcName: str
    def __init__(self, dbName: str | None = ..., funcName: str | None = ...) -> None: ...

class drop_function_result(TBase):
    o1: NoSuchObjectException | None
    o3: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class alter_function_args(TBase):
    dbName: str
    funcName: str
    newFunc: Function
    def __init__(self, dbName: str | None = ..., funcName: str | None = ..., newFunc: Function | None = ...) -> None: ...

class alter_function_result(TBase):
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_functions_args(TBase):
    dbName: str
    pattern: str
    def __init__(self, dbName: str | None = ..., pattern: str | None = ...) -> None: ...

class get_functions_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class get_functions_req_args(TBase):
    request: GetFunctionsRequest
    def __init__(self, request: GetFunctionsRequest | None = ...) -> None: ...

class get_functions_req_result(TBase):
    success: GetFunctionsResponse | None
    o1: MetaException | None
    def __init__(self, success: GetFunctionsResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class get_function_args(TBase):
    dbName: str
    funcName: str
    def __init__(self, dbName: str | None = ..., funcName: str | None = ...) -> None: ...

class get_function_result(TBase):
    success: Function | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: Function | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_all_functions_args(TBase):
    def __init__(self) -> None: ...

class get_all_functions_result(TBase):
    success: GetAllFunctionsResponse | None
    o1: MetaException | None
    def __init__(self, success: GetAllFunctionsResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class create_role_args(TBase):
    role: Role
    def __init__(self, role: Role | None = ...) -> None: ...

class create_role_result(TBase):
    success: bool | None
    o1: MetaException | None
    def __init__(self, success: bool | None = ..., o1: MetaException | None = ...) -> None: ...

class drop_role_args(TBase):
    role_name: str
    def __init__(self, role_name: str | None = ...) -> None: ...

class drop_role_result(TBase):
    success: bool | None
    o1: MetaException | None
    def __init__(self, success: bool | None = ..., o1: MetaException | None = ...) -> None: ...

class get_role_names_args(TBase):
    def __init__(self) -> None: ...

class get_role_names_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class grant_role_args(TBase):
    role_name: str
    principal_name: str
    principal_type: int
    grantor: str
    grantorType: int
    grant_option: bool
    def __init__(self, role_name: str | None = ..., principal_name: str | None = ..., principal_type: int | None = ..., grantor: str | None = ..., grantorType: int | None = ..., grant_option: bool | None = ...) -> None: ...

class grant_role_result(TBase):
    success: bool | None
    o1: MetaException | None
    def __init__(self, success: bool | None = ..., o1: MetaException | None = ...) -> None: ...

class revoke_role_args(TBase):
    role_name: str
    principal_name: str
    principal_type: int
    def __init__(self, role_name: str | None = ..., principal_name: str | None = ..., principal_type: int | None = ...) -> None: ...

class revoke_role_result(TBase):
    success: bool | None
    o1: MetaException | None
    def __init__(self, success: bool | None = ..., o1: MetaException | None = ...) -> None: ...

class list_roles_args(TBase):
    principal_name: str
    principal_type: int
    def __init__(self, principal_name: str | None = ..., principal_type: int | None = ...) -> None: ...

class list_roles_result(TBase):
    success: list[Role] | None
    o1: MetaException | None
    def __init__(self, success: list[Role] | None = ..., o1: MetaException | None = ...) -> None: ...

class grant_revoke_role_args(TBase):
    request: GrantRevokeRoleRequest
    def __init__(self, request: GrantRevokeRoleRequest | None = ...) -> None: ...

class grant_revoke_role_result(TBase):
    success: GrantRevokeRoleResponse | None
    o1: MetaException | None
    def __init__(self, success: GrantRevokeRoleResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class get_principals_in_role_args(TBase):
    request: GetPrincipalsInRoleRequest
    def __init__(self, request: GetPrincipalsInRoleRequest | None = ...) -> None: ...

class get_principals_in_role_result(TBase):
    success: GetPrincipalsInRoleResponse | None
    o1: MetaException | None
    def __init__(self, success: GetPrincipalsInRoleResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class get_role_grants_for_principal_args(TBase):
    request: GetRoleGrantsForPrincipalRequest
    def __init__(self, request: GetRoleGrantsForPrincipalRequest | None = ...) -> None: ...

class get_role_grants_for_principal_result(TBase):
    success: GetRoleGrantsForPrincipalResponse | None
    o1: MetaException | None
    def __init__(self, success: GetRoleGrantsForPrincipalResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class get_privilege_set_args(TBase):
    hiveObject: HiveObjectRef
    user_name: str
    group_names: list[str]
    def __init__(self, hiveObject: HiveObjectRef | None = ..., user_name: str | None = ..., group_names: list[str] | None = ...) -> None: ...

class get_privilege_set_result(TBase):
    success: PrincipalPrivilegeSet | None
    o1: MetaException | None
    def __init__(self, success: PrincipalPrivilegeSet | None = ..., o1: MetaException | None = ...) -> None: ...

class list_privileges_args(TBase):
    principal_name: str
    principal_type: int
    hiveObject: HiveObjectRef
    def __init__(self, principal_name: str | None = ..., principal_type: int | None = ..., hiveObject: HiveObjectRef | None = ...) -> None: ...

class list_privileges_result(TBase):
    success: list[HiveObjectPrivilege] | None
    o1: MetaException | None
    def __init__(self, success: list[HiveObjectPrivilege] | None = ..., o1: MetaException | None = ...) -> None: ...

class grant_privileges_args(TBase):
    privileges: PrivilegeBag
    def __init__(self, privileges: PrivilegeBag | None = ...) -> None: ...

class grant_privileges_result(TBase):
    success: bool | None
    o1: MetaException | None
    def __init__(self, success: bool | None = ..., o1: MetaException | None = ...) -> None: ...

class revoke_privileges_args(TBase):
    privileges: PrivilegeBag
    def __init__(self, privileges: PrivilegeBag | None = ...) -> None: ...

class revoke_privileges_result(TBase):
    success: bool | None
    o1: MetaException | None
    def __init__(self, success: bool | None = ..., o1: MetaException | None = ...) -> None: ...

class grant_revoke_privileges_args(TBase):
    request: GrantRevokePrivilegeRequest
    def __init__(self, request: GrantRevokePrivilegeRequest | None = ...) -> None: ...

class grant_revoke_privileges_result(TBase):
    success: GrantRevokePrivilegeResponse | None
    o1: MetaException | None
    def __init__(self, success: GrantRevokePrivilegeResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class refresh_privileges_args(TBase):
    objToRefresh: HiveObjectRef
    authorizer: str
    grantRequest: GrantRevokePrivilegeRequest
    def __init__(self, objToRefresh: HiveObjectRef | None = ..., authorizer: str | None = ..., grantRequest: GrantRevokePrivilegeRequest | None = ...) -> None: ...

class refresh_privileges_result(TBase):
    success: GrantRevokePrivilegeResponse | None
    o1: MetaException | None
    def __init__(self, success: GrantRevokePrivilegeResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class set_ugi_args(TBase):
    user_name: str
    group_names: list[str]
    def __init__(self, user_name: str | None = ..., group_names: list[str] | None = ...) -> None: ...

class set_ugi_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class get_delegation_token_args(TBase):
    token_owner: str
    renewer_kerberos_principal_name: str
    def __init__(self, token_owner: str | None = ..., renewer_kerberos_principal_name: str | None = ...) -> None: ...

class get_delegation_token_result(TBase):
    success: str | None
    o1: MetaException | None
    def __init__(self, success: str | None = ..., o1: MetaException | None = ...) -> None: ...

class renew_delegation_token_args(TBase):
    token_str_form: str
    def __init__(self, token_str_form: str | None = ...) -> None: ...

class renew_delegation_token_result(TBase):
    success: int | None
    o1: MetaException | None
    def __init__(self, success: int | None = ..., o1: MetaException | None = ...) -> None: ...

class cancel_delegation_token_args(TBase):
    token_str_form: str
    def __init__(self, token_str_form: str | None = ...) -> None: ...

class cancel_delegation_token_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class add_token_args(TBase):
    token_identifier: str
    delegation_token: str
    def __init__(self, token_identifier: str | None = ..., delegation_token: str | None = ...) -> None: ...

class add_token_result(TBase):
    success: bool | None
    def __init__(self, success: bool | None = ...) -> None: ...

class remove_token_args(TBase):
    token_identifier: str
    def __init__(self, token_identifier: str | None = ...) -> None: ...

class remove_token_result(TBase):
    success: bool | None
    def __init__(self, success: bool | None = ...) -> None: ...

class get_token_args(TBase):
    token_identifier: str
    def __init__(self, token_identifier: str | None = ...) -> None: ...

class get_token_result(TBase):
    success: str | None
    def __init__(self, success: str | None = ...) -> None: ...

class get_all_token_identifiers_args(TBase):
    def __init__(self) -> None: ...

class get_all_token_identifiers_result(TBase):
    success: list[str] | None
    def __init__(self, success: list[str] | None = ...) -> None: ...

class add_master_key_args(TBase):
    key: str
    def __init__(self, key: str | None = ...) -> None: ...

class add_master_key_result(TBase):
    success: int | None
    o1: MetaException | None
    def __init__(self, success: int | None = ..., o1: MetaException | None = ...) -> None: ...

class update_master_key_args(TBase):
    seq_number: int
    key: str
    def __init__(self, seq_number: int | None = ..., key: str | None = ...) -> None: ...

class update_master_key_result(TBase):
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class remove_master_key_args(TBase):
    key_seq: int
    def __init__(self, key_seq: int | None = ...) -> None: ...

class remove_master_key_result(TBase):
    success: bool | None
    def __init__(self, success: bool | None = ...) -> None: ...

class get_master_keys_args(TBase):
    def __init__(self) -> None: ...

class get_master_keys_result(TBase):
    success: list[str] | None
    def __init__(self, success: list[str] | None = ...) -> None: ...

class get_open_txns_args(TBase):
    def __init__(self) -> None: ...

class get_open_txns_result(TBase):
    success: GetOpenTxnsResponse | None
    def __init__(self, success: GetOpenTxnsResponse | None = ...) -> None: ...

class get_open_txns_info_args(TBase):
    def __init__(self) -> None: ...

class get_open_txns_info_result(TBase):
    success: GetOpenTxnsInfoResponse | None
    def __init__(self, success: GetOpenTxnsInfoResponse | None = ...) -> None: ...

class open_txns_args(TBase):
    rqst: OpenTxnRequest
    def __init__(self, rqst: OpenTxnRequest | None = ...) -> None: ...

class open_txns_result(TBase):
    success: OpenTxnsResponse | None
    def __init__(self, success: OpenTxnsResponse | None = ...) -> None: ...

class abort_txn_args(TBase):
    rqst: AbortTxnRequest
    def __init__(self, rqst: AbortTxnRequest | None = ...) -> None: ...

class abort_txn_result(TBase):
    o1: NoSuchTxnException | None
    def __init__(self, o1: NoSuchTxnException | None = ...) -> None: ...

class abort_txns_args(TBase):
    rqst: AbortTxnsRequest
    def __init__(self, rqst: AbortTxnsRequest | None = ...) -> None: ...

class abort_txns_result(TBase):
    o1: NoSuchTxnException | None
    def __init__(self, o1: NoSuchTxnException | None = ...) -> None: ...

class commit_txn_args(TBase):
    rqst: CommitTxnRequest
    def __init__(self, rqst: CommitTxnRequest | None = ...) -> None: ...

class commit_txn_result(TBase):
    o1: NoSuchTxnException | None
    o2: TxnAbortedException | None
    def __init__(self, o1: NoSuchTxnException | None = ..., o2: TxnAbortedException | None = ...) -> None: ...

class get_latest_txnid_in_conflict_args(TBase):
    txnId: int
    def __init__(self, txnId: int | None = ...) -> None: ...

class get_latest_txnid_in_conflict_result(TBase):
    success: int | None
    o1: MetaException | None
    def __init__(self, success: int | None = ..., o1: MetaException | None = ...) -> None: ...

class repl_tbl_writeid_state_args(TBase):
    rqst: ReplTblWriteIdStateRequest
    def __init__(self, rqst: ReplTblWriteIdStateRequest | None = ...) -> None: ...

class repl_tbl_writeid_state_result(TBase):
    def __init__(self) -> None: ...

class get_valid_write_ids_args(TBase):
    rqst: GetValidWriteIdsRequest
    def __init__(self, rqst: GetValidWriteIdsRequest | None = ...) -> None: ...

class get_valid_write_ids_result(TBase):
    success: GetValidWriteIdsResponse | None
    o1: NoSuchTxnException | None
    o2: MetaException | None
    def __init__(self, success: GetValidWriteIdsResponse | None = ..., o1: NoSuchTxnException | None = ..., o2: MetaException | None = ...) -> None: ...

class add_write_ids_to_min_history_args(TBase):
    txnId: int
    writeIds: dict[str, int]
    def __init__(self, txnId: int | None = ..., writeIds: dict[str, int] | None = ...) -> None: ...

class add_write_ids_to_min_history_result(TBase):
    o2: MetaException | None
    def __init__(self, o2: MetaException | None = ...) -> None: ...

class allocate_table_write_ids_args(TBase):
    rqst: AllocateTableWriteIdsRequest
    def __init__(self, rqst: AllocateTableWriteIdsRequest | None = ...) -> None: ...

class allocate_table_write_ids_result(TBase):
    success: AllocateTableWriteIdsResponse | None
    o1: NoSuchTxnException | None
    o2: TxnAbortedException | None
    o3: MetaException | None
    def __init__(self, success: AllocateTableWriteIdsResponse | None = ..., o1: NoSuchTxnException | None = ..., o2: TxnAbortedException | None = ..., o3: MetaException | None = ...) -> None: ...

class get_max_allocated_table_write_id_args(TBase):
    rqst: MaxAllocatedTableWriteIdRequest
    def __init__(self, rqst: MaxAllocatedTableWriteIdRequest | None = ...) -> None: ...

class get_max_allocated_table_write_id_result(TBase):
    success: MaxAllocatedTableWriteIdResponse | None
    o1: MetaException | None
    def __init__(self, success: MaxAllocatedTableWriteIdResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class seed_write_id_args(TBase):
    rqst: SeedTableWriteIdsRequest
    def __init__(self, rqst: SeedTableWriteIdsRequest | None = ...) -> None: ...

class seed_write_id_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class seed_txn_id_args(TBase):
    rqst: SeedTxnIdRequest
    def __init__(self, rqst: SeedTxnIdRequest | None = ...) -> None: ...

class seed_txn_id_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class heartbeat_txn_range_args(TBase):
    txns: HeartbeatTxnRangeRequest
    def __init__(self, txns: HeartbeatTxnRangeRequest | None = ...) -> None: ...

class heartbeat_txn_range_result(TBase):
    success: HeartbeatTxnRangeResponse | None
    def __init__(self, success: HeartbeatTxnRangeResponse | None = ...) -> None: ...

class add_dynamic_partitions_args(TBase):
    rqst: AddDynamicPartitions
    def __init__(self, rqst: AddDynamicPartitions | None = ...) -> None: ...

class add_dynamic_partitions_result(TBase):
    o1: NoSuchTxnException | None
    o2: TxnAbortedException | None
    def __init__(self, o1: NoSuchTxnException | None = ..., o2: TxnAbortedException | None = ...) -> None: ...

class get_open_txns_req_args(TBase):
    getOpenTxnsRequest: GetOpenTxnsRequest
    def __init__(self, getOpenTxnsRequest: GetOpenTxnsRequest | None = ...) -> None: ...

class get_open_txns_req_result(TBase):
    success: GetOpenTxnsResponse | None
    def __init__(self, success: GetOpenTxnsResponse | None = ...) -> None: ...

class get_replayed_txns_for_policy_args(TBase):
    policyName: str
    def __init__(self, policyName: str | None = ...) -> None: ...

class get_replayed_txns_for_policy_result(TBase):
    success: ReplayedTxnsForPolicyResult | None
    o1: MetaException | None
    def __init__(self, success: ReplayedTxnsForPolicyResult | None = ..., o1: MetaException | None = ...) -> None: ...

class lock_args(TBase):
    rqst: LockRequest
    def __init__(self, rqst: LockRequest | None = ...) -> None: ...

class lock_result(TBase):
    success: LockResponse | None
    o1: NoSuchTxnException | None
    o2: TxnAbortedException | None
    def __init__(self, success: LockResponse | None = ..., o1: NoSuchTxnException | None = ..., o2: TxnAbortedException | None = ...) -> None: ...

class check_lock_args(TBase):
    rqst: CheckLockRequest
    def __init__(self, rqst: CheckLockRequest | None = ...) -> None: ...

class check_lock_result(TBase):
    success: LockResponse | None
    o1: NoSuchTxnException | None
    o2: TxnAbortedException | None
    o3: NoSuchLockException | None
    def __init__(self, success: LockResponse | None = ..., o1: NoSuchTxnException | None = ..., o2: TxnAbortedException | None = ..., o3: NoSuchLockException | None = ...) -> None: ...

class unlock_args(TBase):
    rqst: UnlockRequest
    def __init__(self, rqst: UnlockRequest | None = ...) -> None: ...

class unlock_result(TBase):
    o1: NoSuchLockException | None
    o2: TxnOpenException | None
    def __init__(self, o1: NoSuchLockException | None = ..., o2: TxnOpenException | None = ...) -> None: ...

class show_locks_args(TBase):
    rqst: ShowLocksRequest
    def __init__(self, rqst: ShowLocksRequest | None = ...) -> None: ...

class show_locks_result(TBase):
    success: ShowLocksResponse | None
    def __init__(self, success: ShowLocksResponse | None = ...) -> None: ...

class heartbeat_args(TBase):
    ids: HeartbeatRequest
    def __init__(self, ids: HeartbeatRequest | None = ...) -> None: ...

class heartbeat_result(TBase):
    o1: NoSuchLockException | None
    o2: NoSuchTxnException | None
    o3: TxnAbortedException | None
    def __init__(self, o1: NoSuchLockException | None = ..., o2: NoSuchTxnException | None = ..., o3: TxnAbortedException | None = ...) -> None: ...

class get_lock_materialization_rebuild_args(TBase):
    dbName: str
    tableName: str
    txnId: int
    def __init__(self, dbName: str | None = ..., tableName: str | None = ..., txnId: int | None = ...) -> None: ...

class get_lock_materialization_rebuild_result(TBase):
    success: LockResponse | None
    def __init__(self, success: LockResponse | None = ...) -> None: ...

class heartbeat_lock_materialization_rebuild_args(TBase):
    dbName: str
    tableName: str
    txnId: int
    def __init__(self, dbName: str | None = ..., tableName: str | None = ..., txnId: int | None = ...) -> None: ...

class heartbeat_lock_materialization_rebuild_result(TBase):
    success: bool | None
    def __init__(self, success: bool | None = ...) -> None: ...

class get_lock_materialization_rebuild_req_args(TBase):
    req: LockMaterializationRebuildRequest
    def __init__(self, req: LockMaterializationRebuildRequest | None = ...) -> None: ...

class get_lock_materialization_rebuild_req_result(TBase):
    success: LockResponse | None
    def __init__(self, success: LockResponse | None = ...) -> None: ...

class heartbeat_lock_materialization_rebuild_req_args(TBase):
    req: LockMaterializationRebuildRequest
    def __init__(self, req: LockMaterializationRebuildRequest | None = ...) -> None: ...

class heartbeat_lock_materialization_rebuild_req_result(TBase):
    success: bool | None
    def __init__(self, success: bool | None = ...) -> None: ...

class abort_Compactions_args(TBase):
    rqst: AbortCompactionRequest
    def __init__(self, rqst: AbortCompactionRequest | None = ...) -> None: ...

class abort_Compactions_result(TBase):
    success: AbortCompactResponse | None
    def __init__(self, success: AbortCompactResponse | None = ...) -> None: ...

class compact_args(TBase):
    rqst: CompactionRequest
    def __init__(self, rqst: CompactionRequest | None = ...) -> None: ...

class compact_result(TBase):
    def __init__(self) -> None: ...

class compact2_args(TBase):
    rqst: CompactionRequest
    def __init__(self, rqst: CompactionRequest | None = ...) -> None: ...

class compact2_result(TBase):
    success: CompactionResponse | None
    def __init__(self, success: CompactionResponse | None = ...) -> None: ...

class show_compact_args(TBase):
    rqst: ShowCompactRequest
    def __init__(self, rqst: ShowCompactRequest | None = ...) -> None: ...

class show_compact_result(TBase):
    success: ShowCompactResponse | None
    def __init__(self, success: ShowCompactResponse | None = ...) -> None: ...

class submit_for_cleanup_args(TBase):
    o1: CompactionRequest
    o2: int
    o3: int
    def __init__(self, o1: CompactionRequest | None = ..., o2: int | None = ..., o3: int | None = ...) -> None: ...

class submit_for_cleanup_result(TBase):
    success: bool | None
    o1: MetaException | None
    def __init__(self, success: bool | None = ..., o1: MetaException | None = ...) -> None: ...

class find_next_compact_args(TBase):
    workerId: str
    def __init__(self, workerId: str | None = ...) -> None: ...

class find_next_compact_result(TBase):
    success: OptionalCompactionInfoStruct | None
    o1: MetaException | None
    def __init__(self, success: OptionalCompactionInfoStruct | None = ..., o1: MetaException | None = ...) -> None: ...

class find_next_compact2_args(TBase):
    rqst: FindNextCompactRequest
    def __init__(self, rqst: FindNextCompactRequest | None = ...) -> None: ...

class find_next_compact2_result(TBase):
    success: OptionalCompactionInfoStruct | None
    o1: MetaException | None
    def __init__(self, success: OptionalCompactionInfoStruct | None = ..., o1: MetaException | None = ...) -> None: ...

class update_compactor_state_args(TBase):
    cr: CompactionInfoStruct
    txn_id: int
    def __init__(self, cr: CompactionInfoStruct | None = ..., txn_id: int | None = ...) -> None: ...

class update_compactor_state_result(TBase):
    def __init__(self) -> None: ...

class find_columns_with_stats_args(TBase):
    cr: CompactionInfoStruct
    def __init__(self, cr: CompactionInfoStruct | None = ...) -> None: ...

class find_columns_with_stats_result(TBase):
    success: list[str] | None
    def __init__(self, success: list[str] | None = ...) -> None: ...

class mark_cleaned_args(TBase):
    cr: CompactionInfoStruct
    def __init__(self, cr: CompactionInfoStruct | None = ...) -> None: ...

class mark_cleaned_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class mark_compacted_args(TBase):
    cr: CompactionInfoStruct
    def __init__(self, cr: CompactionInfoStruct | None = ...) -> None: ...

class mark_compacted_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class mark_failed_args(TBase):
    cr: CompactionInfoStruct
    def __init__(self, cr: CompactionInfoStruct | None = ...) -> None: ...

class mark_failed_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class mark_refused_args(TBase):
    cr: CompactionInfoStruct
    def __init__(self, cr: CompactionInfoStruct | None = ...) -> None: ...

class mark_refused_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class update_compaction_metrics_data_args(TBase):
    data: CompactionMetricsDataStruct
    def __init__(self, data: CompactionMetricsDataStruct | None = ...) -> None: ...

class update_compaction_metrics_data_result(TBase):
    success: bool | None
    o1: MetaException | None
    def __init__(self, success: bool | None = ..., o1: MetaException | None = ...) -> None: ...

class remove_compaction_metrics_data_args(TBase):
    request: CompactionMetricsDataRequest
    def __init__(self, request: CompactionMetricsDataRequest | None = ...) -> None: ...

class remove_compaction_metrics_data_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class set_hadoop_jobid_args(TBase):
    jobId: str
    cq_id: int
    def __init__(self, jobId: str | None = ..., cq_id: int | None = ...) -> None: ...

class set_hadoop_jobid_result(TBase):
    def __init__(self) -> None: ...

class get_latest_committed_compaction_info_args(TBase):
    rqst: GetLatestCommittedCompactionInfoRequest
    def __init__(self, rqst: GetLatestCommittedCompactionInfoRequest | None = ...) -> None: ...

class get_latest_committed_compaction_info_result(TBase):
    success: GetLatestCommittedCompactionInfoResponse | None
    def __init__(self, success: GetLatestCommittedCompactionInfoResponse | None = ...) -> None: ...

class get_next_notification_args(TBase):
    rqst: NotificationEventRequest
    def __init__(self, rqst: NotificationEventRequest | None = ...) -> None: ...

class get_next_notification_result(TBase):
    success: NotificationEventResponse | None
    def __init__(self, success: NotificationEventResponse | None = ...) -> None: ...

class get_current_notificationEventId_args(TBase):
    def __init__(self) -> None: ...

class get_current_notificationEventId_result(TBase):
    success: CurrentNotificationEventId | None
    def __init__(self, success: CurrentNotificationEventId | None = ...) -> None: ...

class get_notification_events_count_args(TBase):
    rqst: NotificationEventsCountRequest
    def __init__(self, rqst: NotificationEventsCountRequest | None = ...) -> None: ...

class get_notification_events_count_result(TBase):
    success: NotificationEventsCountResponse | None
    def __init__(self, success: NotificationEventsCountResponse | None = ...) -> None: ...

class fire_listener_event_args(TBase):
    rqst: FireEventRequest
    def __init__(self, rqst: FireEventRequest | None = ...) -> None: ...

class fire_listener_event_result(TBase):
    success: FireEventResponse | None
    def __init__(self, success: FireEventResponse | None = ...) -> None: ...

class add_write_notification_log_args(TBase):
    rqst: WriteNotificationLogRequest
    def __init__(self, rqst: WriteNotificationLogRequest | None = ...) -> None: ...

class add_write_notification_log_result(TBase):
    success: WriteNotificationLogResponse | None
    def __init__(self, success: WriteNotificationLogResponse | None = ...) -> None: ...

class add_write_notification_log_in_batch_args(TBase):
    rqst: WriteNotificationLogBatchRequest
    def __init__(self, rqst: WriteNotificationLogBatchRequest | None = ...) -> None: ...

class add_write_notification_log_in_batch_result(TBase):
    success: WriteNotificationLogBatchResponse | None
    def __init__(self, success: WriteNotificationLogBatchResponse | None = ...) -> None: ...

class get_all_write_event_info_args(TBase):
    request: GetAllWriteEventInfoRequest
    def __init__(self, request: GetAllWriteEventInfoRequest | None = ...) -> None: ...

class get_all_write_event_info_result(TBase):
    success: list[WriteEventInfo] | None
    o1: MetaException | None
    def __init__(self, success: list[WriteEventInfo] | None = ..., o1: MetaException | None = ...) -> None: ...

class create_resource_plan_args(TBase):
    request: WMCreateResourcePlanRequest
    def __init__(self, request: WMCreateResourcePlanRequest | None = ...) -> None: ...

class create_resource_plan_result(TBase):
    success: WMCreateResourcePlanResponse | None
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    def __init__(self, success: WMCreateResourcePlanResponse | None = ..., o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class get_resource_plan_args(TBase):
    request: WMGetResourcePlanRequest
    def __init__(self, request: WMGetResourcePlanRequest | None = ...) -> None: ...

class get_resource_plan_result(TBase):
    success: WMGetResourcePlanResponse | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: WMGetResourcePlanResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_active_resource_plan_args(TBase):
    request: WMGetActiveResourcePlanRequest
    def __init__(self, request: WMGetActiveResourcePlanRequest | None = ...) -> None: ...

class get_active_resource_plan_result(TBase):
    success: WMGetActiveResourcePlanResponse | None
    o2: MetaException | None
    def __init__(self, success: WMGetActiveResourcePlanResponse | None = ..., o2: MetaException | None = ...) -> None: ...

class get_all_resource_plans_args(TBase):
    request: WMGetAllResourcePlanRequest
    def __init__(self, request: WMGetAllResourcePlanRequest | None = ...) -> None: ...

class get_all_resource_plans_result(TBase):
    success: WMGetAllResourcePlanResponse | None
    o1: MetaException | None
    def __init__(self, success: WMGetAllResourcePlanResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class alter_resource_plan_args(TBase):
    request: WMAlterResourcePlanRequest
    def __init__(self, request: WMAlterResourcePlanRequest | None = ...) -> None: ...

class alter_resource_plan_result(TBase):
    success: WMAlterResourcePlanResponse | None
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, success: WMAlterResourcePlanResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class validate_resource_plan_args(TBase):
    request: WMValidateResourcePlanRequest
    def __init__(self, request: WMValidateResourcePlanRequest | None = ...) -> None: ...

class validate_resource_plan_result(TBase):
    success: WMValidateResourcePlanResponse | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: WMValidateResourcePlanResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class drop_resource_plan_args(TBase):
    request: WMDropResourcePlanRequest
    def __init__(self, request: WMDropResourcePlanRequest | None = ...) -> None: ...

class drop_resource_plan_result(TBase):
    success: WMDropResourcePlanResponse | None
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, success: WMDropResourcePlanResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class create_wm_trigger_args(TBase):
    request: WMCreateTriggerRequest
    def __init__(self, request: WMCreateTriggerRequest | None = ...) -> None: ...

class create_wm_trigger_result(TBase):
    success: WMCreateTriggerResponse | None
    o1: AlreadyExistsException | None
    o2: NoSuchObjectException | None
    o3: InvalidObjectException | None
    o4: MetaException | None
    def __init__(self, success: WMCreateTriggerResponse | None = ..., o1: AlreadyExistsException | None = ..., o2: NoSuchObjectException | None = ..., o3: InvalidObjectException | None = ..., o4: MetaException | None = ...) -> None: ...

class alter_wm_trigger_args(TBase):
    request: WMAlterTriggerRequest
    def __init__(self, request: WMAlterTriggerRequest | None = ...) -> None: ...

class alter_wm_trigger_result(TBase):
    success: WMAlterTriggerResponse | None
    o1: NoSuchObjectException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    def __init__(self, success: WMAlterTriggerResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class drop_wm_trigger_args(TBase):
    request: WMDropTriggerRequest
    def __init__(self, request: WMDropTriggerRequest | None = ...) -> None: ...

class drop_wm_trigger_result(TBase):
    success: WMDropTriggerResponse | None
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, success: WMDropTriggerResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class get_triggers_for_resourceplan_args(TBase):
    request: WMGetTriggersForResourePlanRequest
    def __init__(self, request: WMGetTriggersForResourePlanRequest | None = ...) -> None: ...

class get_triggers_for_resourceplan_result(TBase):
    success: WMGetTriggersForResourePlanResponse | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: WMGetTriggersForResourePlanResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class create_wm_pool_args(TBase):
    request: WMCreatePoolRequest
    def __init__(self, request: WMCreatePoolRequest | None = ...) -> None: ...

class create_wm_pool_result(TBase):
    success: WMCreatePoolResponse | None
    o1: AlreadyExistsException | None
    o2: NoSuchObjectException | None
    o3: InvalidObjectException | None
    o4: MetaException | None
    def __init__(self, success: WMCreatePoolResponse | None = ..., o1: AlreadyExistsException | None = ..., o2: NoSuchObjectException | None = ..., o3: InvalidObjectException | None = ..., o4: MetaException | None = ...) -> None: ...

class alter_wm_pool_args(TBase):
    request: WMAlterPoolRequest
    def __init__(self, request: WMAlterPoolRequest | None = ...) -> None: ...

class alter_wm_pool_result(TBase):
    success: WMAlterPoolResponse | None
    o1: AlreadyExistsException | None
    o2: NoSuchObjectException | None
    o3: InvalidObjectException | None
    o4: MetaException | None
    def __init__(self, success: WMAlterPoolResponse | None = ..., o1: AlreadyExistsException | None = ..., o2: NoSuchObjectException | None = ..., o3: InvalidObjectException | None = ..., o4: MetaException | None = ...) -> None: ...

class drop_wm_pool_args(TBase):
    request: WMDropPoolRequest
    def __init__(self, request: WMDropPoolRequest | None = ...) -> None: ...

class drop_wm_pool_result(TBase):
    success: WMDropPoolResponse | None
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, success: WMDropPoolResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class create_or_update_wm_mapping_args(TBase):
    request: WMCreateOrUpdateMappingRequest
    def __init__(self, request: WMCreateOrUpdateMappingRequest | None = ...) -> None: ...

class create_or_update_wm_mapping_result(TBase):
    success: WMCreateOrUpdateMappingResponse | None
    o1: AlreadyExistsException | None
    o2: NoSuchObjectException | None
    o3: InvalidObjectException | None
    o4: MetaException | None
    def __init__(self, success: WMCreateOrUpdateMappingResponse | None = ..., o1: AlreadyExistsException | None = ..., o2: NoSuchObjectException | None = ..., o3: InvalidObjectException | None = ..., o4: MetaException | None = ...) -> None: ...

class drop_wm_mapping_args(TBase):
    request: WMDropMappingRequest
    def __init__(self, request: WMDropMappingRequest | None = ...) -> None: ...

class drop_wm_mapping_result(TBase):
    success: WMDropMappingResponse | None
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, success: WMDropMappingResponse | None = ..., o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class create_or_drop_wm_trigger_to_pool_mapping_args(TBase):
    request: WMCreateOrDropTriggerToPoolMappingRequest
    def __init__(self, request: WMCreateOrDropTriggerToPoolMappingRequest | None = ...) -> None: ...

class create_or_drop_wm_trigger_to_pool_mapping_result(TBase):
    success: WMCreateOrDropTriggerToPoolMappingResponse | None
    o1: AlreadyExistsException | None
    o2: NoSuchObjectException | None
    o3: InvalidObjectException | None
    o4: MetaException | None
    def __init__(self, success: WMCreateOrDropTriggerToPoolMappingResponse | None = ..., o1: AlreadyExistsException | None = ..., o2: NoSuchObjectException | None = ..., o3: InvalidObjectException | None = ..., o4: MetaException | None = ...) -> None: ...

class scheduled_query_poll_args(TBase):
    request: ScheduledQueryPollRequest
    def __init__(self, request: ScheduledQueryPollRequest | None = ...) -> None: ...

class scheduled_query_poll_result(TBase):
    success: ScheduledQueryPollResponse | None
    o1: MetaException | None
    def __init__(self, success: ScheduledQueryPollResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class scheduled_query_maintenance_args(TBase):
    request: ScheduledQueryMaintenanceRequest
    def __init__(self, request: ScheduledQueryMaintenanceRequest | None = ...) -> None: ...

class scheduled_query_maintenance_result(TBase):
    o1: MetaException | None
    o2: NoSuchObjectException | None
    o3: AlreadyExistsException | None
    o4: InvalidInputException | None
    def __init__(self, o1: MetaException | None = ..., o2: NoSuchObjectException | None = ..., o3: AlreadyExistsException | None = ..., o4: InvalidInputException | None = ...) -> None: ...

class scheduled_query_progress_args(TBase):
    info: ScheduledQueryProgressInfo
    def __init__(self, info: ScheduledQueryProgressInfo | None = ...) -> None: ...

class scheduled_query_progress_result(TBase):
    o1: MetaException | None
    o2: InvalidOperationException | None
    def __init__(self, o1: MetaException | None = ..., o2: InvalidOperationException | None = ...) -> None: ...

class get_scheduled_query_args(TBase):
    scheduleKey: ScheduledQueryKey
    def __init__(self, scheduleKey: ScheduledQueryKey | None = ...) -> None: ...

class get_scheduled_query_result(TBase):
    success: ScheduledQuery | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: ScheduledQuery | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class add_runtime_stats_args(TBase):
    stat: RuntimeStat
    def __init__(self, stat: RuntimeStat | None = ...) -> None: ...

class add_runtime_stats_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class get_runtime_stats_args(TBase):
    rqst: GetRuntimeStatsRequest
    def __init__(self, rqst: GetRuntimeStatsRequest | None = ...) -> None: ...

class get_runtime_stats_result(TBase):
    success: list[RuntimeStat] | None
    o1: MetaException | None
    def __init__(self, success: list[RuntimeStat] | None = ..., o1: MetaException | None = ...) -> None: ...

class create_ischema_args(TBase):
    schema: ISchema
    def __init__(self, schema: ISchema | None = ...) -> None: ...

class create_ischema_result(TBase):
    o1: AlreadyExistsException | None
    o2: NoSuchObjectException | None
    o3: MetaException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: NoSuchObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class alter_ischema_args(TBase):
    rqst: AlterISchemaRequest
    def __init__(self, rqst: AlterISchemaRequest | None = ...) -> None: ...

class alter_ischema_result(TBase):
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_ischema_args(TBase):
    name: ISchemaName
    def __init__(self, name: ISchemaName | None = ...) -> None: ...

class get_ischema_result(TBase):
    success: ISchema | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: ISchema | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class drop_ischema_args(TBase):
    name: ISchemaName
    def __init__(self, name: ISchemaName | None = ...) -> None: ...

class drop_ischema_result(TBase):
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class add_schema_version_args(TBase):
    schemaVersion: SchemaVersion
    def __init__(self, schemaVersion: SchemaVersion | None = ...) -> None: ...

class add_schema_version_result(TBase):
    o1: AlreadyExistsException | None
    o2: NoSuchObjectException | None
    o3: MetaException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: NoSuchObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class get_schema_version_args(TBase):
    schemaVersion: SchemaVersionDescriptor
    def __init__(self, schemaVersion: SchemaVersionDescriptor | None = ...) -> None: ...

class get_schema_version_result(TBase):
    success: SchemaVersion | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: SchemaVersion | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_schema_latest_version_args(TBase):
    schemaName: ISchemaName
    def __init__(self, schemaName: ISchemaName | None = ...) -> None: ...

class get_schema_latest_version_result(TBase):
    success: SchemaVersion | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: SchemaVersion | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_schema_all_versions_args(TBase):
    schemaName: ISchemaName
    def __init__(self, schemaName: ISchemaName | None = ...) -> None: ...

class get_schema_all_versions_result(TBase):
    success: list[SchemaVersion] | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: list[SchemaVersion] | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class drop_schema_version_args(TBase):
    schemaVersion: SchemaVersionDescriptor
    def __init__(self, schemaVersion: SchemaVersionDescriptor | None = ...) -> None: ...

class drop_schema_version_result(TBase):
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_schemas_by_cols_args(TBase):
    rqst: FindSchemasByColsRqst
    def __init__(self, rqst: FindSchemasByColsRqst | None = ...) -> None: ...

class get_schemas_by_cols_result(TBase):
    success: FindSchemasByColsResp | None
    o1: MetaException | None
    def __init__(self, success: FindSchemasByColsResp | None = ..., o1: MetaException | None = ...) -> None: ...

class map_schema_version_to_serde_args(TBase):
    rqst: MapSchemaVersionToSerdeRequest
    def __init__(self, rqst: MapSchemaVersionToSerdeRequest | None = ...) -> None: ...

class map_schema_version_to_serde_result(TBase):
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class set_schema_version_state_args(TBase):
    rqst: SetSchemaVersionStateRequest
    def __init__(self, rqst: SetSchemaVersionStateRequest | None = ...) -> None: ...

class set_schema_version_state_result(TBase):
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class add_serde_args(TBase):
    serde: SerDeInfo
    def __init__(self, serde: SerDeInfo | None = ...) -> None: ...

class add_serde_result(TBase):
    o1: AlreadyExistsException | None
    o2: MetaException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_serde_args(TBase):
    rqst: GetSerdeRequest
    def __init__(self, rqst: GetSerdeRequest | None = ...) -> None: ...

class get_serde_result(TBase):
    success: SerDeInfo | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: SerDeInfo | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class getMetaConf_args(TBase):
    key: str
    def __init__(self, key: str | None = ...) -> None: ...

class getMetaConf_result(TBase):
    success: str | None
    o1: MetaException | None
    def __init__(self, success: str | None = ..., o1: MetaException | None = ...) -> None: ...

class setMetaConf_args(TBase):
    key: str
    value: str
    def __init__(self, key: str | None = ..., value: str | None = ...) -> None: ...

class setMetaConf_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class create_dataconnector_req_args(TBase):
    connectorReq: CreateDataConnectorRequest
    def __init__(self, connectorReq: CreateDataConnectorRequest | None = ...) -> None: ...

class create_dataconnector_req_result(TBase):
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class get_dataconnector_req_args(TBase):
    request: GetDataConnectorRequest
    def __init__(self, request: GetDataConnectorRequest | None = ...) -> None: ...

class get_dataconnector_req_result(TBase):
    success: DataConnector | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: DataConnector | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class drop_dataconnector_req_args(TBase):
    dropDcReq: DropDataConnectorRequest
    def __init__(self, dropDcReq: DropDataConnectorRequest | None = ...) -> None: ...

class drop_dataconnector_req_result(TBase):
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class get_dataconnectors_args(TBase):
    def __init__(self) -> None: ...

class get_dataconnectors_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class alter_dataconnector_req_args(TBase):
    alterReq: AlterDataConnectorRequest
    def __init__(self, alterReq: AlterDataConnectorRequest | None = ...) -> None: ...

class alter_dataconnector_req_result(TBase):
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_type_args(TBase):
    name: str
    def __init__(self, name: str | None = ...) -> None: ...

class get_type_result(TBase):
    success: Type | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: Type | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class create_type_args(TBase):
    type: Type
    def __init__(self, type: Type | None = ...) -> None: ...

class create_type_result(TBase):
    success: bool | None
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    def __init__(self, success: bool | None = ..., o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class drop_type_args(TBase):
    type: str
    def __init__(self, type: str | None = ...) -> None: ...

class drop_type_result(TBase):
    success: bool | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: bool | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_type_all_args(TBase):
    name: str
    def __init__(self, name: str | None = ...) -> None: ...

class get_type_all_result(TBase):
    success: dict[str, Type] | None
    o2: MetaException | None
    def __init__(self, success: dict[str, Type] | None = ..., o2: MetaException | None = ...) -> None: ...

class get_properties_args(TBase):
    req: PropertyGetRequest
    def __init__(self, req: PropertyGetRequest | None = ...) -> None: ...

class get_properties_result(TBase):
    success: PropertyGetResponse | None
    e1: MetaException | None
    e2: NoSuchObjectException | None
    def __init__(self, success: PropertyGetResponse | None = ..., e1: MetaException | None = ..., e2: NoSuchObjectException | None = ...) -> None: ...

class set_properties_args(TBase):
    req: PropertySetRequest
    def __init__(self, req: PropertySetRequest | None = ...) -> None: ...

class set_properties_result(TBase):
    success: bool | None
    e1: MetaException | None
    e2: NoSuchObjectException | None
    def __init__(self, success: bool | None = ..., e1: MetaException | None = ..., e2: NoSuchObjectException | None = ...) -> None: ...

class get_config_value_args(TBase):
    name: str
    defaultValue: str
    def __init__(self, name: str | None = ..., defaultValue: str | None = ...) -> None: ...

class get_config_value_result(TBase):
    success: str | None
    o1: ConfigValSecurityException | None
    def __init__(self, success: str | None = ..., o1: ConfigValSecurityException | None = ...) -> None: ...

class flushCache_args(TBase):
    def __init__(self) -> None: ...

class flushCache_result(TBase):
    def __init__(self) -> None: ...

class cm_recycle_args(TBase):
    request: CmRecycleRequest
    def __init__(self, request: CmRecycleRequest | None = ...) -> None: ...

class cm_recycle_result(TBase):
    success: CmRecycleResponse | None
    o1: MetaException | None
    def __init__(self, success: CmRecycleResponse | None = ..., o1: MetaException | None = ...) -> None: ...

class get_file_metadata_by_expr_args(TBase):
    req: GetFileMetadataByExprRequest
    def __init__(self, req: GetFileMetadataByExprRequest | None = ...) -> None: ...

class get_file_metadata_by_expr_result(TBase):
    success: GetFileMetadataByExprResult | None
    def __init__(self, success: GetFileMetadataByExprResult | None = ...) -> None: ...

class get_file_metadata_args(TBase):
    req: GetFileMetadataRequest
    def __init__(self, req: GetFileMetadataRequest | None = ...) -> None: ...

class get_file_metadata_result(TBase):
    success: GetFileMetadataResult | None
    def __init__(self, success: GetFileMetadataResult | None = ...) -> None: ...

class put_file_metadata_args(TBase):
    req: PutFileMetadataRequest
    def __init__(self, req: PutFileMetadataRequest | None = ...) -> None: ...

class put_file_metadata_result(TBase):
    success: PutFileMetadataResult | None
    def __init__(self, success: PutFileMetadataResult | None = ...) -> None: ...

class clear_file_metadata_args(TBase):
    req: ClearFileMetadataRequest
    def __init__(self, req: ClearFileMetadataRequest | None = ...) -> None: ...

class clear_file_metadata_result(TBase):
    success: ClearFileMetadataResult | None
    def __init__(self, success: ClearFileMetadataResult | None = ...) -> None: ...

class cache_file_metadata_args(TBase):
    req: CacheFileMetadataRequest
    def __init__(self, req: CacheFileMetadataRequest | None = ...) -> None: ...

class cache_file_metadata_result(TBase):
    success: CacheFileMetadataResult | None
    def __init__(self, success: CacheFileMetadataResult | None = ...) -> None: ...

class get_metastore_db_uuid_args(TBase):
    def __init__(self) -> None: ...

class get_metastore_db_uuid_result(TBase):
    success: str | None
    o1: MetaException | None
    def __init__(self, success: str | None = ..., o1: MetaException | None = ...) -> None: ...

class add_replication_metrics_args(TBase):
    replicationMetricList: ReplicationMetricList
    def __init__(self, replicationMetricList: ReplicationMetricList | None = ...) -> None: ...

class add_replication_metrics_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class get_replication_metrics_args(TBase):
    rqst: GetReplicationMetricsRequest
    def __init__(self, rqst: GetReplicationMetricsRequest | None = ...) -> None: ...

class get_replication_metrics_result(TBase):
    success: ReplicationMetricList | None
    o1: MetaException | None
    def __init__(self, success: ReplicationMetricList | None = ..., o1: MetaException | None = ...) -> None: ...

class create_stored_procedure_args(TBase):
    proc: StoredProcedure
    def __init__(self, proc: StoredProcedure | None = ...) -> None: ...

class create_stored_procedure_result(TBase):
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_stored_procedure_args(TBase):
    request: StoredProcedureRequest
    def __init__(self, request: StoredProcedureRequest | None = ...) -> None: ...

class get_stored_procedure_result(TBase):
    success: StoredProcedure | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: StoredProcedure | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class drop_stored_procedure_args(TBase):
    request: StoredProcedureRequest
    def __init__(self, request: StoredProcedureRequest | None = ...) -> None: ...

class drop_stored_procedure_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class get_all_stored_procedures_args(TBase):
    request: ListStoredProcedureRequest
    def __init__(self, request: ListStoredProcedureRequest | None = ...) -> None: ...

class get_all_stored_procedures_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class find_package_args(TBase):
    request: GetPackageRequest
    def __init__(self, request: GetPackageRequest | None = ...) -> None: ...

class find_package_result(TBase):
    success: Package | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: Package | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class add_package_args(TBase):
    request: AddPackageRequest
    def __init__(self, request: AddPackageRequest | None = ...) -> None: ...

class add_package_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class get_all_packages_args(TBase):
    request: ListPackageRequest
    def __init__(self, request: ListPackageRequest | None = ...) -> None: ...

class get_all_packages_result(TBase):
    success: list[str] | None
    o1: MetaException | None
    def __init__(self, success: list[str] | None = ..., o1: MetaException | None = ...) -> None: ...

class drop_package_args(TBase):
    request: DropPackageRequest
    def __init__(self, request: DropPackageRequest | None = ...) -> None: ...

class drop_package_result(TBase):
    o1: MetaException | None
    def __init__(self, o1: MetaException | None = ...) -> None: ...

class create_dataconnector_args(TBase):
    connector: DataConnector
    def __init__(self, connector: DataConnector | None = ...) -> None: ...

class create_dataconnector_result(TBase):
    o1: AlreadyExistsException | None
    o2: InvalidObjectException | None
    o3: MetaException | None
    def __init__(self, o1: AlreadyExistsException | None = ..., o2: InvalidObjectException | None = ..., o3: MetaException | None = ...) -> None: ...

class drop_dataconnector_args(TBase):
    name: str
    ifNotExists: bool
    checkReferences: bool
    def __init__(self, name: str | None = ..., ifNotExists: bool | None = ..., checkReferences: bool | None = ...) -> None: ...

class drop_dataconnector_result(TBase):
    o1: NoSuchObjectException | None
    o2: InvalidOperationException | None
    o3: MetaException | None
    def __init__(self, o1: NoSuchObjectException | None = ..., o2: InvalidOperationException | None = ..., o3: MetaException | None = ...) -> None: ...

class alter_dataconnector_args(TBase):
    name: str
    connector: DataConnector
    def __init__(self, name: str | None = ..., connector: DataConnector | None = ...) -> None: ...

class alter_dataconnector_result(TBase):
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class add_index_args(TBase):
    new_index: Index
    index_table: Table
    def __init__(self, new_index: Index | None = ..., index_table: Table | None = ...) -> None: ...

class add_index_result(TBase):
    success: Index | None
    o1: InvalidObjectException | None
    o2: AlreadyExistsException | None
    o3: MetaException | None
    def __init__(self, success: Index | None = ..., o1: InvalidObjectException | None = ..., o2: AlreadyExistsException | None = ..., o3: MetaException | None = ...) -> None: ...

class alter_index_args(TBase):
    dbname: str
    base_tbl_name: str
    idx_name: str
    new_idx: Index
    def __init__(self, dbname: str | None = ..., base_tbl_name: str | None = ..., idx_name: str | None = ..., new_idx: Index | None = ...) -> None: ...

class alter_index_result(TBase):
    o1: InvalidOperationException | None
    o2: MetaException | None
    def __init__(self, o1: InvalidOperationException | None = ..., o2: MetaException | None = ...) -> None: ...

class drop_index_by_name_args(TBase):
    db_name: str
    tbl_name: str
    index_name: str
    deleteData: bool
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., index_name: str | None = ..., deleteData: bool | None = ...) -> None: ...

class drop_index_by_name_result(TBase):
    success: bool | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: bool | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_index_by_name_args(TBase):
    db_name: str
    tbl_name: str
    index_name: str
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., index_name: str | None = ...) -> None: ...

class get_index_by_name_result(TBase):
    success: Index | None
    o1: MetaException | None
    o2: NoSuchObjectException | None
    def __init__(self, success: Index | None = ..., o1: MetaException | None = ..., o2: NoSuchObjectException | None = ...) -> None: ...

class get_indexes_args(TBase):
    db_name: str
    tbl_name: str
    max_indexes: int
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., max_indexes: int | None = ...) -> None: ...

class get_indexes_result(TBase):
    success: list[Index] | None
    o1: NoSuchObjectException | None
    o2: MetaException | None
    def __init__(self, success: list[Index] | None = ..., o1: NoSuchObjectException | None = ..., o2: MetaException | None = ...) -> None: ...

class get_index_names_args(TBase):
    db_name: str
    tbl_name: str
    max_indexes: int
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., max_indexes: int | None = ...) -> None: ...

class get_index_names_result(TBase):
    success: list[str] | None
    o2: MetaException | None
    def __init__(self, success: list[str] | None = ..., o2: MetaException | None = ...) -> None: ...

