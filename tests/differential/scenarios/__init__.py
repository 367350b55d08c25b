"""What both metastores are asked: a module per kind of object, each with its `SCENARIOS`."""
