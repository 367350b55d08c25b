"""The members of a set of servers that answer reads by lease."""
