"""What few clients ask for: connectors, types, scheduled queries, the schema registry, stored procedures."""
