"""Column statistics in the database, and whether they are valid."""
