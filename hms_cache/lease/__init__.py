"""Exact reads by lease: memory answers without a question to the database while no member of the set writes.

`state` is the rule without I/O, `membership` the thread that joins and renews, `writes` what a write waits for before
its COMMIT, `transport` how members talk. docs/model/Lease.tla is the definition; History.tla beside it is about
databases that go back.
"""
