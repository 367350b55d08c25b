"""Creates, checks and inspects the schema in a database."""
