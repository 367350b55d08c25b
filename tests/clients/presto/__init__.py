"""A real Presto, the ancestor of Trino that goes on, with this project as its metastore."""
