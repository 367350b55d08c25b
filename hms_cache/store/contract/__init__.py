"""What every metastore store answers, by direction and entity: `MetadataReads` and `MetadataWrites`.

`ObjectStore` implements both over the database, `CachedReads` the reads over another `MetadataReads`; nothing but the
store writes (P9). One method serves all Thrift spellings of one action; the handlers translate. Rules that hold for
every method:

* Names are normalized (`metadata.object_names`); names within structs that are stored are normalized by the store.
* Every method is one database transaction. A read shows one moment. A write commits its rows and its notification
  events together (P10), then returns; when it raises, neither is there. `CommitOutcomeUnknown` is the one exception.
* Lists are ordered: names ascending by code point, partitions by their name, parameters of a map by key.
* Returned structs are frozen: others may hold the same ones, so a caller that wants to change one copies it first.
  The lists and dicts they come in are the caller's.
* Errors are Hive's own exception types from `thrift_gen`, raised `from` their cause. A database that is away is
  `DatabaseUnavailable`, never "no such object".
* A read's `version` is what its client has seen (`ReadVersion`). A plain store uses it to judge statistics; a cache
  also to judge freshness (P2). The `valid_write_ids` of a write is the text of a `ValidWriteIdList`, or None.
"""
