"""The management port: health, metrics, status and commands over HTTP. It looks at the server's parts and owns none."""
