"""Every write of the protocol is seen by every cached read, on the server that took it and on another."""
