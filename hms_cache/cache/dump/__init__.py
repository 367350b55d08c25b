"""The cache dump: a file with the cache's entries that survives a restart. It also holds their position in the event
log, and what proves that the log still contains that position."""
