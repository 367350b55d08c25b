"""Authentication of clients: SASL's exchange of messages as Thrift frames it, and the mechanisms. No sockets."""
