"""The notification log, and events that clients fire."""
