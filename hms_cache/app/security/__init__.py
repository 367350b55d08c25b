"""Security configuration: TLS, authentication, authorization."""
