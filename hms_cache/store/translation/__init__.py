"""Metadata translation of Hive 4: what a client gets to see depends on what it says that it can do.

Facts: `MetastoreDefaultTransformer` (Hive 4.0.1). Off by default (`catalog.metadata_translation`): Spark, Trino and
Impala name no capabilities and create managed tables that would become external ones.
"""
