# Generated from thrift_idl by tools/generate_thrift.py; do not edit.

