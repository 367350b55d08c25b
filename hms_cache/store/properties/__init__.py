"""Properties of the metastore, its databases and tables that programs keep: `set_properties`, `get_properties`."""
