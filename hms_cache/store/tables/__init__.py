"""Tables in the database: creation, changes, moves, drops."""
