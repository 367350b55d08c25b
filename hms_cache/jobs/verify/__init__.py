"""The job ``verify``: compares the answers of servers with the database."""
