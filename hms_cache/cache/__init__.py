"""The coherent cache: reads around a store's reads, kept true by the notification log.

docs/consistency.md has the promises and the argument.

`CachedReads` answers; `SharedCache` is what it remembers, with one applied position A at which all of it is true;
`Freshness` decides whether A is recent enough; `Loader` fills what is missing from snapshots of the database.
Nothing here knows SQL or sockets, and nothing starts a thread.
"""
