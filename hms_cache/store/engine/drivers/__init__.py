"""The drivers of the databases, and what of them is done otherwise here: limits, whole rows, TLS, files."""
