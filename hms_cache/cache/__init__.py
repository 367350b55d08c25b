"""The coherent cache: answers reads of a store from memory, and follows the notification log to stay correct.
docs/consistency.md describes the promises and the argument.

`CachedReads` answers reads; `SharedCache` holds the entries, all of which are true at one applied position A;
`Freshness` decides whether A is recent enough; `Loader` fills in missing entries from snapshots of the database.
Nothing here knows SQL or sockets, and nothing starts a thread.
"""
