"""The interface of every metastore store, by direction and entity: `MetadataReads` and `MetadataWrites`.

`ObjectStore` implements both over the database. `CachedReads` implements the reads over another `MetadataReads`. Only
the store writes (P9). One method serves all Thrift spellings of one action; the handlers translate. Rules for every
method:

* Names are normalized (`metadata.object_names`); the store normalizes names within structs that it stores.
* Every method is one database transaction. A read shows one moment. A write commits its rows and its notification
  events together (P10) before it returns; if it raises an exception, neither is stored, except after
  `CommitOutcomeUnknown`.
* Lists are sorted: names by code point, partitions by name, parameters of a map by key.
* Returned structs are frozen, since others may hold the same ones: a caller copies a struct before it changes it. The
  returned lists and dicts belong to the caller.
* Errors are Hive's own exception types from `thrift_gen`, raised `from` their cause. If the database is unavailable,
  the error is `DatabaseUnavailable`, never "no such object".
* A read's `version` says what its client has seen (`ReadVersion`). A store uses it to decide whether statistics are
  valid, a cache also to decide whether its entry is current (P2). The `valid_write_ids` of a write is the text of a
  `ValidWriteIdList`, or None.
"""
