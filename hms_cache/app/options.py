"""The settings in the words of the parts: each part has options of its own and knows nothing of the configuration."""

from __future__ import annotations

import getpass
import math
from collections.abc import Callable
from dataclasses import replace

from hms_cache.app.system.open_files import connections_allowed
from hms_cache.config import Settings, finite_s
from hms_cache.expressions import FilterLimits
from hms_cache.input_limits import InputLimits
from hms_cache.notifications.messages import MessageFormat
from hms_cache.server.listener import Limits
from hms_cache.server.service import ServerOptions
from hms_cache.store.engine.settings import StoreSettings
from hms_cache.store.transactions.options import TxnOptions
from hms_cache.store.warehouse.settings import WarehouseSettings


def server_options(settings: Settings) -> ServerOptions:
    """Of the listener; a limit of ``inf`` is 0 there."""
    server = settings.server
    return ServerOptions(
        limits=Limits(
            max_message_bytes=server.max_message_bytes,
            max_connections=connections_allowed(server.max_connections),
            max_connections_per_address=server.max_connections_per_address,
            max_in_flight=server.max_in_flight,
            buffer_budget_bytes=server.buffer_budget_bytes,
            max_session_bytes=server.max_session_bytes,
            sessions_budget_bytes=server.sessions_budget_bytes,
            request_timeout_s=finite_s(server.request_timeout_s) or 0,
            message_timeout_s=finite_s(server.message_timeout_s) or 0,
            write_timeout_s=finite_s(server.write_timeout_s) or 0,
            first_call_timeout_s=finite_s(server.first_call_timeout_s) or 0,
            idle_timeout_s=finite_s(server.idle_timeout_s) or 0,
            drain_timeout_s=server.drain_timeout_s,
            max_calls_per_user=server.max_calls_per_user,
            max_calls_per_address=server.max_calls_per_address,
        ),
        threads=server.threads,
        transaction_threads=server.transaction_threads,
        write_threads=server.write_threads,
        heavy_threads=server.heavy_threads,
        max_waiting_per_lane=server.max_waiting_per_lane,
        audit=server.audit,
        audit_format=server.audit_format,
        audit_queue_bytes=server.audit_queue_bytes,
        slow_call_s=settings.log.slow_call_s,
    )


def limits_of_inputs(settings: Settings) -> InputLimits:
    """Of patterns, expressions, lists and names: the section `limits` has a setting for each."""
    return InputLimits(**settings.limits.model_dump())


def filter_limits(settings: Settings, on_refusal: Callable[[], None] | None = None) -> FilterLimits:
    """Of filters. `on_refusal`: called for each that is refused for them."""
    catalog = settings.catalog
    limits = FilterLimits(catalog.filter_max_characters, catalog.filter_max_depth, catalog.filter_max_comparisons)
    return limits if on_refusal is None else replace(limits, on_refusal=on_refusal)


def store_settings(settings: Settings, on_refused_filter: Callable[[], None] | None = None) -> StoreSettings:
    """Of the object store."""
    catalog, workload = settings.catalog, settings.workload
    return StoreSettings(
        special_characters_in_table_names=catalog.special_characters_in_table_names,
        disallow_incompatible_column_type_changes=catalog.disallow_incompatible_column_type_changes,
        statistics_auto_gather=catalog.statistics_autogather,
        retain_column_statistics_on_column_removal=catalog.retain_column_statistics_on_column_removal,
        statistics_sketches=catalog.statistics_sketches,
        statistics_histograms=catalog.statistics_histograms,
        statistics_density_function=catalog.statistics_density_function,
        statistics_distinct_tuner=catalog.statistics_distinct_tuner,
        partition_name_whitelist_pattern=catalog.partition_name_whitelist_pattern,
        partition_request_limit=catalog.partition_request_limit,
        filter_limits=filter_limits(settings, on_refused_filter),
        delegation_tokens=settings.security.delegation_tokens,
        default_partition_name=catalog.default_partition_name,
        server_user=getpass.getuser(),
        single_alter_partitions_event=settings.events.single_alter_partitions_event,
        metadata_translation=catalog.metadata_translation,
        translated_location_mode=catalog.translated_location_mode,
        serdes_with_free_type_changes=catalog.serdes_with_free_type_changes,
        inherited_table_parameters=catalog.inherited_table_parameters,
        client_capability_check=catalog.client_capability_check,
        storage_schema_reader=catalog.storage_schema_reader,
        schema_file_limit_bytes=catalog.schema_file_limit_bytes,
        serdes_using_metastore_for_schema=catalog.serdes_using_metastore_for_schema,
        default_pool_size=workload.default_pool_size,
        scheduled_queries=workload.scheduled_queries,
        scheduled_query_timeout_s=_whole_s(workload.scheduled_query_timeout_s),
        scheduled_query_retention_s=_whole_s(workload.scheduled_query_retention_s),
        scheduled_query_disable_count=workload.scheduled_query_disable_count,
        scheduled_query_skips=workload.scheduled_query_skips,
    )


def warehouse_settings(settings: Settings) -> WarehouseSettings:
    """Of directories and files."""
    warehouse = settings.warehouse
    return WarehouseSettings(
        directory=warehouse.directory,
        external_directory=warehouse.external_directory,
        files=warehouse.files,
        default_file_system=warehouse.default_file_system,
        trash_interval_min=math.ceil(warehouse.trash_interval_min),
        trash_directory=warehouse.trash_directory,
        allowed_locations=tuple(warehouse.allowed_locations),
        allowed_schemes=tuple(warehouse.allowed_schemes),
        file_timeout_s=warehouse.file_timeout_s,
        file_wait_with_locks_s=warehouse.file_wait_with_locks_s,
        file_move_timeout_s=warehouse.file_move_timeout_s,
        file_threads=warehouse.file_threads,
        listing_max_entries=warehouse.listing_max_entries,
        listing_timeout_s=warehouse.listing_timeout_s,
        shared_location_max_tables=warehouse.shared_location_max_tables,
        options=warehouse.options,
    )


def txn_options(settings: Settings) -> TxnOptions:
    """Of transactions, locks and the compaction queue."""
    transactions, compactions = settings.transactions, settings.compactions
    return TxnOptions(
        timeout_ms=round(transactions.timeout_s * 1000),
        replication_timeout_ms=round(transactions.replication_timeout_s * 1000),
        max_open_txns=transactions.max_open,
        max_open_batch=transactions.max_open_batch,
        open_txn_timeout_ms=round(transactions.open_timeout_ms),
        open_count_interval_s=transactions.open_count_interval_s,
        max_combined=transactions.max_combined,
        use_min_history_level={"auto": None, "on": True, "off": False}[transactions.min_history_level],
        use_min_history_write_id=transactions.min_history_write_id,
        materialization_lock_timeout_ms=round(transactions.timeout_s * 1000),
        max_failed_compactions=compactions.max_failed,
        failed_retry_ms=round(compactions.failed_retry_s * 1000),
        aborted_txns_threshold=compactions.aborted_transactions_threshold,
        aborted_txn_age_ms=round(compactions.aborted_transaction_age_s * 1000),
        worker_timeout_ms=round(compactions.worker_timeout_s * 1000),
        delta_count_threshold=compactions.delta_count_threshold,
        worker_pool_timeout_ms=round(compactions.worker_pool_timeout_s * 1000),
        write_notification_retention_s=_whole_s(settings.events.retention_s),
        compaction_history_failed=compactions.history_failed,
        compaction_history_succeeded=compactions.history_succeeded,
        compaction_history_did_not_initiate=compactions.history_did_not_initiate,
        compaction_history_refused=compactions.history_refused,
    )


def _whole_s(seconds: float) -> int:
    """`inf` as a number of seconds that no event reaches: a century."""
    return round(finite_s(seconds) or 100 * 365 * 86400)


def message_format(settings: Settings) -> MessageFormat:
    """Of the events written."""
    return MessageFormat(settings.events.message_format)
