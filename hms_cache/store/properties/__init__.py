"""Properties of the metastore, its databases and tables that client programs store: `set_properties`,
`get_properties`."""
