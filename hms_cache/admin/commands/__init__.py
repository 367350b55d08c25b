"""What an operator may ask a running server to do: flush, refresh, warm, sync, verify; each a function of its parts.

A command runs on a thread of its own, notes its progress on its `Operation`, ends early when that is cancelled, and
never changes what readers are answered (P9): it drops, loads, waits or compares.
"""
