"""The compaction queue and its history."""
