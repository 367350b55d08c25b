"""Fixes of known defects, and how each is taken out of a copy of the program.

A fix that nobody notices when it is gone is not guarded: `test_fixes.py` takes each out once and runs the tests that
are to notice. A fix that has moved makes its row fail, so that the row moves with it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fix:
    """One fix, as the text that makes it and what stood there before, or nearly."""

    name: str
    defect: str
    """What a user met without it."""
    file: str
    fixed: str
    """Occurs once in the file."""
    broken: str
    noticed_by: tuple[str, ...]
    """Tests that fail without it: arguments of pytest. At least one fails; each file has tests that pass with it."""


FIXES = (
    Fix(
        "other_row_under_the_same_id",
        "Another history under the same event id is taken for the one that was applied.",
        "hms_cache/notifications/event_log.py",
        "    if place.event_id > 0 and digest_of(here) != place.row_digest:\n",
        "    if place.event_id > 0 and not here:\n",
        ("tests/cache/test_other_histories.py",),
    ),
    Fix(
        "load_below_the_position",
        "A load from a server that lags behind is installed, though it never saw the events in between.",
        "hms_cache/cache/warming/loader.py",
        "if found.fence >= began_at and self._freshness",
        "if self._freshness",
        ("tests/cache/test_loads.py", "tests/cache/test_other_histories.py"),
    ),
    Fix(
        "replication_mark_without_event",
        "The commit of a replayed transaction changes parameters of tables without an event.",
        "hms_cache/store/replication_marks.py",
        "        transaction.append_event(messages.build_alter_table(before, after))\n",
        "        pass\n",
        ("tests/txn/test_transactions.py",),
    ),
    Fix(
        "incompatible_mark_without_event",
        "The abort of a replayed transaction changes parameters of databases without an event.",
        "hms_cache/store/replication_marks.py",
        "        transaction.append_event(messages.build_alter_database(before, after))\n",
        "        pass\n",
        ("tests/txn/test_transactions.py",),
    ),
    Fix(
        "tag_never_covered_again",
        "An aborted write id that was cleaned away makes every read bypass memory for good.",
        "hms_cache/cache/reads/reading.py",
        "            self.cache.forget_tag(entry.key, self.clock.monotonic_s(), HEAL_INTERVAL_S)\n",
        "            pass\n",
        ("tests/cache/test_write_ids.py",),
    ),
    Fix(
        "reply_of_two_moments",
        "A reply that is made of several reads shows two moments.",
        "hms_cache/server/calls.py",
        "        return call.stores.reads.at_one_moment(ask)\n",
        "        return ask(call.stores.reads)\n",
        ("tests/cache/test_one_moment.py",),
    ),
    Fix(
        "alter_database_drops_its_tables",
        "A comment on a database drops every cached partition in it.",
        "hms_cache/cache/event_rules.py",
        "    return sync_property(before.parameters or {}) == sync_property(after.parameters or {})\n",
        "    return False\n",
        ("tests/cache/test_event_cells.py",),
    ),
    Fix(
        "flush_leaves_the_names",
        "A flush of a table leaves the names of its database: a table that no event told of stays unknown.",
        "hms_cache/admin/commands/memory.py",
        "            shared.forget(subject.table.in_database, frozenset({Facet.TABLE_NAMES}))\n",
        "            pass\n",
        ("tests/admin/test_commands.py",),
    ),
    Fix(
        "strict_decoder_of_names",
        "Events read damaged escapes of a partition name otherwise than the store.",
        "hms_cache/metadata/partition_name_codec.py",
        "        values.append(unescape_path_name(value))\n",
        "        values.append(_PLAIN_ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), value))\n",
        ("tests/store/partitions/test_partition_names.py",),
    ),
    Fix(
        "columns_of_avro_tables",
        "`get_fields` of a table with an Avro schema answers the stored columns.",
        "hms_cache/store/rows/storage_schemas.py",
        "            if serde == AVRO_SERDE:\n",
        "            if serde == AVRO_SERDE and False:\n",
        ("tests/server/test_avro_tables.py",),
    ),
    Fix(
        "missing_marks_weigh_nothing",
        "Marks of partitions to be read again are not charged: the budget does not hold.",
        "hms_cache/cache/partitions/partition_set.py",
        " + _MISSING_BYTES * len(self.missing)\n",
        "\n",
        ("tests/cache",),
    ),
    Fix(
        "effects_of_a_long_load",
        "What a long load remembers grows with every event.",
        "hms_cache/cache/loads.py",
        "            if len(values) > MOST_NAMED:\n",
        "            if False:\n",
        ("tests/cache/test_event_cells.py",),
    ),
    Fix(
        "cold_after_a_resync",
        "After a resync nothing is warmed again.",
        "hms_cache/cache/shared_cache.py",
        "            self.invalidated.update(lost)\n",
        "            del lost\n",
        ("tests/app/test_caching.py",),
    ),
    Fix(
        "demoted_mysql",
        "A demoted primary of MySQL is not recognised by its error.",
        "hms_cache/store/engine/dialects.py",
        "_MYSQL_NOT_PRIMARY = frozenset({1836, 1047})",
        "_MYSQL_NOT_PRIMARY = frozenset[int]()",
        ("tests/store/foundation/test_not_primary.py",),
    ),
    Fix(
        "demoted_postgresql",
        "A demoted primary of PostgreSQL is not recognised by its error.",
        "hms_cache/store/engine/dialects.py",
        'frozenset({"53300", "57014", "25006"})',
        'frozenset({"53300", "57014"})',
        ("tests/store/foundation/test_not_primary.py",),
    ),
    Fix(
        "stop_in_the_pause_is_lost",
        "SIGTERM in the pause before a worker is started again is lost.",
        "hms_cache/app/worker_processes.py",
        "                if not stopping:\n                    workers.start(ended)\n",
        "                workers.start(ended)\n",
        ("tests/cli/test_workers.py",),
    ),
    Fix(
        "failed_events_are_swallowed",
        "An event that cannot be applied is swallowed and not counted.",
        "hms_cache/notifications/event_applier.py",
        '                self._count_failure(event.header, f"{type(error).__name__}: {error}")\n'
        "                self._apply_in_its_place(event)\n",
        "                pass\n",
        ("tests/cache/test_failed_events.py", "tests/notifications"),
    ),
    Fix(
        "reader_that_never_reads",
        "A client that never reads keeps its buffers for good.",
        "hms_cache/server/connection.py",
        "        timeout_s = self._listener.write_timeout_s()\n",
        "        timeout_s = 0.0\n",
        ("tests/hostile/test_connections.py",),
    ),
    Fix(
        "no_grace_after_an_outage",
        "After a long outage the first housekeeping run aborts every open transaction.",
        "hms_cache/store/transactions/time_outs.py",
        "    return now < grace_end\n",
        "    return False\n",
        ("tests/txn/test_time_outs_after_outages.py",),
    ),
    Fix(
        "skipped_events_are_decoded",
        "Events of tables that are not held are decoded and counted as applied.",
        "hms_cache/app/caching.py",
        ", header_filter=sink.reason_to_skip)",
        ")",
        ("tests/app/test_caching.py",),
    ),
    Fix(
        "false_alarms_of_verify",
        "`jobs verify` reports differences right after `jobs statistics`.",
        "hms_cache/jobs/verify/objects.py",
        "    _drop_lonely_bit_vectors(left, right)\n",
        "",
        ("tests/jobs/verify/test_verify.py",),
    ),
    Fix(
        "port_of_a_moment_ago",
        "Workers cannot take over a port that was in use a moment ago.",
        "hms_cache/app/worker_processes.py",
        "    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n",
        "",
        ("tests/cli/test_workers.py",),
    ),
    Fix(
        "management_port_of_a_moment_ago",
        "The management port cannot be taken over a moment later.",
        "hms_cache/app/management.py",
        "    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n",
        "",
        ("tests/cli/test_workers.py",),
    ),
    Fix(
        "statistics_without_row_counts",
        "`jobs statistics` writes no row counts: Trino ignores the rest.",
        "hms_cache/jobs/statistics/parameters.py",
        '        "numRows": str(rows),\n',
        "",
        ("tests/jobs/statistics/test_basic_statistics.py",),
    ),
    Fix(
        "soft_drop_of_a_table_is_not_queued",
        "A table that is dropped softly is not queued for cleaning.",
        "hms_cache/store/tables/drops.py",
        "                if txn_id > 0:\n                    queue_dropped_table(",
        "                if txn_id < 0:\n                    queue_dropped_table(",
        ("tests/server/test_soft_drops.py",),
    ),
    Fix(
        "soft_drop_of_a_partition_is_not_queued",
        "A partition that is dropped softly is not queued for cleaning.",
        "hms_cache/store/partitions/drops.py",
        "    if txn_id > 0:\n        places",
        "    if txn_id < 0:\n        places",
        ("tests/server/test_soft_drops.py",),
    ),
    Fix(
        "write_ids_start_again",
        "A table made anew over files that stayed begins with write id 1.",
        "hms_cache/store/tables/drops.py",
        "                    keep_write_ids=not delete_data,\n",
        "                    keep_write_ids=False,\n",
        ("tests/server/test_soft_drops.py", "tests/txn"),
    ),
    Fix(
        "replayed_open_after_part_has_ended",
        "OPEN_TXN replayed after part of the batch has ended is an internal error.",
        "hms_cache/store/transactions/opening.py",
        "        if known:\n",
        "        if len(known) == len(source_ids):\n",
        ("tests/txn",),
    ),
    Fix(
        "compaction_of_an_unknown_transaction",
        "`update_compactor_state` with an unknown transaction is an internal error.",
        "hms_cache/store/compactions/queue.py",
        "    lock_open_txn(connection, txn_id)\n    updated",
        "    updated",
        ("tests/txn",),
    ),
    Fix(
        "write_id_of_the_table",
        "`alter_table_req` ignores the write id that Hive 4's client sets in the table.",
        "hms_cache/server/handlers/tables.py",
        "        write_id=write_id(table.writeId),\n",
        "        write_id=None,\n",
        ("tests/server/test_fields_in_two_places.py",),
    ),
    Fix(
        "socket_of_a_client_that_left",
        "A client that closes while its call runs leaks its socket.",
        "hms_cache/server/connection.py",
        "        self._ended = True\n        self._behind = True\n",
        "        self._behind = True\n",
        ("tests/server/test_client_behaviour.py",),
    ),
    Fix(
        "readers_of_the_log_hold_checks_up",
        "Clients that read the log use the connections of position checks.",
        "hms_cache/store/events/notification_log.py",
        "run_read(self._database, lambda connection: (connection.execute(statement).scalar() or 1) - 1)\n",
        "[connection.scalar(statement) - 1 for connection in [self._database.checking().__enter__()]][0]\n",
        ("tests/notifications/test_busy_readers.py",),
    ),
    Fix(
        "rebalance_writes_nothing",
        "A rebalancing compaction leaves no write set: a concurrent update is lost.",
        "hms_cache/store/transactions/commit_statements.py",
        "(TxnType.READ_ONLY, TxnType.SOFT_DELETE, TxnType.COMPACTION)",
        "(TxnType.READ_ONLY, TxnType.SOFT_DELETE, *COMPACTION_TXN_TYPES)",
        ("tests/txn",),
    ),
    Fix(
        "zero_wait_refuses_writes",
        "`zeroWaitReadEnabled` refuses a request of which only a write is blocked.",
        "hms_cache/store/locks/locking.py",
        "[target for target in asked.targets if target.lock_type == SHARED_READ]",
        "list(asked.targets)",
        ("tests/txn",),
    ),
    Fix(
        "open_writers_above_aborted_ones",
        "`minOpenWriteId` is unset where a writer is open above an aborted one.",
        "hms_cache/txn/valid_write_ids.py",
        "next((write_id for write_id, aborted in pairs if not aborted), LONG_MAX)",
        "pairs[0][0] if pairs and not pairs[0][1] else LONG_MAX",
        ("tests/txn",),
    ),
)
