"""Which users, addresses and tables keep the server busy."""
