"""What limits the answer to each read: a new one needs a limit, too, and docs/operations.md says which."""

from __future__ import annotations

import re
from pathlib import Path

from hms_cache.server.calls import Kind
from hms_cache.server.handlers.table import all_handlers


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


LISTED = names("""
    get_all_packages get_all_stored_procedures get_all_token_identifiers get_dataconnectors get_principals_in_role
    get_properties get_replication_metrics get_role_grants_for_principal get_role_names get_runtime_stats
    get_schema_all_versions get_schemas_by_cols list_privileges list_roles show_compact show_locks
    """)
"""By `limits.listed_rows`."""

OF_CATALOG = names("""
    fetch_partition_names_req get_all_databases get_all_functions get_all_materialized_view_objects_for_rewriting
    get_all_tables get_catalogs get_databases get_databases_req get_functions get_functions_req
    get_materialized_views_for_rewriting get_part_specs_by_filter get_partition_names get_partition_names_ps
    get_partition_names_ps_req get_partition_names_req get_partition_values get_partitions get_partitions_by_expr
    get_partitions_by_filter get_partitions_by_filter_req get_partitions_ps get_partitions_ps_with_auth
    get_partitions_ps_with_auth_req get_partitions_pspec get_partitions_req get_partitions_spec_by_expr
    get_partitions_with_auth get_partitions_with_specs get_table_meta get_table_names_by_filter get_tables
    get_tables_by_type get_tables_ext
    """)
"""By the request, by `catalog.partition_request_limit`, and few at a time (`server.large_reply_threads`,
`heavy_threads`): who works with a catalog has to be able to list it."""

OF_THEIR_OWN = names("""
    get_all_write_event_info get_materialization_invalidation_info get_next_notification get_open_txns
    get_open_txns_info get_open_txns_req get_valid_write_ids
    """)
"""By `events.max_response`, by `transactions.max_open` and what cleaners have left, by what one transaction
wrote, and by the tables that a request may name."""

OF_OPERATORS = names("""
    get_active_resource_plan get_all_resource_plans get_master_keys get_resource_plan get_triggers_for_resourceplan
    validate_resource_plan
    """)
"""By what operators have set up."""

OF_ONE_OBJECT = names("""
    find_columns_with_stats find_package get_aggr_stats_for get_all_table_constraints get_catalog get_check_constraints
    get_current_notificationEventId get_database get_database_req get_dataconnector_req get_default_constraints
    get_fields get_fields_req get_fields_with_environment_context get_foreign_keys get_function get_ischema
    get_latest_committed_compaction_info get_latest_txnid_in_conflict get_max_allocated_table_write_id
    get_metastore_db_uuid get_not_null_constraints get_notification_events_count get_num_partitions_by_filter
    get_partition get_partition_by_name get_partition_column_statistics get_partition_req get_partition_with_auth
    get_partitions_by_names get_partitions_by_names_req get_partitions_statistics_req get_primary_keys
    get_privilege_set get_replayed_txns_for_policy get_scheduled_query get_schema get_schema_latest_version
    get_schema_req get_schema_version get_schema_with_environment_context get_serde get_stored_procedure get_table
    get_table_column_statistics get_table_objects_by_name get_table_objects_by_name_req get_table_req
    get_table_statistics_req get_token get_type get_unique_constraints isPartitionMarkedForEvent
    partition_name_has_valid_characters partition_name_to_spec partition_name_to_vals translate_table_dryrun
    """)
"""By the objects that the request names, and `server.max_message_bytes` by that."""

KINDS = (LISTED, OF_CATALOG, OF_THEIR_OWN, OF_OPERATORS, OF_ONE_OBJECT)


def test_each_read_has_one_limit() -> None:
    reads = {name for name, handler in all_handlers().items() if handler.kind is Kind.READ}
    assert reads == frozenset().union(*KINDS)
    assert len(reads) == sum(map(len, KINDS))


def test_the_limits_are_documented() -> None:
    text = Path("docs/operations.md").read_text(encoding="utf-8")
    section = text.partition("### Answers that grow with the database\n")[2].partition("\n### ")[0]
    named = set(re.findall(r"`([a-z_]+)`", section))
    assert named >= LISTED - {"get_role_grants_for_principal"}
    assert "limits.listed_rows" in section
