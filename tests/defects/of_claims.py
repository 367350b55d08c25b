"""Claims that were not true."""

from tests.defects.fix import Fix

FIXES = (
    Fix(
        19,
        "skipped_events_are_decoded",
        "Events of tables that are not held are decoded and counted as applied.",
        "hms_cache/app/caching.py",
        ", header_filter=sink.reason_to_skip)",
        ")",
        ("tests/app/test_caching.py",),
    ),
    Fix(
        19,
        "events_of_excluded_tables_are_decoded",
        "Events of tables with `impala.disableHmsSync` are decoded and counted as applied.",
        "hms_cache/cache/shared_cache.py",
        "            if entry is not None and entry.facets.keys() - {Facet.EXCLUDED}:\n",
        "            if entry is not None:\n",
        ("tests/cache/test_skipped_events.py",),
    ),
    Fix(
        20,
        "false_alarms_of_verify",
        "`jobs verify` reports differences right after `jobs statistics`.",
        "hms_cache/jobs/verify/objects.py",
        "    _drop_lonely_bit_vectors(left, right)\n",
        "",
        ("tests/jobs/verify/test_verify.py",),
    ),
    Fix(
        21,
        "rawstore_is_not_mapped",
        "Hive's `metastore.rawstore.impl` says nothing to us.",
        "hms_cache/config/sections/cache.py",
        '        site_keys=("metastore.rawstore.impl", "hive.metastore.rawstore.impl"),\n'
        "        from_site=_from_store_class,\n",
        "",
        ("tests/config/test_hive_keys.py",),
    ),
    Fix(
        21,
        "whitelist_is_not_mapped",
        "Hive's whitelist of cached objects says nothing to us.",
        "hms_cache/config/sections/cache.py",
        '        site_keys=(\n            "metastore.cached.rawstore.cached.object.whitelist",\n'
        '            "hive.metastore.cached.rawstore.cached.object.whitelist",\n        ),\n'
        "        from_site=_from_expressions,\n",
        "",
        ("tests/config/test_hive_keys.py",),
    ),
    Fix(
        21,
        "blacklist_is_not_mapped",
        "Hive's blacklist of cached objects says nothing to us.",
        "hms_cache/config/sections/cache.py",
        '        site_keys=(\n            "metastore.cached.rawstore.cached.object.blacklist",\n'
        '            "hive.metastore.cached.rawstore.cached.object.blacklist",\n        ),\n'
        "        from_site=_from_expressions,\n",
        "",
        ("tests/config/test_hive_keys.py",),
    ),
    Fix(
        21,
        "cache_memory_is_not_mapped",
        "Hive's limit for the memory of its cache says nothing to us.",
        "hms_cache/config/sections/cache.py",
        '        site_keys=("metastore.cached.rawstore.max.cache.memory",'
        ' "hive.metastore.cached.rawstore.max.cache.memory"),\n'
        "        from_site=_from_memory_limit,\n",
        "",
        ("tests/config/test_hive_keys.py",),
    ),
    Fix(
        21,
        "functions_are_always_asked_for",
        "`get_all_functions` never comes from memory.",
        "hms_cache/cache/reads/cached_functions.py",
        '        return self._reading.answer(\n            "functions",\n            look,\n'
        "            lambda: self._store.get_functions(catalog, database, pattern),\n"
        "            facet=Facet.FUNCTIONS,\n        )\n",
        '        del look\n        return self._reading.pass_through("functions", lambda:'
        " self._store.get_functions(catalog, database, pattern))\n",
        ("tests/cache/test_equality.py::test_each_kind_of_read_comes_from_memory_where_nothing_changes",),
    ),
    Fix(
        21,
        "table_meta_is_always_asked_for",
        "`get_table_meta` never comes from memory.",
        "hms_cache/cache/reads/cached_tables.py",
        '        make = self._reading.answer("table_meta", look, ask, facet=Facet.TABLE_NAMES)\n',
        '        del look\n        make = self._reading.pass_through("table_meta", ask)\n',
        ("tests/cache/test_equality.py::test_each_kind_of_read_comes_from_memory_where_nothing_changes",),
    ),
    Fix(
        21,
        "no_status_without_a_cache",
        "With the cache off the gauge of the poller's status has no sample.",
        "hms_cache/app/service.py",
        "                self.metrics.events.status.labels(status.value).set(status is PollerStatus.DISABLED)\n",
        "                pass\n",
        ("tests/app/test_caching.py",),
    ),
    Fix(
        21,
        "poll_interval_of_nothing_is_refused",
        "A poll interval of 0, which switches polling off, is refused.",
        "hms_cache/config/sections/events.py",
        '        reason="One indexed read of one row; Impala recommends less than 5.",\n        ge=0,\n',
        '        reason="One indexed read of one row; Impala recommends less than 5.",\n        gt=0,\n',
        ("tests/app/test_caching.py",),
    ),
    Fix(
        21,
        "fetch_duration_without_processing",
        "`avg-events-fetch-duration` leaves out processing.",
        "hms_cache/admin/status.py",
        '        "events-processor.avg-events-fetch-duration": batch.mean_s,\n',
        '        "events-processor.avg-events-fetch-duration": numbers.fetch_durations.mean_s,\n',
        ("tests/admin",),
    ),
    Fix(
        22,
        "refusal_in_the_wrong_field",
        "`get_partition_names` of a transactional table without a list raises NoSuchObjectException where it is"
        " refused.",
        "hms_cache/wire/versions.py",
        '    return moved.get(attribute, attribute) if (arguments.db_name or "").startswith("@") else attribute\n',
        "    return attribute\n",
        ("tests/server/test_reads_without_lists.py",),
    ),
    Fix(
        23,
        "port_of_a_moment_ago",
        "Workers cannot take over a port that was in use a moment ago.",
        "hms_cache/app/worker_processes.py",
        "    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n",
        "",
        ("tests/cli/test_workers.py",),
    ),
    Fix(
        23,
        "management_port_of_a_moment_ago",
        "The management port cannot be taken over a moment later.",
        "hms_cache/app/management.py",
        "    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n",
        "",
        ("tests/cli/test_workers.py",),
    ),
    Fix(
        24,
        "statistics_without_row_counts",
        "`jobs statistics` writes no row counts: Trino ignores the rest.",
        "hms_cache/jobs/statistics/parameters.py",
        '        "numRows": str(rows),\n',
        "",
        ("tests/jobs/statistics/test_basic_statistics.py",),
    ),
    Fix(
        24,
        "appended_rows_are_not_noticed",
        "`jobs statistics` does not notice rows that were appended to a partition without an event.",
        "hms_cache/jobs/statistics/data_files.py",
        "        is_known = self.figures is not None and self.figures == self.recorded and self.rows is not None\n",
        "        is_known = self.figures is not None and self.recorded is not None and self.rows is not None\n",
        ("tests/jobs/statistics/test_basic_statistics.py",),
    ),
)
