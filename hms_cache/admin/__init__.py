"""The management port: health, metrics, status and commands over HTTP. It reads the server's parts and owns none of
them."""
