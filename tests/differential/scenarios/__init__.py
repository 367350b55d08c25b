"""The scenarios for both metastores: a module per kind of object, each with its `SCENARIOS`."""
