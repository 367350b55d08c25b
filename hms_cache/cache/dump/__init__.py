"""The cache dump: entries in a file that outlives a restart, with their position and the proof that the log still has
it."""
