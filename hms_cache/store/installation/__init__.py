"""The schema created, checked and looked at in a database."""
