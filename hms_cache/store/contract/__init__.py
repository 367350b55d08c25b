"""What every metastore store answers (`RawStore`), an abstract class per entity.

`ObjectStore` implements it over the database, `CachedStore` over another `RawStore`. One method serves all Thrift
spellings of one action; the handlers translate. Rules that hold for every method:

* Names arrive as the client sent them, without the `@catalog#` prefix; the store lower-cases and checks them.
* Every method is one database transaction. A read shows one moment. A write commits its rows and its notification
  events together (P10), then returns; when it raises, neither is there. `CommitOutcomeUnknown` is the one exception.
* Lists are ordered: names ascending by code point, partitions by their name, parameters of a map by key.
* Returned structs are frozen: others may hold the same ones, so a caller that wants to change one copies it first.
  The lists and dicts they come in are the caller's.
* Errors are Hive's own exception types from `thrift_gen`, raised `from` their cause. A database that is away is
  `DatabaseUnavailable`, never "no such object".
* `valid_write_ids` is the text of a `ValidWriteIdList`, or None; `table_id` the table's id as the client knows it, or
  None (a Thrift -1 arrives as None). A plain store uses them to judge statistics; a cache also to judge freshness (P2).
"""
