"""The metastore protocol as Python classes.

`hive_metastore` and `fb303` are generated from `thrift_idl` by `tools/generate_thrift.py`; do not edit them. Only this
module and `base` are written by hand.
"""
