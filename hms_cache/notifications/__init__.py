"""The notification log's contents: event values, the message codec, and the poller."""
