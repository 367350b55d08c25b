"""The change feed: the notification log as server-sent events, for downstream caches and catalogs."""
