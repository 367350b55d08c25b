"""Exact reads by lease: memory answers without a position check as long as no member of the set writes.

`state` contains the rules, without I/O; `membership` the thread that joins and renews; `writes` what a write waits for
before its COMMIT; `transport` the messages between members. docs/model/Lease.tla is the definition; History.tla next to
it models databases that are restored to an earlier state.
"""
