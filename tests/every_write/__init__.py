"""Each write of the protocol is visible to each cached read, on the server that executed it and on another."""
