"""Metadata translation of Hive 4: what a client sees depends on the capabilities that it declares.

Facts: `MetastoreDefaultTransformer` (Hive 4.0.1). Off by default (`catalog.metadata_translation`): Spark and Trino
declare no capabilities, and create managed tables that would become external ones. Impala declares capabilities, and
refuses tables without an access type.
"""
