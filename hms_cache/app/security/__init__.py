"""What protects the server, of the configuration: TLS, who clients are, what they may."""
