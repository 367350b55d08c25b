"""The metastore database: the contract of a store, and the store over SQLAlchemy Core."""
