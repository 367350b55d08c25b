"""The database drivers, and where this program deviates from them: limits, complete rows, TLS, files."""
