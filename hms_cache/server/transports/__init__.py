"""What stands between a socket and its connection: TLS, SASL, HTTP."""
