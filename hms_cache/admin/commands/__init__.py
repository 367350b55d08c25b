"""Commands for a running server: flush, refresh, warm, sync, verify; each is a function of the server's parts.

A command runs on a thread of its own, reports its progress to its `Operation`, ends early if that is cancelled, and
never changes what readers are answered (P9): it drops, loads, waits or compares.
"""
