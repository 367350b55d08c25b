"""What lies between a socket and Thrift's protocol: SASL, HTTP."""
