"""The change feed: the notification log as server-sent events, for caches and catalogs downstream."""
